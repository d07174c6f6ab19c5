"""Asks a bridge that serves its figures at the address of a configuration."""

from __future__ import annotations

import json
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any

from engine.telemetry.http_login import credentials

if TYPE_CHECKING:
    from routes.model import HttpConfig

__all__ = ["ask"]


def ask(config: HttpConfig, path: str, timeout_seconds: float, *, login: bool = False) -> dict[str, Any] | None:
    """The JSON object that is served under a path, whatever the status; None where there is none.

    With `login` the configured one is shown, which is nothing to show to some other program.
    """
    try:
        with closing(_connection(config, timeout_seconds)) as connection:
            connection.request("GET", path, headers=_login(config) if login else {})
            body = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    return body if isinstance(body, dict) else None


def _connection(config: HttpConfig, timeout_seconds: float) -> HTTPConnection:
    if config.certificate is None:
        return HTTPConnection(config.host, config.port, timeout=timeout_seconds)
    # Of one configuration it has the same certificate.
    same = ssl.create_default_context(cafile=config.certificate)
    same.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    same.check_hostname = False
    return HTTPSConnection(config.host, config.port, timeout=timeout_seconds, context=same)


def _login(config: HttpConfig) -> dict[str, str]:
    """Any of the ways in will do."""
    ways = [f"{scheme.title()} {shown.decode()}" for scheme, shown in credentials(config).items()]
    return {"Authorization": ways[0]} if ways else {}
