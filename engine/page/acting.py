"""Actions of users, each noted in the audit of actions before it is done, and again with its result.

An action on messages that cannot be noted is not done. Those on the bridge itself are done all the same, since a reload
or a restart may be the way out of an outage of Kafka; the log of the bridge has them.
"""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from engine.errors import UnreachableError
from engine.looks.action import AuditedAction
from engine.looks.log import LookTopic
from engine.telemetry.control import user_of_request
from engine.telemetry.roles import role_of
from engine.times import iso
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request

    from engine.page.view import View

__all__ = ["REFUSED", "ActionResult", "acting", "acting_on_bridge"]

REFUSED = "refused"
"""Beginning of the result of an action that was refused, before the reason."""
_MOST_TARGET = 4000
_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ActionResult:
    """Result of an action, for the audit."""

    text: str = "done"


@contextmanager
def acting(view: View, request: Request, action: str, target: str) -> Iterator[ActionResult]:
    """Notes an action on messages, for `with`: before it is done, and with its result. Asks Kafka, so not on the loop.

    Raises:
        UnreachableError: the action cannot be noted; it is not done.
    """
    with _noted(view, request, action, target, is_needed=True) as result:
        yield result


@contextmanager
def acting_on_bridge(view: View, request: Request, action: str, target: str) -> Iterator[ActionResult]:
    """Notes an action on the bridge as `acting` does; it is done even if it cannot be noted."""
    with _noted(view, request, action, target, is_needed=False) as result:
        yield result


@contextmanager
def _noted(view: View, request: Request, action: str, target: str, *, is_needed: bool) -> Iterator[ActionResult]:
    host = request.client.host if request.client else ""
    entry = AuditedAction(
        _now(),
        user_of_request(request),
        str(role_of(request)),
        host,
        secrets.token_hex(8),
        action,
        target if len(target) <= _MOST_TARGET else f"{target[:_MOST_TARGET]} …",
    )
    _log.info("action", action=action, target=entry.target, by=entry.user, host=host)
    try:
        view.actions.note(LookTopic.of_actions(view.config()), entry)
    except BridgeError as error:
        if is_needed:
            raise UnreachableError(f"an action has to be noted, and {error}") from error
        _log.error("an action cannot be noted in the audit", action=action, by=entry.user, reason=str(error))
    result = ActionResult("failed")
    done = ActionResult()
    try:
        yield done
        result = done
    except BridgeError as error:
        result = ActionResult(f"{REFUSED}: {error}")
        raise
    finally:
        try:
            view.actions.note(LookTopic.of_actions(view.config()), replace(entry, time=_now(), result=result.text))
        except BridgeError as error:
            _log.error("the result of an action cannot be noted", action=action, result=result.text, reason=str(error))


def _now() -> str:
    return iso(round(time.time() * 1000))
