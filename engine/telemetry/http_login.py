"""Who may see the pages of the HTTP server: whoever shows a token, or a name and its password."""

from __future__ import annotations

import hmac
from base64 import b64encode
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from routes.model import HttpConfig

__all__ = ["LOGIN", "HttpLogin", "credentials"]

LOGIN = "jmsbridge.login"
"""In the scope of a request: who has logged in, by name; `http.token` for a token, empty where nobody has to."""

_REALM = 'realm="jms-bridge", charset="UTF-8"'


class HttpLogin:
    """Answers 401 in place of an application, except where a request shows a login or its path is open to all."""

    def __init__(self, app: ASGIApp, config: HttpConfig, open_paths: frozenset[str]) -> None:
        self._app = app
        self._open = open_paths
        self._wanted = credentials(config)
        self._names = {"bearer": "http.token", "basic": config.username or ""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Where no login is configured, everybody is let in."""
        who = self._admitted(Headers(scope=scope)) if self._wanted else ""
        if who is not None or scope["path"] in self._open:
            await self._app({**scope, LOGIN: who or ""}, receive, send)
            return
        answer = PlainTextResponse("log in\n", status_code=401)
        for scheme in self._wanted:
            answer.headers.append("WWW-Authenticate", f"{scheme.title()} {_REALM}")
        await answer(scope, receive, send)

    def _admitted(self, headers: Headers) -> str | None:
        """Who shows a login that is taken; None if there is none."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        wanted = self._wanted.get(scheme.lower())
        # Takes as long for a wrong one as for a right one.
        if wanted is None or not hmac.compare_digest(shown.strip().encode(), wanted):
            return None
        return self._names[scheme.lower()]


def credentials(config: HttpConfig) -> Mapping[str, bytes]:
    """What follows each scheme of `Authorization` that is taken (RFC 6750, RFC 7617)."""
    taken = {}
    if config.token:
        taken["bearer"] = config.token.encode()
    if config.username is not None:
        taken["basic"] = b64encode(f"{config.username}:{config.password or ''}".encode())
    return taken
