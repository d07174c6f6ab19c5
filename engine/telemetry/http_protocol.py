"""HTTP connections that cannot be held for ever, nor by everybody: uvicorn waits for a request as long as it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["MOST_CONNECTIONS", "BoundedProtocol"]

MOST_CONNECTIONS = 100
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
            min(others, key=lambda other: other.waiting_since).transport.abort()

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

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Not closed but aborted: it may also be one that does not read what it has asked for.
        abort: Any = self.transport.abort
        self._timer = self.loop.call_later(_REQUEST_SECONDS, abort)
