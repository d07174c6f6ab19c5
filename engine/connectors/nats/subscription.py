"""What a source reads without a stream: subscriptions, with a queue group so that workers and bridges share the work.

NATS sends what is published while somebody listens, to nobody else and once. Nothing is acknowledged, and the server
does not wait: who is too slow loses messages, here or there. What is read ahead is bounded, and what is lost here is
told.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

import structlog

from engine.connectors.nats.message import Incoming

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.nats.connection import Connection
    from routes.model import SourceConfig

__all__ = ["MOST_WAITING_BYTES", "Subscription"]

MOST_WAITING_BYTES = 64 * 1024 * 1024
"""Of messages that wait in the bridge; the server keeps as much, by its `max_pending`, before it hangs up."""
_log = structlog.get_logger(__name__)


class Subscription:
    """One subscription for each subject of a source."""

    def __init__(self, connection: Connection, source: SourceConfig, bridge_id: str) -> None:
        self._connection = connection
        self._source = source
        self._group = re.sub(r"\s", "_", source.consumer or f"{bridge_id}.{source.name}")
        self._waiting: deque[Incoming] = deque()
        self._bytes = 0
        self._dropped = 0
        self._numbers: list[int] = []

    def start(self) -> None:
        """Subscribes on a new connection."""
        self._waiting.clear()
        self._bytes = self._dropped = 0
        self._numbers = [self._connection.listen(name, self._take, self._group) for name in self._source.destinations]

    def next(self) -> tuple[Incoming, object] | None:
        """The next message, with its token; None if there is none."""
        if not self._waiting:
            if self._dropped:
                _log.warning("taking messages again", source=self._source.name, lost=self._dropped)
                self._dropped = 0
            # Not before: what was read while the connection was there would be lost.
            self._connection.check()
            return None
        incoming = self._waiting.popleft()
        self._bytes -= len(incoming.body)
        return incoming, None

    @property
    def ready(self) -> bool:
        """Whether there is a next message."""
        return bool(self._waiting)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """There is nothing to acknowledge."""
        self._connection.check()

    def tend(self) -> None:
        """There is nothing to do now and then."""

    def leave(self) -> None:
        """Ends the subscriptions; another member of the group has what comes from now on."""
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
            Incoming(subject.decode("utf-8", "replace"), reply.decode("utf-8", "replace"), headers, body)
        )
