"""Data of the pages: everything that the supervisor knows of its bridge, from memory. Asks no broker."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.kafka.reader import Position
    from engine.page.samples import Samples
    from engine.telemetry.http import Standing
    from engine.telemetry.status import DeadLetterCounts, Status, StatusBoard
    from routes.config.snapshot import Snapshot
    from routes.model import Config

__all__ = ["Tone", "View", "worst"]


class Tone(StrEnum):
    """Condition of a component, route or line, shown as a colour, but never by colour alone."""

    GOOD = "good"
    IDLE = "idle"
    WARN = "warn"
    BAD = "bad"

    @property
    def mark(self) -> str:
        """The sign that means the same as the colour."""
        return {"good": "✓", "idle": "·", "warn": "!", "bad": "✗"}[self]

    @staticmethod
    def of(state: State) -> Tone:
        """The tone of a component's state."""
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
    """Data that the pages show of a bridge. Safe from any thread."""

    board: StatusBoard
    samples: Samples
    config: Callable[[], Config]
    """Returns the configuration in force."""
    snapshot: Callable[[], Snapshot]
    """Returns the properties file as it was when the configuration in force was read from it."""
    reload: Callable[[], Mapping[str, object]] = dict
    """Returns the field `configuration` of `/ready`: the configuration in force and the result of the last reload."""
    standing: Standing | None = None
    """The bridge's place in its election; None if it takes part in none."""
    census: Callable[[], DeadLetterCounts | None] = lambda: None
    """Returns the latest count of dead letters; None if there is none."""
    is_open: Callable[[Position], bool | None] = lambda _: None
    """Returns whether a dead letter is neither replayed nor discarded; None if that is not known."""
    seal: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Key with which forms are signed, see `engine.page.forms`."""

    def state_of(self, status: Status) -> tuple[Tone, str]:
        """The tone of a component and its state in a word; in a bridge that stands by, starting is on purpose."""
        if status.state is State.STARTING and self.standing and self.standing.stands_by:
            return Tone.IDLE, "standing by"
        return Tone.of(status.state), str(status.state)


def worst(statuses: Iterable[Status]) -> Status | None:
    """The component in the worst condition; None if there is no component."""
    order = (Tone.BAD, Tone.WARN, Tone.IDLE, Tone.GOOD)
    return min(statuses, key=lambda status: order.index(Tone.of(status.state)), default=None)
