"""The page of the audit of actions, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.looks.action import ActionQuestion
from engine.looks.log import LookTopic, last_actions
from engine.page.asked import status_of
from engine.page.render import rendered
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.datastructures import QueryParams
    from starlette.requests import Request
    from starlette.responses import Response

    from engine.looks.action import AuditedAction
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["actions_page", "newest_actions"]

_LINES = 200
_ANSWER_SECONDS = 2.0
_FIELDS = ("user", "action", "target")


async def newest_actions(view: View, threads: Threads, query: QueryParams, count: int = _LINES) -> list[AuditedAction]:
    """Returns the newest actions that the parameters ask for, newest first; raises as `last_actions`."""
    topic = LookTopic.of_actions(view.config())
    question = ActionQuestion(**{name: query.get(name, "").strip() for name in _FIELDS})
    found = await threads.ask(topic.access.servers, lambda: last_actions(topic, question, count, _ANSWER_SECONDS))
    return found[::-1]


def actions_page(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page."""

    async def page(request: Request) -> Response:
        actions: list[AuditedAction] = []
        fault, status = "", 200
        try:
            actions = await newest_actions(view, threads, request.query_params)
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        asked = {name: request.query_params.get(name, "") for name in _FIELDS}
        return await rendered(request, view, "actions.html", status=status, fault=fault, actions=actions, asked=asked)

    return page
