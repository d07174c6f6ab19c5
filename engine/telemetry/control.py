"""Requests that change a running bridge: reload of its configuration; restart, pause and resumption of one part.

    POST /reload            asks for the configuration to be read again; JSON has the number of the request, which
                            `/ready` shows in `configuration.reload` as soon as it is answered
    POST /restart?part=NAME asks for a part to be started again; JSON has the names of its processes
    POST /pause?part=NAME&by=USER   asks for a part to end in order, and to stay so until it is resumed; JSON as above
    POST /resume?part=NAME&by=USER  asks for a paused part to be started again; JSON as above

They are served beside the status page, behind the login of an operator (`roles`). A request needs the header
`X-Jms-Bridge`: a page of another site cannot add it to a request of its reader's browser without the consent of this
server (CORS, Fetch standard).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.requests import Request
    from starlette.routing import BaseRoute

__all__ = ["Controlled", "control"]

_HEADER = "x-jms-bridge"
_ACCEPTED, _REFUSED, _FORBIDDEN = 202, 400, 403


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


def control(bridge: Controlled) -> Sequence[BaseRoute]:
    """The routes of the requests, which `engine.telemetry.http` serves beside its own."""

    def reload(request: Request) -> Response:
        return _foreign(request) or JSONResponse({"request": bridge.request()}, status_code=_ACCEPTED)

    def of_part(path: str, change: Callable[[str, str], list[str]]) -> Route:
        def changed(request: Request) -> Response:
            if refusal := _foreign(request):
                return refusal
            try:
                parts = change(request.query_params.get("part", ""), request.query_params.get("by", ""))
            except BridgeError as error:
                return JSONResponse({"error": str(error)}, status_code=_REFUSED)
            return JSONResponse({"parts": parts}, status_code=_ACCEPTED)

        return Route(path, changed, methods=["POST"])

    return [
        Route("/reload", reload, methods=["POST"]),
        of_part("/restart", lambda name, _: bridge.restart(name)),
        of_part("/pause", bridge.pause),
        of_part("/resume", bridge.resume),
    ]


def _foreign(request: Request) -> Response | None:
    """The refusal of a request that may come from a page of another site; None for others."""
    if _HEADER in request.headers:
        return None
    return JSONResponse({"error": "this request needs the header X-Jms-Bridge"}, status_code=_FORBIDDEN)
