"""The page of the audit of actions, and the same as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.looks.action import ActionQuestion
from engine.looks.log import LookTopic, last_actions
from engine.page.acting import REFUSED
from engine.page.asked import status_of
from engine.page.render import rendered
from engine.page.sight import Sight
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.looks.action import AuditedAction
    from engine.page.threads import Threads
    from engine.page.view import View

__all__ = ["actions_page", "newest_actions"]

_LINES = 200
_ANSWER_SECONDS = 2.0
_FIELDS = ("user", "action", "target")


async def newest_actions(request: Request, view: View, threads: Threads, count: int = _LINES) -> list[AuditedAction]:
    """Returns the newest actions that the parameters of a request ask for, newest first; raises as `last_actions`.

    The reason of a refusal may quote a message, so users who do not see everything do not see it.
    """
    topic = LookTopic.of_actions(view.config())
    question = ActionQuestion(**{name: request.query_params.get(name, "").strip() for name in _FIELDS})
    found = await threads.ask(topic.kafka.servers, lambda: last_actions(topic, question, count, _ANSWER_SECONDS))
    if Sight(request, view).is_masked:
        found = [replace(each, result=REFUSED) if each.result.startswith(REFUSED) else each for each in found]
    return found[::-1]


def actions_page(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page."""

    async def page(request: Request) -> Response:
        actions: list[AuditedAction] = []
        fault, status = "", 200
        try:
            actions = await newest_actions(request, view, threads)
        except BridgeError as error:
            fault, status = str(error), status_of(error)
        asked = {name: request.query_params.get(name, "") for name in _FIELDS}
        return await rendered(request, view, "actions.html", status=status, fault=fault, actions=actions, asked=asked)

    return page
