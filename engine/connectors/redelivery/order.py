"""Whether messages come in the order in which they were sent.

What a broker takes back from one consumer it gives to another before newer messages. Where it does not say that it gave
it before, as Artemis over AMQP, that it comes late is the only sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Order"]

_MOST_DESTINATIONS = 1000


class Order:
    """By destination, since each has an order of its own. A late message need not be one that comes again."""

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}

    def is_late(self, headers: Mapping[str, str]) -> bool:
        """Whether a newer message was seen before; one that does not say when it was sent is never late."""
        sent = headers.get("JMSTimestamp")
        if sent is None:
            return False
        destination = headers.get("JMSDestination", "")
        latest = self._latest.get(destination, "")
        # The longer of two whole numbers is the larger one.
        if len(sent) < len(latest) or (len(sent) == len(latest) and sent < latest):
            return True
        if len(self._latest) >= _MOST_DESTINATIONS:
            self._latest.clear()
        self._latest[destination] = sent
        return False
