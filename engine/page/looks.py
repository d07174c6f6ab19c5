"""The page of the audit of looks, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.looks.log import LookTopic, last_looks
from engine.page.asked import status_of
from engine.page.render import rendered
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.looks.look import Look
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["looks_page", "newest_looks"]

_LINES = 200
_ANSWER_SECONDS = 2.0


async def newest_looks(view: View, threads: Threads, count: int = _LINES, user: str = "") -> list[Look]:
    """Returns the newest entries, newest first, of a `user` or of all; raises as `last_looks`."""
    topic = LookTopic.of(view.config())
    found = await threads.ask(topic.kafka.servers, lambda: last_looks(topic, count, _ANSWER_SECONDS, user))
    return found[::-1]


def looks_page(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page."""

    async def page(request: Request) -> Response:
        looks: list[Look] = []
        fault, status = "", 200
        try:
            looks = await newest_looks(view, threads)
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        return await rendered(request, view, "looks.html", status=status, fault=fault, looks=looks)

    return page
