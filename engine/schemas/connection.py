"""Requests to one server of the schema registry, with the login and the certificates of a configuration."""

from __future__ import annotations

import base64
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine import tls

if TYPE_CHECKING:
    from engine.schemas.section import SchemaConfig

__all__ = ["CONNECTION_ERRORS", "ask"]

CONNECTION_ERRORS = (OSError, HTTPException)
"""Errors of a server that is away, or that does not speak HTTP."""
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_MOST_BYTES = 64 << 20
"""Most bytes that are read of an answer."""


def ask(config: SchemaConfig, url: str, path: str, timeout_seconds: float) -> tuple[int, bytes]:
    """Status and body of the answer to a GET; redirections are not followed.

    Raises:
        SetupError: the files of `schema.registry.tls.*` cannot be used.
        OSError, HTTPException: the server is away, or does not speak HTTP.
    """
    parts = urlsplit(url)
    address = parts.hostname or "", parts.port
    connection = HTTPConnection(*address, timeout=timeout_seconds)
    if parts.scheme == "https":
        files = {"ca": config.ca, "certificate": config.certificate, "key": config.key}
        context = tls.context("schema.registry", ssl.Purpose.SERVER_AUTH, **files)
        connection = HTTPSConnection(*address, timeout=timeout_seconds, context=context)
    try:
        connection.request("GET", f"{parts.path}{path}", headers={"Accept": _ACCEPT, **_login(config)})
        answer = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES)
    finally:
        connection.close()


def _login(config: SchemaConfig) -> dict[str, str]:
    if config.token is not None:
        return {"Authorization": f"Bearer {config.token}"}
    if config.username is None:
        return {}
    login = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
    return {"Authorization": f"Basic {login}"}
