"""HTTP client for a running bridge: address, TLS and login come from the bridge's configuration."""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any

from engine.errors import UnreachableError
from engine.telemetry.login_section import COMMAND_KEYS
from routes.keys.addresses import Peer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.telemetry.http_section import HttpConfig, ViewerConfig

__all__ = ["ask", "base_url", "credentials", "find", "order"]

_EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Addresses that a server listens on to accept all, and the loopback address at which a client reaches it there."""
_MOST_BYTES = 64 * 1024 * 1024
"""Limit of an answer, which may come from an unrelated program; a bridge's is far below."""


def base_url(config: HttpConfig, peer: Peer | None = None) -> str:
    """The URL at which a bridge with this configuration answers, or a peer of it, without a slash at the end."""
    scheme = "https" if config.certificate else "http"
    return f"{scheme}://{peer or Peer(_host(config), config.port)}"


def ask(
    config: HttpConfig, path: str, seconds: float, *, login: bool = True, peer: Peer | None = None
) -> tuple[int, str]:
    """Sends a GET request to the bridge with this configuration, or to a peer of it; returns status and body.

    `seconds` is the timeout of each step (connect, send, receive), not of the whole request. Without `login` the
    request carries no credentials, so that they are not shown to an unrelated program that listens there.

    Raises:
        UnreachableError: nothing listens there, it does not speak HTTP, or the issuer of its tokens does not answer.
        HardFailureError: the issuer of access tokens refuses the client of commands.
    """
    return _sent(config, "GET", path, seconds, _login(config) if login else {}, peer)


def order(config: HttpConfig, path: str, seconds: float) -> tuple[int, dict[str, Any]]:
    """Sends a POST request of `engine.telemetry.control` to the bridge with this configuration; status and JSON object.

    The object is empty if the answer is not JSON. `seconds` is as for `ask`.

    Raises:
        UnreachableError: nothing listens there, it does not speak HTTP, or the issuer of its tokens does not answer.
        HardFailureError: the issuer of access tokens refuses the client of commands.
    """
    status, text = _sent(config, "POST", path, seconds, {"X-Jms-Bridge": "command", **_login(config)}, None)
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    return status, body if isinstance(body, dict) else {}


def _sent(
    config: HttpConfig, method: str, path: str, seconds: float, headers: Mapping[str, str], peer: Peer | None
) -> tuple[int, str]:
    try:
        with closing(_connection(config, seconds, peer)) as connection:
            connection.request(method, path, headers=dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        msg = f"no bridge answers at {base_url(config, peer)}: {reason}; is it running with this configuration?"
        raise UnreachableError(msg) from error


def find(config: HttpConfig, path: str, seconds: float, *, login: bool = False) -> dict[str, Any] | None:
    """The JSON object served under `path`, whatever the status; None if the answer is missing or no JSON object."""
    try:
        body = json.loads(ask(config, path, seconds, login=login)[1])
    except (UnreachableError, ValueError):
        return None
    return body if isinstance(body, dict) else None


def credentials(config: HttpConfig | ViewerConfig) -> Mapping[str, bytes]:
    """The credentials of a role by scheme of `Authorization`, lower case: `bearer` (RFC 6750), `basic` (RFC 7617)."""
    taken = {}
    if config.token:
        taken["bearer"] = config.token.encode()
    if config.username is not None:
        taken["basic"] = b64encode(f"{config.username}:{config.password or ''}".encode())
    return taken


def _host(config: HttpConfig) -> str:
    return _EVERY_ADDRESS.get(config.host, config.host)


def _connection(config: HttpConfig, seconds: float, peer: Peer | None) -> HTTPConnection:
    host, port = peer or (_host(config), config.port)
    if config.certificate is None:
        return HTTPConnection(host, port, timeout=seconds)
    # The server shows the certificate that its configuration names, or one signed by an authority in the same file.
    context = ssl.create_default_context(cafile=config.certificate)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # The own server is at the address it is known by; a peer has to prove that it is the host it is asked as.
    context.check_hostname = peer is not None
    return HTTPSConnection(host, port, timeout=seconds, context=context)


def _login(config: HttpConfig) -> Mapping[str, str]:
    """The request header with the credentials; one login is enough where several are configured.

    Raises:
        HardFailureError: the issuer of access tokens refuses the client of commands.
        UnreachableError: the issuer does not answer.
    """
    if (login := config.oidc.of_commands).is_set:
        # Imported here: most commands ask no issuer.
        from engine.openid.access_tokens import access_tokens

        token = access_tokens(login, "http.oidc.", COMMAND_KEYS).current()
        return {"Authorization": f"Bearer {token.text}"}
    ways = [f"{scheme.title()} {shown.decode()}" for scheme, shown in credentials(config).items()]
    return {"Authorization": ways[0]} if ways else {}
