"""Requests that change a running bridge: reload of its configuration; restart, pause and resumption of one part.

They are the POST requests of the API, whose description has them, too (`engine.page.api`), behind the login of an
operator (`roles`). A request needs the header `X-Jms-Bridge`: a page of another site cannot add it to a request of its
reader's browser without the consent of this server (CORS, Fetch standard).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from engine.telemetry.http_login import LOGIN
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

__all__ = [
    "CHANGES",
    "HEADER",
    "PAUSE",
    "RELOAD",
    "RESTART",
    "RESUME",
    "Acting",
    "ChangeRequest",
    "Controlled",
    "control",
    "user_of_request",
]

HEADER = "X-Jms-Bridge"
"""Header that each of the requests needs, with any value."""
_ACCEPTED, _REFUSED, _FORBIDDEN = 202, 400, 403


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """A request that changes the bridge."""

    path: str
    about: str
    of_part: bool = True
    """True if the parameter `part` names a part, and the answer has the names of its processes in `parts`."""


RELOAD = ChangeRequest(
    "/api/reload",
    "Asks for the configuration to be read again; `/ready` shows the number of the answered request as "
    "`configuration.reload.request`",
    of_part=False,
)
RESTART = ChangeRequest("/api/restart", "Asks for a part to be started again")
PAUSE = ChangeRequest(
    "/api/pause", "Asks for a part to end in order, or a route to hold its messages, until it is resumed"
)
RESUME = ChangeRequest("/api/resume", "Asks for a paused part or route to be started again")
CHANGES = (RELOAD, RESTART, PAUSE, RESUME)


class Controlled(Protocol):
    """The bridge, as far as requests change it. All methods are safe from any thread."""

    def request(self) -> int:
        """Asks for the configuration to be read again; returns the request's number."""

    def restart(self, name: str) -> list[str]:
        """Asks for a part to be started again; returns the parts that it names, or raises UsageError."""

    def separable(self) -> list[str]:
        """The names of the parts that can be restarted or paused alone."""

    def pause(self, name: str, by: str) -> list[str]:
        """Asks for a part, or a route by `route:NAME`, to be paused; otherwise as `restart`. `by` is the user."""

    def resume(self, name: str, by: str) -> list[str]:
        """Asks for a paused part to be started again; otherwise as `pause`."""


Acting = Callable[["Request", str, str], AbstractContextManager[object]]
"""Notes that the user of a request does something to a part; the action is done within its `with`."""


def control(bridge: Controlled, acting: Acting = lambda *_: nullcontext()) -> Sequence[BaseRoute]:
    """The routes of the requests, which `engine.telemetry.http` serves beside its own; `acting` notes each."""

    def reload(request: Request) -> Response:
        if refusal := _foreign(request):
            return refusal
        with acting(request, "reload", ""):
            return JSONResponse({"request": bridge.request()}, status_code=_ACCEPTED)

    def of_part(what: ChangeRequest, change: Callable[[str, str], list[str]]) -> Route:
        def changed(request: Request) -> Response:
            if refusal := _foreign(request):
                return refusal
            part = request.query_params.get("part", "")
            try:
                with acting(request, what.path.rpartition("/")[2], part):
                    parts = change(part, user_of_request(request))
            except BridgeError as error:
                return JSONResponse({"error": str(error)}, status_code=_REFUSED)
            return JSONResponse({"parts": parts}, status_code=_ACCEPTED)

        return Route(what.path, changed, methods=["POST"])

    return [
        Route(RELOAD.path, reload, methods=["POST"]),
        of_part(RESTART, lambda name, _: bridge.restart(name)),
        of_part(PAUSE, bridge.pause),
        of_part(RESUME, bridge.resume),
    ]


def user_of_request(request: Request) -> str:
    """Returns the login of a request, and the user that its client names by the parameter `by`."""
    login, client = str(request.scope.get(LOGIN, "")), request.query_params.get("by", "")
    return f"{login} ({client})" if login and client else login or client


def _foreign(request: Request) -> Response | None:
    """The refusal of a request that may come from a page of another site; None for others."""
    if HEADER in request.headers:
        return None
    return JSONResponse({"error": f"this request needs the header {HEADER}"}, status_code=_FORBIDDEN)
