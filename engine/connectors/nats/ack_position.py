"""Acknowledged position of a JetStream consumer, which the bridge stores in Kafka.

A server that was stopped or lost power may forget the position of a consumer, and then redelivers the stream from its
beginning (nats-server issue 8036). The stored position, which the server itself reported, tells which of these messages
were acknowledged before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.connectors.nats.message import Stored

__all__ = ["AckPosition", "furthest"]


class AckPosition(NamedTuple):
    """Acknowledged position of one consumer at one moment."""

    created: str
    """Creation time of the consumer, in the server's spelling; distinguishes consumers that had the same name."""
    floor: int
    """Ack floor: all messages of the stream up to this sequence were acknowledged."""
    time_ms: int
    """Time at which the stream stored the latest message acknowledged by then, in milliseconds since 1970 by the
    server's clock."""

    def __str__(self) -> str:
        """Formats the position as the text that `furthest` parses."""
        return f"{self.created} {self.floor} {self.time_ms}"

    def covers(self, message: Stored) -> bool:
        """Returns True if the message was acknowledged when this position was noted.

        The sequence alone does not prove it: a stream restored from a backup uses its sequences again, for messages of
        a later time.
        """
        return int(message.sequence) <= self.floor and message.milliseconds <= self.time_ms


def furthest(notes: Iterable[str], created: str) -> AckPosition | None:
    """Returns the position with the highest floor among the notes of the consumer created then; None if there is none.

    Notes of other consumers and unreadable notes are ignored.
    """
    places = (_parsed(note) for note in notes)
    return max((place for place in places if place and place.created == created), key=_floor, default=None)


def _floor(place: AckPosition) -> int:
    return place.floor


def _parsed(note: str) -> AckPosition | None:
    try:
        created, floor, time_ms = note.split(" ")
        return AckPosition(created, int(floor), int(time_ms))
    except ValueError:
        return None
