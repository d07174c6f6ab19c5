"""Receivers of a listening sink, and messages as they are held for them."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING, cast

from routes.predicate import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.amqp.limits import ListenerLimits
    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp.peer_session import PeerSession
    from engine.connectors.base import Outgoing
    from routes.predicate import Predicate

__all__ = ["Backlog", "Held", "QueueReader", "SelectorTime", "number_of"]

_REST = 10
"""How many times longer a receiver pauses than one evaluation took beyond its time."""


class Held:
    """A message that has no outcome yet."""

    __slots__ = ("destination", "failed", "outgoing", "readers", "size")

    def __init__(self, outgoing: Outgoing, destination: str) -> None:
        self.outgoing = outgoing
        self.destination = destination
        self.failed = 0
        """How often a client had it in vain."""
        self.readers = 0
        """Of a topic: who has not answered yet."""
        self.size = 0
        """Bytes as it was encoded; 0: not yet."""

    @property
    def is_topics(self) -> bool:
        """Whether it is for all receivers, not for one."""
        return self.destination.startswith("topic:")


class QueueReader:
    """A link by which a client receives."""

    def __init__(self, link: Sender, selector: Predicate | None, limits: ListenerLimits) -> None:
        self.link = link
        self.selector = selector
        self.waiting: deque[Held] = deque()
        """Of a topic: what is for it."""
        self.unseen: deque[Held] = deque()
        """Of a topic: what its selector is still to be applied to."""
        self.deliveries: dict[int, int] = {}
        """Number of the message of each delivery that is not answered."""
        self.seen = 0
        """Of a queue: up to this number nothing that waits is for it, apart from what is in `again`."""
        self.again: list[Held] = []
        """Of a queue: messages up to `seen` that have come back, in order."""
        self.rests_until = 0.0
        """It has used more than its time for its selector."""
        self._unread_bytes = limits.unread_bytes

    @property
    def room(self) -> int:
        """How many messages it takes now."""
        return self.link.room if len(self.session.peer.outgoing) < self._unread_bytes else 0

    @property
    def session(self) -> PeerSession:
        """The session of its link."""
        return cast("PeerSession", self.link.session)

    def wants(self, held: Held) -> bool:
        """Whether its selector and its largest size let it have a message."""
        if 0 < self.link.most < held.size:
            return False
        return self.selector is None or evaluate(self.selector, held.outgoing.message.lookup) is True

    def came_back(self, held: Held) -> None:
        """A message waits again."""
        if held.outgoing.number > self.seen:
            return
        at = bisect_left(self.again, held.outgoing.number, key=number_of)
        if at == len(self.again) or self.again[at] is not held:
            self.again.insert(at, held)


class Backlog:
    """Messages of one destination that have no outcome yet."""

    __slots__ = ("messages", "moved")

    def __init__(self, now: float) -> None:
        self.messages = 0
        self.moved = now
        """When the last one got its outcome."""


class SelectorTime:
    """How long selectors may be evaluated now."""

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._end = clock() + seconds

    @property
    def is_over(self) -> bool:
        """Whether that time has passed."""
        return self._clock() >= self._end

    def rest(self, reader: QueueReader) -> None:
        """One evaluation that took longer than the time for many is not followed by another one at once."""
        now = self._clock()
        if (over := now - self._end) > self._seconds:
            reader.rests_until = now + _REST * over


def number_of(held: Held) -> int:
    """`Outgoing.number` of a message, by which those that wait are in order."""
    return held.outgoing.number
