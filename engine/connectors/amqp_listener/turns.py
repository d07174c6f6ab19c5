"""Fair turns among the clients of a listener, by the processor time that they have used.

The address (or certificate) that has used the least time goes first, and of its clients the one that has used the
least. An address or client that becomes ready starts with at least the time of the one that had the last turn, so that
no time can be saved up.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

__all__ = ["ClientTurns", "Owner", "TimedClient"]


class Owner:
    """Address that clients connect from, or certificate that they show."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clients = 0
        """Number of connections."""
        self.used = 0.0
        """Processor time of all its clients, in seconds."""
        self.least = 0.0
        """Processor time of its client that had the last turn, in seconds."""


class TimedClient(Protocol):
    """Client with an owner and a processor time, as `ClientTurns` needs it."""

    owner: Owner
    used: float
    """Processor time, in seconds."""


AnyClient = TypeVar("AnyClient", bound=TimedClient)


class ClientTurns(Generic[AnyClient]):
    """Clients that have input to read, in the order of their turns."""

    def __init__(self) -> None:
        self._ready: dict[Owner, list[tuple[float, int, AnyClient]]] = {}
        """Heap of clients by owner, ordered by processor time, then by arrival."""
        self._waiting: set[AnyClient] = set()
        self._least = 0.0
        self._arrivals = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, client: AnyClient) -> None:
        """Adds a client that has input to read; adding it twice does nothing."""
        if client in self._waiting:
            return
        owner = client.owner
        owner.used = max(owner.used, self._least)
        client.used = max(client.used, owner.least)
        self._arrivals += 1
        heappush(self._ready.setdefault(owner, []), (client.used, self._arrivals, client))
        self._waiting.add(client)

    def discard(self, client: AnyClient) -> None:
        """Removes a client, if it is there."""
        if client not in self._waiting:
            return
        self._waiting.discard(client)
        line = [each for each in self._ready.pop(client.owner) if each[2] is not client]
        if line:
            heapify(line)
            self._ready[client.owner] = line

    def pop(self) -> AnyClient:
        """Removes and returns the client whose turn it is. Raises ValueError if there is none."""
        owner = min(self._ready, key=lambda each: each.used)
        client = heappop(self._ready[owner])[2]
        if not self._ready[owner]:
            del self._ready[owner]
        self._waiting.discard(client)
        self._least, owner.least = owner.used, client.used
        return client

    @staticmethod
    def charge(client: AnyClient, seconds: float) -> None:
        """Adds processor time to a client and its owner."""
        client.used += seconds
        client.owner.used += seconds
