"""The addresses of the status page, and what holds for all of them: who may ask, and what happens to errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine.page.kafka import Threads
from engine.page.letters import audit, letter, letters
from engine.page.overview import overview
from engine.page.render import HEADERS
from engine.page.routes import routes
from engine.page.settings import settings
from engine.page.settle import settle
from engine.page.tryout import tryout
from engine.telemetry.http_login import LOGIN
from routes.config.http_checks import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from engine.page.view import View

__all__ = ["pages"]

_METHODS = {"/try": ["GET", "POST"], "/dead-letters/settle": ["POST"]}
_STRANGER = (
    "this page is known by the names of its own machine only, as 127.0.0.1 or localhost; "
    "to show it under others set http.username and http.password\n"
)
_STATIC = Path(__file__).with_name("static")
_FILES = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}


def pages(view: View) -> Sequence[BaseRoute]:
    """What `engine.telemetry.http` serves beside its own."""
    threads = Threads()
    found = {
        "/": overview(view),
        "/routes": routes(view),
        "/try": tryout(view),
        "/dead-letters": letters(view, threads),
        "/dead-letters/letter/{partition}/{offset}": letter(view, threads),
        "/dead-letters/settle": settle(view, threads),
        "/dead-letters/audit": audit(view, threads),
        "/settings": settings(view),
        **{f"/static/{name}": _file(name, kind) for name, kind in _FILES.items()},
    }
    known = [Middleware(_KnownHost, view=view)]
    return [Route(path, page, methods=_METHODS.get(path, ["GET"]), middleware=known) for path, page in found.items()]


class _KnownHost:
    """Where nobody has to log in, only names of this machine are answered to.

    Else any page on the internet could have its own name lead here (DNS rebinding) and read what a browser is shown.
    """

    def __init__(self, app: ASGIApp, view: View) -> None:
        self._app = app
        self._view = view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = Headers(scope=scope).get("host", "")
        if scope.get(LOGIN) or not is_loopback(self._view.config().http.host) or _is_here(host):
            await self._app(scope, receive, send)
            return
        answer = PlainTextResponse(_STRANGER, status_code=421, headers=HEADERS)
        await answer(scope, receive, send)


def _is_here(host: str) -> bool:
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def _file(name: str, kind: str) -> Callable[[Request], Response]:
    content = (_STATIC / name).read_bytes()

    def file(_: Request) -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return file
