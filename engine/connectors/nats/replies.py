"""Replies that come in over NATS: from a stream that the bridge keeps for them, so that none is lost while it is away.

A service answers once, to whoever listens at that moment. Where the server has JetStream, a stream takes the replies
and this reads them from there; elsewhere it listens, and what comes in between is lost, as NATS is without JetStream.
It never listens beside a stream: what it took would come again from there, under another id.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from nats.errors import NoRespondersError

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.connection import Connection, NotAllowedError
from engine.connectors.nats.jetstream import ApiError, ensure_stream
from engine.connectors.nats.source import NatsSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Delivery, Redelivery
    from routes.model import Config, SourceConfig

__all__ = ["NatsReplies"]

_log = structlog.get_logger(__name__)


class NatsReplies:
    """A `NatsSource` that finds out at each connection whether there is a stream to read."""

    def __init__(self, config: Config, source: SourceConfig, worker: int) -> None:
        """SetupError where a TLS or credentials file is no good."""
        self._config = config
        self._own = source
        self._worker = worker
        self._source = NatsSource(config, source, worker)
        self._has_stream = False
        self._warned = False

    @property
    def address(self) -> str:
        """That of the source."""
        return self._source.address

    @property
    def redelivery(self) -> Redelivery | None:
        """That of the source."""
        return self._source.redelivery

    def connect(self) -> None:
        """Also makes the stream; NotConnectedError, too, where nobody can tell now whether there can be one."""
        self.close()
        stream = self._stream()
        self._has_stream = stream is not None
        self._source = NatsSource(self._config, replace(self._own, stream=stream), self._worker)
        self._source.connect()

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """See `Source`."""
        return self._source.receive(timeout_seconds)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """See `Source`."""
        self._source.acknowledge(tokens)

    def tend(self) -> None:
        """See `Source`."""
        self._source.tend()

    def close(self) -> None:
        """See `Source`."""
        self._source.close()

    def _stream(self) -> str | None:
        """The stream that has the replies; None where there can be none, and was none before."""
        connection = Connection(self._config, self._own)
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"replies-{self._own.destinations[0].rpartition('.')[0]}")
        connection.open()
        try:
            return ensure_stream(connection, name, self._own.destinations[0])
        except (NoRespondersError, NotAllowedError, ApiError) as error:
            why = "there is no JetStream" if isinstance(error, NoRespondersError) else str(error)
            is_passing = isinstance(error, ApiError) and not (error.is_not_enabled or error.is_beyond_limits)
            if is_passing or self._has_stream:
                back_off = error.back_off_seconds if isinstance(error, NotAllowedError) else None
                raise NotConnectedError(f"no stream for the replies: {why}", back_off) from error
            if not self._warned:
                _log.warning("replies that come while the bridge is away are lost", source=self._own.name, why=why)
            self._warned = True
            return None
        finally:
            connection.close()
