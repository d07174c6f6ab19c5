"""What the pages are made of: everything that the supervisor knows of its bridge, in memory. Asks no broker."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.dead_letters.backlog import Census
    from engine.page.samples import Samples
    from engine.peek import Position
    from engine.telemetry.http import Standing
    from engine.telemetry.status import Status, StatusBoard
    from routes.config.snapshot import Snapshot
    from routes.model import Config

__all__ = ["Tone", "View", "worst"]


class Tone(StrEnum):
    """How something is: a colour, and never that alone."""

    GOOD = "good"
    IDLE = "idle"
    WARN = "warn"
    BAD = "bad"

    @property
    def mark(self) -> str:
        """A sign that says the same as the colour."""
        return {"good": "✓", "idle": "·", "warn": "!", "bad": "✗"}[self]

    @staticmethod
    def of(state: State) -> Tone:
        """That of a component."""
        return _TONES[state]


_TONES = {
    State.READY: Tone.GOOD,
    State.STARTING: Tone.WARN,
    State.STOPPING: Tone.WARN,
    State.DEGRADED: Tone.WARN,
    State.DOWN: Tone.BAD,
}


@dataclass(frozen=True, slots=True)
class View:
    """One bridge. Safe from any thread."""

    board: StatusBoard
    samples: Samples
    config: Callable[[], Config]
    """The configuration in force."""
    snapshot: Callable[[], Snapshot]
    """The file that it was read from, as it was then."""
    reload: Callable[[], Mapping[str, object]] = dict
    """How the last reload went, as `/ready` has it."""
    standing: Standing | None = None
    """How the bridge stands in its election, if it takes part in one."""
    census: Callable[[], Census | None] = lambda: None
    """What is known of the dead letters."""
    is_open: Callable[[Position], bool | None] = lambda _: None
    """Whether a dead letter is neither replayed nor discarded; None if that is not known."""
    seal: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """What forms are signed with, see `engine.page.forms`."""

    def state_of(self, status: Status) -> tuple[Tone, str]:
        """A component's colour and state in a word; the parts of a standby wait on purpose."""
        if status.state is State.STARTING and self.standing and self.standing.stands_by:
            return Tone.IDLE, "standing by"
        return Tone.of(status.state), str(status.state)


def worst(statuses: Iterable[Status]) -> Status | None:
    """Of several components the one that is worst off; None of none."""
    order = (Tone.BAD, Tone.WARN, Tone.IDLE, Tone.GOOD)
    return min(statuses, key=lambda status: order.index(Tone.of(status.state)), default=None)
