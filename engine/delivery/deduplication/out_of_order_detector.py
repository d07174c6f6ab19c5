"""Detection of messages that arrive later than newer ones, as a sign that another consumer may have had them before.

A broker that takes a message back from one consumer gives it to another consumer before newer messages. Artemis over
AMQP does not mark such a message as redelivered, so its late arrival is the only sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OutOfOrderDetector"]

_MOST_DESTINATIONS = 1000


class OutOfOrderDetector:
    """Latest JMSTimestamp seen, by destination, since each destination has an order of its own.

    A late message need not be a redelivered one.
    """

    def __init__(self) -> None:
        self._latest: dict[str, str] = {}

    def is_late(self, headers: Mapping[str, str]) -> bool:
        """Returns True if a newer message of the destination was seen before; False without a JMSTimestamp."""
        sent = headers.get("JMSTimestamp")
        if sent is None:
            return False
        destination = headers.get("JMSDestination", "")
        latest = self._latest.get(destination, "")
        # Compares whole numbers as texts: the longer one is larger.
        if len(sent) < len(latest) or (len(sent) == len(latest) and sent < latest):
            return True
        if len(self._latest) >= _MOST_DESTINATIONS:
            self._latest.clear()
        self._latest[destination] = sent
        return False
