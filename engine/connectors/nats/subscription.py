"""Messages of plain NATS subscriptions, in a queue group so that workers and bridges share the messages.

NATS sends a message once, to one member of the group that is subscribed when it is published. Nothing is acknowledged,
and the server does not wait: a subscriber that is too slow loses messages, in the bridge or at the server. The messages
that wait in the bridge are bounded by `MOST_WAITING_BYTES`; messages dropped here are logged with their number.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

import structlog

from engine.connectors.nats.message import IncomingMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.nats.connection import Connection
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["MOST_WAITING_BYTES", "Subscription"]

MOST_WAITING_BYTES = 64 * 1024 * 1024
"""Maximum size of messages that wait in the bridge. The server buffers as much, its `max_pending`, before it closes the
connection."""
_log = structlog.get_logger(__name__)


class Subscription:
    """Reader of one subscription for each subject of a source, over successive connections."""

    def __init__(self, connection: Connection, source: NatsSourceConfig, bridge_id: str) -> None:
        self._connection = connection
        self._source = source
        self._group = re.sub(r"\s", "_", source.consumer or f"{bridge_id}.{source.name}")
        self._waiting: deque[IncomingMessage] = deque()
        self._bytes = 0
        self._dropped = 0
        self._numbers: list[int] = []

    def start(self) -> None:
        """Subscribes on a new connection."""
        self._waiting.clear()
        self._bytes = self._dropped = 0
        self._numbers = [self._connection.listen(name, self._take, self._group) for name in self._source.destinations]

    def next(self) -> tuple[IncomingMessage, object] | None:
        """Returns the next message with None as its token; None if no message waits."""
        if not self._waiting:
            if self._dropped:
                _log.warning("taking messages again", source=self._source.name, lost=self._dropped)
                self._dropped = 0
            # Checked only now: messages that were read before the connection was lost would be dropped.
            self._connection.check()
            return None
        incoming = self._waiting.popleft()
        self._bytes -= len(incoming.body)
        return incoming, None

    @property
    def ready(self) -> bool:
        """True if a message waits."""
        return bool(self._waiting)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Raises NotConnectedError if the connection is lost; plain NATS has no acknowledgements."""
        self._connection.check()

    def tend(self) -> None:
        """Does nothing; a plain subscription needs no upkeep."""

    def leave(self) -> None:
        """Ends the subscriptions; later messages go to other members of the queue group."""
        for number in self._numbers:
            self._connection.forget(number)

    def _take(self, subject: bytes, reply: bytes, headers: bytes, body: bytes) -> None:
        if self._bytes + len(body) > MOST_WAITING_BYTES:
            if not self._dropped:
                _log.warning(
                    "slow consumer: messages come faster than the journal takes them, and are lost; add workers, or "
                    "read them from a stream",
                    source=self._source.name,
                    waiting_bytes=self._bytes,
                )
            self._dropped += 1
            return
        self._bytes += len(body)
        self._waiting.append(
            IncomingMessage(subject.decode("utf-8", "replace"), reply.decode("utf-8", "replace"), headers, body)
        )
