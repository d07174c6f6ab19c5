"""Check that the schema registry answers and takes the login. Registers nothing."""

from __future__ import annotations

import base64
import json
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from engine import tls
from engine.doctor.checks import failed, of_error, ok
from engine.errors import HardFailureError, SetupError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.doctor.checks import Finding
    from engine.schemas.section import SchemaConfig

__all__ = ["REGISTRY_REMEDY", "check_registry"]

REGISTRY_REMEDY = "start it, or correct schema.registry.url"
_NAME = "schema registry"
_REFUSED = 300
_NO_LOGIN = (401, 403)


def check_registry(config: SchemaConfig, timeout_seconds: float) -> Iterator[Finding]:
    """Checks each server of the registry, whose addresses are configured."""
    for url in config.urls or ():
        try:
            status, answer = _ask(config, url, timeout_seconds)
        except SetupError as error:
            yield of_error(_NAME, error, "correct schema.registry.tls.*")
            return
        except (OSError, HTTPException) as error:
            yield failed(_NAME, f"{url}: {error}", REGISTRY_REMEDY, UnreachableError)
            continue
        yield _finding(url, status, answer)


def _finding(url: str, status: int, answer: bytes) -> Finding:
    if status in _NO_LOGIN:
        remedy = "correct schema.registry.username and schema.registry.password, or schema.registry.token"
        return failed(_NAME, f"{url} does not take the login ({status})", remedy, HardFailureError)
    if status >= _REFUSED:
        return failed(
            _NAME, f"{url} answers {status}", "is schema.registry.url right, with its path?", HardFailureError
        )
    try:
        types = json.loads(answer)
    except ValueError:
        types = None
    if not isinstance(types, list):
        return failed(_NAME, f"{url} answers, but not as a schema registry", REGISTRY_REMEDY, HardFailureError)
    return ok(_NAME, f"{url} keeps schemas of {', '.join(map(str, types))}")


def _ask(config: SchemaConfig, url: str, timeout_seconds: float) -> tuple[int, bytes]:
    """Status and body of the registry's answer to the question which formats it knows."""
    parts = urlsplit(url)
    address = parts.hostname or "", parts.port
    connection = HTTPConnection(*address, timeout=timeout_seconds)
    if parts.scheme == "https":
        files = {"ca": config.ca, "certificate": config.certificate, "key": config.key}
        context = tls.context("schema.registry", ssl.Purpose.SERVER_AUTH, **files)
        connection = HTTPSConnection(*address, timeout=timeout_seconds, context=context)
    try:
        connection.request("GET", f"{parts.path}/schemas/types", headers=_login(config))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _login(config: SchemaConfig) -> dict[str, str]:
    if config.token is not None:
        return {"Authorization": f"Bearer {config.token}"}
    if config.username is None:
        return {}
    login = base64.b64encode(f"{config.username}:{config.password}".encode()).decode()
    return {"Authorization": f"Basic {login}"}
