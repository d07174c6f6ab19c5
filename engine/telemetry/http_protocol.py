"""HTTP connections bounded in number and time; uvicorn alone would wait for a request without limit."""

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
"""Limit of a request's line and headers together."""
SLICE_BYTES = 4096
"""Largest piece of data given to h11 at a time: h11 limits a head only while it is incomplete."""
_HANDSHAKE_SECONDS = 5.0
"""Limit for the TLS handshake, before which there is no connection to count."""
_REQUEST_SECONDS = 15.0
"""Limit from the beginning of a connection, or the last answer on it, until the next answer is complete."""


class BoundedProtocol(H11Protocol):
    """An HTTP connection. Above the limit, the connection that has kept the server waiting longest is closed.

    Requests take milliseconds, so clients that open connections and send nothing displace each other.
    """

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Starts the connection's timer and enforces the limit; see `asyncio.Protocol`."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > MOST_CONNECTIONS:
            others = cast("set[BoundedProtocol]", self.connections - {self})
            min(others, key=lambda other: other.waiting_since).leave()

    def data_received(self, data: bytes) -> None:
        """Hands data to h11 in slices; see `asyncio.Protocol`."""
        for start in range(0, len(data), SLICE_BYTES):
            # h11 has refused the request in an earlier slice.
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + SLICE_BYTES])

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops the connection's timer; see `asyncio.Protocol`."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Restarts the timer; uvicorn calls this when the application has answered."""
        self._wait()
        super().on_response_complete()

    @property
    def waiting_since(self) -> float:
        """End of the time allowed for the next answer, by the loop's clock.

        The connection with the lowest value has kept the server waiting longest; 0 before the timer starts.
        """
        return self._timer.when() if self._timer is not None else 0.0

    def leave(self) -> None:
        """Aborts the connection at once."""
        # `connection_lost` comes a turn of the loop later: until then, further new connections would pick this one
        # again.
        self.connections.discard(self)
        # Aborted, not closed: the client may be one that does not read the answer it asked for.
        self.transport.abort()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self.leave)


class BoundedServer(uvicorn.Server):
    """uvicorn on sockets that already listen, with a limit on the TLS handshake."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts serving; `uvicorn.Server` leaves the handshake to asyncio's own limit of a minute."""
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
