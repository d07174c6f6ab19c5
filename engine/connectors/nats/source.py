"""Source for NATS: reads plain subscriptions, or a JetStream stream, which stores messages until they are acknowledged.

`subscription` and `stream_reader` hold the differences between the two, `message` the conversion, `connection` the
connection. The journal, reconnecting and stopping are in `source_loop`.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Protocol

import structlog

from engine.connectors.base import Delivery, Redelivery
from engine.connectors.nats.connection import Connection
from engine.connectors.nats.message import stored, to_message
from engine.connectors.nats.stream_reader import StreamReader
from engine.connectors.nats.subscription import Subscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.message import IncomingMessage
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["NatsSource"]

_LOOK_SECONDS = 0.05
"""Interval at which the socket is read while messages wait to be handed over."""
_SETTLE_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class _Feed(Protocol):
    """Interface shared by `StreamReader` and `Subscription`."""

    @property
    def ready(self) -> bool: ...
    def start(self) -> None: ...
    def next(self) -> tuple[IncomingMessage, object] | None: ...
    def acknowledge(self, tokens: Sequence[object]) -> None: ...
    def tend(self) -> None: ...
    def leave(self) -> None: ...


class NatsSource:
    """Source of one worker, with its own connection to the server."""

    def __init__(self, endpoint: SystemEndpoint[NatsSourceConfig], worker: int) -> None:
        """Reads TLS and credentials files; does not connect. `worker` is ignored, since all workers do the same.

        Raises:
            SetupError: a TLS or credentials file is missing or invalid.
        """
        source = endpoint.settings
        self._source = source
        self._propagates = endpoint.tracing.propagate
        self._connection = Connection(endpoint)
        self._stream = StreamReader(self._connection, source, endpoint.bridge_id) if source.stream else None
        self._feed: _Feed = self._stream or Subscription(self._connection, source, endpoint.bridge_id)
        self._run = ""
        self._count = 0
        self._look_at = 0.0

    @property
    def address(self) -> str:
        """URL, stream and subjects, such as `nats://host:port (stream ORDERS: orders.*, …)`."""
        stream = f"stream {self._source.stream}: " if self._source.stream else ""
        return f"{self._connection.url} ({stream}{', '.join(self._source.destinations)})"

    @property
    def redelivery(self) -> Redelivery | None:
        """Redelivery of the consumer, see `Source`; None without a stream, since nothing is redelivered then."""
        if self._stream is None:
            return None
        return Redelivery(self._stream.ack_wait_seconds + _SETTLE_SECONDS, self._connection.unnoticed_seconds)

    def connect(self) -> None:
        """Connects, subscribes, and finds or creates the consumer of a stream.

        Raises:
            NotConnectedError: connecting failed, or there is no such stream so far.
            HardFailureError: the stream or its consumer is unsuitable.
        """
        self.close()
        self._run, self._count = uuid.uuid4().hex[:16], 0
        self._connection.open()
        self._feed.start()

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next message, None if none came in time; a message with a faulty JSON frame has a `fault`."""
        now = time.monotonic()
        if not self._feed.ready or now > self._look_at:
            self._connection.wait(0 if self._feed.ready else timeout_seconds, lambda: self._feed.ready)
            self._look_at = now + _LOOK_SECONDS
            if not self._connection.lost:
                self._feed.tend()
        found = self._feed.next()
        return None if found is None else self._delivery(*found)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Acknowledges each delivery with a line of its own, in one write; does nothing for plain subscriptions."""
        self._feed.acknowledge(tokens)

    def tend(self) -> None:
        """Answers the server's PINGs and extends the ack_wait of open messages.

        Does nothing for a plain subscription: reading its socket would take in messages that might be dropped.
        """
        if self._stream is not None:
            self._connection.wait(0, lambda: False)
            self._connection.check()
            self._stream.tend()

    def position(self) -> str:
        """Returns the consumer's acknowledged position, see `Positioned`; empty for plain subscriptions."""
        return self._stream.position() if self._stream is not None else ""

    def recall(self, notes: Sequence[str]) -> None:
        """Takes positions noted earlier, see `Positioned`; ignores them for plain subscriptions."""
        if self._stream is not None:
            self._stream.recall(notes)

    def close(self) -> None:
        """Flushes acknowledgements, returns open messages to the server, and closes the connection."""
        self._connection.leave(self._feed.leave)
        if self._stream is not None:
            self._stream.left()

    def _delivery(self, incoming: IncomingMessage, token: object) -> Delivery:
        facts = stored(incoming.reply) if token is not None else None
        is_past = self._stream is not None and facts is not None and self._stream.is_past(facts)
        message, fault = to_message(
            incoming, facts, self._source.format, self._source.name, self._default, propagates=self._propagates
        )
        if fault is None or is_past:
            return Delivery(message, token, is_past=is_past)
        if not fault.body_only:
            return Delivery(message, token, fault=fault.why)
        _log.warning("treated as a plain body", source=self._source.name, subject=incoming.subject, why=fault.why)
        return Delivery(message, token)

    def _default(self) -> tuple[str, int]:
        self._count += 1
        return f"ID:{self._run}:{self._count}", int(time.time() * 1000)
