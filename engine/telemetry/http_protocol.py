"""HTTP connections that cannot be held for ever, nor by everybody: uvicorn waits for a request as long as it takes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

__all__ = ["MOST_CONNECTIONS", "MOST_HEAD_BYTES", "SLICE_BYTES", "BoundedProtocol", "BoundedServer"]

MOST_CONNECTIONS = 100
MOST_HEAD_BYTES = 64 * 1024
"""Of a request's line and headers together."""
SLICE_BYTES = 4096
"""h11 bounds a head only while it is incomplete, so it is given no more than this at a time."""
_HANDSHAKE_SECONDS = 5.0
"""Until then a client of TLS has to have agreed on it; before that there is no connection to count."""
_REQUEST_SECONDS = 15.0
"""From the beginning of a connection, or the last answer on it, until the next answer is on its way."""


class BoundedProtocol(H11Protocol):
    """One connection. Where there are too many, the one that has kept the server waiting longest has to go.

    Requests take milliseconds, so that those who open connections and say nothing push out each other.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            others = cast("set[BoundedProtocol]", self.connections - {self})
            min(others, key=lambda other: other.waiting_since).leave()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        for start in range(0, len(data), SLICE_BYTES):
            # Refused already.
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + SLICE_BYTES])

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """What uvicorn calls when the application has answered."""
        self._wait()
        super().on_response_complete()

    @property
    def waiting_since(self) -> float:
        """When the time for the next request began, by the loop's clock."""
        return self._timer.when() if self._timer is not None else 0.0

    def leave(self) -> None:
        """Ends the connection at once."""
        # `connection_lost` comes a turn of the loop later: until then the next ones would push out this one again.
        self.connections.discard(self)
        # Not closed but aborted: it may also be one that does not read what it has asked for.
        self.transport.abort()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self.leave)


class BoundedServer(uvicorn.Server):
    """uvicorn on sockets that listen already; whoever does not agree on TLS in time is left."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See `uvicorn.Server`, which leaves it to asyncio how long a handshake may take: a minute."""
        loop, config = asyncio.get_running_loop(), self.config
        protocol = cast("Callable[..., asyncio.Protocol]", config.http_protocol_class)
        self.servers = [
            await loop.create_server(
                partial(protocol, config, self.server_state, self.lifespan.state),
                sock=each,
                ssl=config.ssl,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if config.ssl else None,
                backlog=config.backlog,
            )
            for each in sockets or ()
        ]
        self.started = True
