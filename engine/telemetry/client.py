"""Asks a running bridge over HTTP, where and how its configuration says."""

from __future__ import annotations

import ssl
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

from engine.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.model import HttpConfig

__all__ = ["ask", "base_url"]

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 # what a server listens on; we ask this machine


def base_url(config: HttpConfig) -> str:
    """Where a bridge of that configuration answers, without a slash at the end."""
    host = _host(config)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if config.certificate else 'http'}://{shown}:{config.port}"


def ask(config: HttpConfig, path: str, seconds: float) -> tuple[int, str]:
    """Status and body of the answer; each step of the way may take so many seconds.

    Raises:
        UnreachableError: nobody answers there, or not in HTTP.
    """
    try:
        with closing(_connection(config, seconds)) as connection:
            connection.request("GET", path, headers=_login(config))
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        msg = f"no bridge answers at {base_url(config)}: {reason}; is it running with this configuration?"
        raise UnreachableError(msg) from error


def _host(config: HttpConfig) -> str:
    return _EVERY_ADDRESS.get(config.host, config.host)


def _connection(config: HttpConfig, seconds: float) -> HTTPConnection:
    if config.certificate is None:
        return HTTPConnection(_host(config), config.port, timeout=seconds)
    # It shows the certificate of the configuration, or one of an authority in the same file.
    context = ssl.create_default_context(cafile=config.certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return HTTPSConnection(_host(config), config.port, timeout=seconds, context=context)


def _login(config: HttpConfig) -> Mapping[str, str]:
    if config.token:
        return {"Authorization": f"Bearer {config.token}"}
    if config.username is not None:
        pair = f"{config.username}:{config.password or ''}"
        return {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
    return {}
