"""Depth of a JetStream source: messages that its consumer has not delivered, or that are not acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.connectors.depth import NotSaidError
from engine.connectors.nats.connection import Connection
from engine.connectors.nats.jetstream import waiting

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["NatsDepth"]


class NatsDepth:
    """Connection that asks the server about the consumer of a stream."""

    def __init__(self, endpoint: SystemEndpoint[NatsSourceConfig]) -> None:
        """Reads TLS and credentials files; does not connect.

        Raises:
            SetupError: a TLS or credentials file is missing or invalid.
        """
        self._endpoint = endpoint
        self._connection = Connection(endpoint)

    def ask(self) -> int:
        """See `Depth`."""
        if not self._endpoint.settings.stream:
            raise NotSaidError("a plain subscription keeps no messages")
        if self._connection.lost:
            self._connection.open()
        return waiting(self._connection, self._endpoint.settings, self._endpoint.bridge_id)

    def close(self) -> None:
        """See `Depth`."""
        self._connection.close()
