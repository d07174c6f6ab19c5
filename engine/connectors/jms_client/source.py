"""Source for queues and topics of any JMS broker, by the provider's own client in a child process.

A session of JMS acknowledges all that it has received, or nothing. So the child process commits when all messages that
it has handed over are acknowledged, and is told how many are. The journal, reconnecting and stopping are in
`source_loop`.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from engine.connectors.base import Delivery, Redelivery
from engine.connectors.content_id import identified
from engine.connectors.jms import Identity
from engine.connectors.jms_client.message import deliveries
from engine.connectors.jms_client.process import ClientProcess, connection_settings
from engine.connectors.jms_client.providers import provider_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.jms_client.settings import JmsClientSourceConfig

__all__ = ["JmsClientSource"]

_MESSAGES, _DONE = ord("M"), ord("D")
_RETURNS_SECONDS = 60.0
"""Time after which brokers give up a client whose machine has vanished."""
_DOUBT_SECONDS = 60.0
_BATCH_BYTES = 4 * 1024 * 1024
_KEPT_BYTES = 64 * 1024


class JmsClientSource:
    """Source of one worker: a child process with one connection, and a session for each destination."""

    def __init__(self, endpoint: SystemEndpoint[JmsClientSourceConfig], worker: int) -> None:
        """Sets up the source without connecting."""
        source = endpoint.settings
        self._endpoint = endpoint
        self._source = source
        # Workers that share a durable subscription share its client id.
        self._worker = 1 if source.shared_subscription else worker
        self._process = ClientProcess(endpoint)
        # A topic gives each subscriber every message, unless the workers share a subscription.
        every = worker == 1 or (source.shared_subscription and source.subscription is not None)
        self._destinations = [name for name in source.destinations if every or name.startswith("queue:")]
        self._waiting: deque[Delivery] = deque()
        self._received = [0] * len(self._destinations)

    @property
    def address(self) -> str:
        """Connection factory and destinations."""
        return f"{self._endpoint.url} ({', '.join(self._destinations) or 'nothing left for this worker'})"

    @property
    def redelivery(self) -> Redelivery:
        """See `Source`. Providers do not mark messages that they had only sent to a client that vanished."""
        return Redelivery(_RETURNS_SECONDS, _DOUBT_SECONDS, is_marked=False)

    def connect(self) -> None:
        """Starts the child process, connects and subscribes; raises as `ClientProcess.start`."""
        self.close()
        source = self._source
        given = {
            **connection_settings(source, self._worker),
            "role": "source",
            "batch": str(source.batch or provider_of(source).most_received),
            "batch-bytes": str(_BATCH_BYTES),
            "most-bytes": str(self._endpoint.max_message_bytes),
            "kept-bytes": str(_KEPT_BYTES),
            "client-acknowledge": "true" if source.client_acknowledge else "false",
            "shared": "true" if source.shared_subscription else "false",
        }
        if source.selector is not None:
            given["selector"] = source.selector
        if source.subscription is not None:
            given["subscription"] = source.subscription
            if not source.shared_subscription and any(name.startswith("topic:") for name in self._destinations):
                # A durable subscription belongs to a client id.
                given.setdefault("client-id", f"{self._endpoint.bridge_id}.{source.name}")
        given |= {f"destination.{number}": name for number, name in enumerate(self._destinations)}
        self._received = [0] * len(self._destinations)
        self._process.start(given)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the next message. An oversized one is only its beginning; an unreadable one has a `fault`."""
        if not self._waiting:
            frame = self._process.next(timeout_seconds)
            if frame is None or frame.kind != _MESSAGES:
                return None
            channel, count = struct.unpack_from(">II", frame.content)
            most, before = self._endpoint.max_message_bytes, self._received[channel]
            self._waiting.extend(deliveries(frame.content, self._source.name, before, most))
            self._received[channel] += count
        delivery = self._waiting.popleft()
        message, has_own_id = identified(delivery.message, by_content=self._source.identity is Identity.CONTENT)
        return delivery if message is delivery.message else replace(delivery, message=message, has_own_id=has_own_id)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Tells the child process up to which message of each destination the journal has all."""
        # In the dict a later token of a destination replaces the earlier ones.
        for channel, number in dict(cast("Sequence[tuple[int, int]]", tokens)).items():
            self._process.write(_DONE, struct.pack(">IQ", channel, number))

    def tend(self) -> None:
        """Does nothing: the client keeps its connection alive."""

    def close(self) -> None:
        """Ends the connection in order, with all acknowledgements."""
        self._waiting.clear()
        self._process.close()
