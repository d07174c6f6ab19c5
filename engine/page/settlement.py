"""Replays or discards chosen dead letters: first shows what would happen, then, once confirmed, what has happened.

Both go through `engine.dead_letters.replay`, as on the command line: each dead letter is settled once, with an entry in
the audit that names the login used here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog

from engine.dead_letters.audit import Actor
from engine.dead_letters.replay import Options, ReplayOutcome, discard, replay, source_topic
from engine.errors import UsageError
from engine.kafka.reader import Position
from engine.page import forms
from engine.page.render import rendered
from engine.telemetry.http_login import LOGIN
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.dead_letters.replay import Replayed
    from engine.page.forms import Form
    from engine.page.threads import Threads
    from engine.page.view import View
    from routes.model import Config

__all__ = ["settle"]

_ACTIONS = {"replay": replay, "discard": discard}
_MOST = 200
"""Largest number of dead letters in one request: as many as one transaction takes, if they are small."""
_ASK_SECONDS = 2.5
_DO_SECONDS = 10.0
"""Less than a connection may take; see `engine.telemetry.http`."""
_WOULD = (ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_QUARANTINE, ReplayOutcome.WOULD_DISCARD)
_log = structlog.get_logger(__name__)


def settle(view: View, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    """Makes the handler of the page, which asks for confirmation or does what was confirmed."""

    async def page(request: Request) -> Response:
        config = view.config()
        shown: dict[str, Any] = {"choice": None, "outcomes": (), "confirmed": False}
        status, fault = 200, ""
        try:
            form = await forms.read(request)
            forms.check(form, view.seal, request)
            choice = _Choice.of(form, config)
            confirmed = form.text("confirmed") == "yes"
            shown |= {"choice": choice, "confirmed": confirmed}
            actor = _actor(request, choice)
            outcomes = await threads.ask(
                config.bootstrap_servers,
                lambda: choice.settle(config, actor, dry_run=not confirmed),
                _DO_SECONDS if confirmed else _ASK_SECONDS,
            )
            shown |= {"outcomes": outcomes, "open": sum(each.outcome in _WOULD for each in outcomes)}
        except forms.ForeignRequestError as error:
            status, fault = 403, str(error)
        except UsageError as error:
            status, fault = 400, str(error)
        except BridgeError as error:
            status, fault = 503, str(error)
        return await rendered(request, view, "settle.html", status=status, fault=fault, **shown)

    return page


@dataclass(frozen=True, slots=True)
class _Choice:
    """An action, and the dead letters it is wanted for."""

    action: str
    positions: tuple[Position, ...]
    quarantine: bool

    @classmethod
    def of(cls, form: Form, config: Config) -> _Choice:
        """Reads the choice from a form; UsageError if it chooses nothing, too much, or no known action."""
        action, quarantine = form.text("action"), form.text("quarantine") == "1"
        if action not in _ACTIONS:
            msg = f"there is no action {action!r}; expected one of {', '.join(_ACTIONS)}"
            raise UsageError(msg)
        topic = source_topic(config, quarantine=quarantine)
        positions = tuple(dict.fromkeys(Position.parse(text, topic) for text in form.all("position")))
        if not positions:
            msg = "nothing is chosen; go back and tick the dead letters that are meant"
            raise UsageError(msg)
        if len(positions) > _MOST:
            msg = f"{len(positions)} dead letters are too many at once; choose {_MOST} at most, or use jms-bridge dlt"
            raise UsageError(msg)
        return cls(action, positions, quarantine)

    def settle(self, config: Config, actor: Actor, *, dry_run: bool) -> list[Replayed]:
        """Settles the chosen dead letters and returns the outcome of each; a dry run only tells the outcomes."""
        # From the quarantine, operators replay one by one what they have looked at: that is what `--force` is for.
        options = Options(quarantine=self.quarantine, force=self.quarantine and self.action == "replay", actor=actor)
        done = list(_ACTIONS[self.action](config, self.positions, dry_run=dry_run, options=options))
        if not dry_run:
            _log.info(f"dead letters: {self.action}", by=actor.user, host=actor.host, count=len(done))
        return done


def _actor(request: Request, choice: _Choice) -> Actor:
    host = request.client.host if request.client else ""
    quarantine = " from quarantine" if choice.quarantine else ""
    return Actor(request.scope.get(LOGIN) or "nobody logged in", host, f"status page: {choice.action}{quarantine}")
