"""How far a consumer of JetStream was, noted outside of the server.

A server that was stopped or lost power may forget it, and then sends everything from the stream's beginning
(nats-server issue 8036). What it had counted as acknowledged before is told by its own word of that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.connectors.nats.message import Stored

__all__ = ["Place", "furthest"]


class Place(NamedTuple):
    """A consumer at a moment."""

    created: str
    """When the consumer was made, in the server's own words: another one of the same name has another place."""
    floor: int
    """All messages of the stream up to this sequence were acknowledged."""
    time_ms: int
    """When the last message that was acknowledged by then came into the stream, by the server's clock."""

    def __str__(self) -> str:
        """In the form that `furthest` takes."""
        return f"{self.created} {self.floor} {self.time_ms}"

    def covers(self, message: Stored) -> bool:
        """Whether a message was acknowledged by then.

        One of a later time was not: a stream that was restored from a backup gives its sequences again.
        """
        return int(message.sequence) <= self.floor and message.milliseconds <= self.time_ms


def furthest(notes: Iterable[str], created: str) -> Place | None:
    """The furthest place that was noted of that consumer; None if there is none. Other notes are passed over."""
    places = (_parsed(note) for note in notes)
    return max((place for place in places if place and place.created == created), key=_floor, default=None)


def _floor(place: Place) -> int:
    return place.floor


def _parsed(note: str) -> Place | None:
    try:
        created, floor, time_ms = note.split(" ")
        return Place(created, int(floor), int(time_ms))
    except ValueError:
        return None
