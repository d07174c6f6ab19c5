"""Expiry times (JMSExpiration) of messages that wait to be sent."""

from __future__ import annotations

import time
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.connectors.base import Outgoing
    from engine.message import Message

__all__ = ["ExpiryTimes", "has_expired"]

_SPARE = 1000
"""Number of stale heap entries, beyond as many as there are live ones, at which they are removed."""


def has_expired(message: Message) -> bool:
    """Returns True if the message has expired by now."""
    return 0 < message.expiration_ms <= time.time() * 1000


class ExpiryTimes:
    """Expiry times of waiting messages, by message number, in memory proportional to these messages; for one thread."""

    def __init__(self) -> None:
        self._times: dict[int, int] = {}
        """Expiry times of the waiting messages in milliseconds since 1970, by number."""
        self._heap: list[tuple[int, int]] = []
        """Heap of expiry times and numbers; it may contain stale entries of messages that no longer wait."""

    def add(self, outgoing: Outgoing) -> None:
        """Adds the expiry time of a message, if it has one."""
        if expiration_ms := outgoing.message.expiration_ms:
            self._times[outgoing.number] = expiration_ms
            heappush(self._heap, (expiration_ms, outgoing.number))

    def discard(self, number: int) -> None:
        """Removes the expiry time of a message that waits no longer."""
        if self._times.pop(number, None) is not None and len(self._heap) > 2 * len(self._times) + _SPARE:
            self._heap = [(expiration_ms, number) for number, expiration_ms in self._times.items()]
            heapify(self._heap)

    def due(self) -> set[int]:
        """Removes and returns the numbers of the messages that have expired."""
        expired: set[int] = set()
        if self._heap:
            now_ms = time.time() * 1000
            while self._heap and self._heap[0][0] <= now_ms:
                number = heappop(self._heap)[1]
                if self._times.pop(number, None) is not None:
                    expired.add(number)
        return expired

    def clear(self) -> None:
        """Removes all expiry times."""
        self._times.clear()
        self._heap.clear()
