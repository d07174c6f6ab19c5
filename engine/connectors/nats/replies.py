"""Source of replies over NATS, read from a JetStream stream so that none is lost while the bridge is not connected.

A service sends its reply once, to the subscribers of that moment. With JetStream, a stream stores the replies and the
source reads that stream. Without JetStream, the source subscribes, and replies sent while it is not connected are lost.
It never subscribes while there is a stream: the stream would deliver the same replies again under another message id.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog
from nats.errors import NoRespondersError

from engine.connectors.base import NotConnectedError, WrappedSource
from engine.connectors.nats.connection import Connection, NotAllowedError
from engine.connectors.nats.jetstream import ApiError, ensure_stream
from engine.connectors.nats.source import NatsSource

if TYPE_CHECKING:
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["NatsReplies"]

_log = structlog.get_logger(__name__)


class NatsReplies(WrappedSource):
    """Source of replies: a `NatsSource` that is made anew at each connection, with or without a stream."""

    def __init__(self, endpoint: SystemEndpoint[NatsSourceConfig], worker: int) -> None:
        """Reads TLS and credentials files; does not connect.

        Raises:
            SetupError: a TLS or credentials file is missing or invalid.
        """
        super().__init__(NatsSource(endpoint, worker))
        self._endpoint = endpoint
        self._own = endpoint.settings
        self._worker = worker
        self._has_stream = False
        self._warned = False

    def connect(self) -> None:
        """Connects; finds or creates the stream first.

        Raises:
            NotConnectedError: also if it cannot be found out now whether there can be a stream, or if there was one
                before and there is none now.
        """
        self.close()
        stream = self._stream()
        self._has_stream = stream is not None
        self._source = NatsSource(replace(self._endpoint, settings=replace(self._own, stream=stream)), self._worker)
        super().connect()

    def _stream(self) -> str | None:
        """Returns the name of the stream of the replies; None if there can be none and there was none before."""
        connection = Connection(self._endpoint)
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
                _log.warning("replies are lost while the bridge is not connected", source=self._own.name, why=why)
            self._warned = True
            return None
        finally:
            connection.close()
