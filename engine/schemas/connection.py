"""Requests to one server of the schema registry, with the login and the certificates of a configuration."""

from __future__ import annotations

import base64
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine import tls
from engine.http_answers import content
from engine.openid.access_tokens import access_tokens
from engine.schemas.section import REGISTRY_KEYS
from routes.keys.token_login import TOKEN_LOGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.schemas.section import SchemaConfig

__all__ = ["CONNECTION_ERRORS", "ask", "fixed_headers"]

CONNECTION_ERRORS = (OSError, HTTPException)
"""Errors of a server that is away, or that does not speak HTTP."""
_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_MOST_BYTES = 64 << 20
"""Most bytes that are read of an answer."""
_UNAUTHORIZED = 401


def ask(config: SchemaConfig, url: str, path: str, timeout_seconds: float) -> tuple[int, bytes]:
    """Status and body of the answer to a GET; redirections are not followed.

    An access token that the server refuses is replaced by a new one, once.

    Raises:
        SetupError: the files of `schema.registry.tls.*` cannot be used.
        HardFailureError: the issuer of access tokens refuses the client.
        UnreachableError: the issuer of access tokens does not answer.
        OSError, HTTPException: the server is away, or does not speak HTTP.
    """
    headers = fixed_headers(config)
    if not config.tokens.is_set:
        return _asked(config, url, path, timeout_seconds, headers)
    tokens = access_tokens(config.tokens, f"{REGISTRY_KEYS}{TOKEN_LOGIN}")
    token = tokens.current()
    status, body = _asked(config, url, path, timeout_seconds, {**headers, **_bearer(token.text)})
    if status != _UNAUTHORIZED:
        return status, body
    tokens.refused(token)
    return _asked(config, url, path, timeout_seconds, {**headers, **_bearer(tokens.current().text)})


def fixed_headers(config: SchemaConfig) -> dict[str, str]:
    """Returns the headers of each request by name: the login, unless it is an access token, and what goes with it."""
    cloud = {"target-sr-cluster": config.cluster, "Confluent-Identity-Pool-Id": config.pool}
    named = {name: value for name, value in cloud.items() if value is not None}
    if config.token is not None:
        return {**named, **_bearer(config.token)}
    if config.username is None:
        return named
    login = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
    return {**named, "Authorization": f"Basic {login}"}


def _asked(
    config: SchemaConfig, url: str, path: str, timeout_seconds: float, headers: Mapping[str, str]
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    address = parts.hostname or "", parts.port
    connection = HTTPConnection(*address, timeout=timeout_seconds)
    if parts.scheme == "https":
        files = {"ca": config.ca, "certificate": config.certificate, "key": config.key}
        context = tls.context("schema.registry", ssl.Purpose.SERVER_AUTH, **files)
        connection = HTTPSConnection(*address, timeout=timeout_seconds, context=context)
    try:
        connection.request("GET", f"{parts.path}{path}", headers={"Accept": _ACCEPT, **headers})
        answer = connection.getresponse()
        return answer.status, content(answer, _MOST_BYTES, timeout_seconds)
    finally:
        connection.close()


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
