"""The times at which messages expire that wait to be sent (JMSExpiration)."""

from __future__ import annotations

import time
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.connectors.base import Outgoing

__all__ = ["ExpiryTimes", "has_expired"]


def has_expired(outgoing: Outgoing) -> bool:
    """Whether a message has expired by now."""
    return 0 < outgoing.message.expiration_ms <= time.time() * 1000


class ExpiryTimes:
    """The expiry times of messages, by their numbers. For one thread."""

    def __init__(self) -> None:
        self._times: list[tuple[int, int]] = []
        """A heap of times in milliseconds since 1970, each with the number of its message."""

    def add(self, outgoing: Outgoing) -> None:
        """Keeps the time of a message that can expire."""
        if expiration_ms := outgoing.message.expiration_ms:
            heappush(self._times, (expiration_ms, outgoing.number))

    def due(self) -> set[int]:
        """Numbers of the messages that have expired since the last call."""
        found: set[int] = set()
        if self._times:
            now_ms = time.time() * 1000
            while self._times and self._times[0][0] <= now_ms:
                found.add(heappop(self._times)[1])
        return found

    def clear(self) -> None:
        """Forgets all."""
        self._times.clear()
