"""Fair turns: the client that has used the least processor time goes first, and before that its address.

The time of each is counted from that of the others that were waiting when it came, so that no time is saved up.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

__all__ = ["ClientTurns", "Owner", "TimedClient"]


class Owner:
    """The address that clients connect from, or the certificate that they show."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clients = 0
        """Connections."""
        self.used = 0.0
        """Processor time, in seconds."""
        self.least = 0.0
        """Processor time of the client that had the last turn."""


class TimedClient(Protocol):
    """A client as `ClientTurns` needs it."""

    owner: Owner
    used: float
    """Processor time, in seconds."""


Client = TypeVar("Client", bound=TimedClient)


class ClientTurns(Generic[Client]):
    """Clients that have something to be read."""

    def __init__(self) -> None:
        self._ready: dict[Owner, list[tuple[float, int, Client]]] = {}
        """Heaps by processor time, and by arrival where that is the same."""
        self._waiting: set[Client] = set()
        self._least = 0.0
        self._arrivals = 0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, client: Client) -> None:
        """A client has something to be read; adding it twice does nothing."""
        if client in self._waiting:
            return
        owner = client.owner
        owner.used = max(owner.used, self._least)
        client.used = max(client.used, owner.least)
        self._arrivals += 1
        heappush(self._ready.setdefault(owner, []), (client.used, self._arrivals, client))
        self._waiting.add(client)

    def discard(self, client: Client) -> None:
        """A client is gone."""
        if client not in self._waiting:
            return
        self._waiting.discard(client)
        line = [each for each in self._ready.pop(client.owner) if each[2] is not client]
        if line:
            heapify(line)
            self._ready[client.owner] = line

    def pop(self) -> Client:
        """The client whose turn it is. ValueError: there is none."""
        owner = min(self._ready, key=lambda each: each.used)
        client = heappop(self._ready[owner])[2]
        if not self._ready[owner]:
            del self._ready[owner]
        self._waiting.discard(client)
        self._least, owner.least = owner.used, client.used
        return client

    @staticmethod
    def charge(client: Client, seconds: float) -> None:
        """A client has used so much processor time."""
        client.used += seconds
        client.owner.used += seconds
