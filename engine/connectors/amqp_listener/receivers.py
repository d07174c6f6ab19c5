"""Receivers of a listener sink, and the messages that it holds for them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, cast

from routes.predicate import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp_listener.limits import ListenerLimits
    from engine.connectors.amqp_listener.session import ServerSession
    from engine.connectors.base import Outgoing
    from routes.predicate import Predicate

__all__ = ["DestinationBacklog", "Held", "ListenerReceiver", "SelectorTime", "number_of"]

_REST = 10
"""Pause of a receiver, as a multiple of the time by which one evaluation of its selector was too long."""


class Held:
    """Message of a listener sink that has no outcome yet."""

    __slots__ = ("destination", "failed", "outgoing", "readers", "refusal", "size")

    def __init__(self, outgoing: Outgoing, destination: str) -> None:
        self.outgoing = outgoing
        self.destination = destination
        self.failed = 0
        """Number of deliveries in vain: the client has left, rolled back, or answered with modified."""
        self.readers = 0
        """Number of receivers of a topic that are not finished with the message; 0 for a queue."""
        self.size = 0
        """Encoded size in bytes; 0 until it is encoded."""
        self.refusal: str | None = None
        """Reason why the message could not be encoded; None unless that was tried."""

    @property
    def is_topics(self) -> bool:
        """True if the message is for all receivers of a topic, not for one receiver of a queue."""
        return self.destination.startswith("topic:")


class ListenerReceiver:
    """Receiver of a queue or topic: a link over which a client receives."""

    def __init__(self, link: Sender, selector: Predicate | None, limits: ListenerLimits) -> None:
        self.link = link
        self.selector = selector
        self.waiting: deque[Held] = deque()
        """Messages of a topic that the selector wants and the client has no credit for yet."""
        self.unseen: deque[Held] = deque()
        """Messages of a topic to which the selector has still to be applied."""
        self.deliveries: dict[int, int] = {}
        """Message number (`Outgoing.number`) by delivery id, for deliveries that are not answered."""
        self.seen = 0
        """Number up to which no waiting message of a queue is for this receiver, except those in `again`."""
        self.again: list[Held] = []
        """Messages of a queue with numbers up to `seen` that have come back, in order."""
        self.rests_until = 0.0
        """Time until which the selector is not evaluated, because it took too long."""
        self._unread_bytes = limits.unread_bytes

    @property
    def room(self) -> int:
        """Number of messages that the client takes at present."""
        return self.link.room if len(self.session.peer.outgoing) < self._unread_bytes else 0

    @property
    def session(self) -> ServerSession:
        """Session of the link."""
        return cast("ServerSession", self.link.session)

    def wants(self, held: Held) -> bool:
        """Returns True if the selector and the client's largest message size admit a message."""
        if 0 < self.link.most < held.size:
            return False
        return self.selector is None or evaluate(self.selector, held.outgoing.message.lookup) is True

    def came_back(self, held: Held) -> None:
        """Takes note of a queue's message that waits again."""
        if held.outgoing.number > self.seen:
            return
        index = bisect_left(self.again, held.outgoing.number, key=number_of)
        if index == len(self.again) or self.again[index] is not held:
            self.again.insert(index, held)


class DestinationBacklog:
    """Messages at one destination without an outcome: their number, and the time of the last outcome."""

    __slots__ = ("messages", "moved")

    def __init__(self, now: float) -> None:
        self.messages = 0
        self.moved = now
        """Time of the last outcome, or of the first message if there was none."""


class SelectorTime:
    """Time for which selectors may be evaluated now."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    @property
    def is_over(self) -> bool:
        """True if the time has passed."""
        return self._clock() >= self._end

    def rest(self, reader: ListenerReceiver) -> None:
        """Makes a receiver pause if one evaluation took longer than the time for many.

        So a slow selector is not evaluated again at once.
        """
        now = self._clock()
        if (over := now - self._end) > self._seconds:
            reader.rests_until = now + _REST * over


def number_of(held: Held) -> int:
    """`Outgoing.number` of a message, by which waiting messages are in order."""
    return held.outgoing.number
