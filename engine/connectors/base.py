"""What a source is: the small contract between one system's connector and the loop that runs it.

A connector does the wire work of one system and nothing else. Reconnecting, back-off, the journal, acknowledgement,
counting and stopping are `loop`'s, written once. A connector is called from one thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.message import Message

__all__ = ["Delivery", "NotConnectedError", "Source"]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message as a source hands it over."""

    message: Message
    token: object
    """What `Source.acknowledge` takes back; it means something only to its source and its connection."""
    size: int | None = None
    """Bytes of the body as it was sent, where it was too large to keep and `message.body` is only its beginning."""


class NotConnectedError(Exception):
    """There is no working connection; the loop closes the source, waits and connects again. One line for users."""

    def __init__(self, reason: str, back_off_seconds: float | None = None) -> None:
        """`back_off_seconds` is given where asking again soon would be wrong, as after a refused login."""
        super().__init__(reason)
        self.back_off_seconds = back_off_seconds


class Source(Protocol):
    """One connection to a system that messages are taken from.

    Every delivery is handed over again, by this or by another connection, unless it was acknowledged: a source never
    acknowledges by itself.
    """

    @property
    def address(self) -> str:
        """Where it connects to and what it reads, for people; free of secrets."""

    def connect(self) -> None:
        """Connects and subscribes; returns when the other side has confirmed both. Also used after `close`.

        Raises:
            NotConnectedError: it could not.
            BridgeError: it never will, such as for a missing certificate file.
        """

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """The next delivery; None if none came in time. What is not asked for stays with the broker.

        Raises:
            NotConnectedError: the connection is gone; its deliveries can no longer be acknowledged.
        """

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """The broker may forget these deliveries, given in the order in which they were received.

        Raises:
            NotConnectedError: the connection is gone; any of them may come again.
        """

    def close(self) -> None:
        """Ends the connection; deliveries not acknowledged go back. Never raises, may be called at any time.

        Where the connection still works it returns only when the broker has taken all acknowledgements.
        """
