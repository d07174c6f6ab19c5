"""What was sent, which of it its broker has acknowledged, and where each message belongs."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple, Protocol

__all__ = ["DEAD", "DESTINATIONS", "KAFKA", "KEYS", "SOURCES", "Issuer", "Ledger", "Number", "Sent"]

SOURCES = ("stomp", "amqp", "nats", "dropbox", "kafka")
KAFKA = "kafka"
"""A topic of Kafka, one for each source."""
DEAD = "dead"
"""The dead-letter topic: the route of these messages asks for a key that they do not have."""
DESTINATIONS = (KAFKA, DEAD, "stomp", "amqp", "nats", "dropbox")
"""Those that are not topics are sinks."""
KEYS = 8
"""Of each source; messages of one key keep their order."""

_TURNS = (KAFKA, "stomp", KAFKA, "amqp", "nats", KAFKA, "dropbox", DEAD)


class Number(NamedTuple):
    """What a message is known by, from its sender to wherever it ends."""

    source: str
    key: int
    sequence: int

    @property
    def destination(self) -> str:
        """Where it has to go, by the routes of the bridge (`system`)."""
        return _TURNS[self.sequence % len(_TURNS)]

    @property
    def correlation_id(self) -> str:
        """What becomes the key of its record."""
        return f"{self.source}-{self.key}"

    @property
    def properties(self) -> dict[str, str]:
        """What the routes look at. Short, since dropboxes have to hold them in file names beside all that AMQP adds."""
        return {"from": self.source, "to": self.destination}

    @property
    def body(self) -> bytes:
        """As long as messages usually are."""
        return f"{self.source}/{self.key}/{self.sequence}/".ljust(200, ".").encode()

    @staticmethod
    def of(body: bytes) -> Number | None:
        """The number in a body; None if no sender has made it."""
        match body.decode(errors="replace").split("/"):
            case [source, key, sequence, _] if key.isdecimal() and sequence.isdecimal():
                return Number(source, int(key), int(sequence))
        return None


@dataclass(slots=True)
class Sent:
    """What is known of a message that was given to a broker."""

    at: float
    """When, on the clock of `time.time`."""
    acknowledged: bool = False
    """Whether the broker has said that it has it; without that it may or may not be there."""


class Issuer(Protocol):
    """Gives numbers to senders."""

    def issue(self, source: str, count: int) -> list[Number]:
        """New ones, the keys in turn."""

    def acknowledge(self, number: Number) -> None:
        """The broker is answerable for it from now on, and then the bridge."""


class Ledger:
    """All that was sent. Each source belongs to one thread; read when they have ended."""

    def __init__(self) -> None:
        self.sent: dict[Number, Sent] = {}
        self._next: dict[tuple[str, int], int] = defaultdict(int)
        self._turns: dict[str, int] = defaultdict(int)

    def issue(self, source: str, count: int) -> list[Number]:
        """New numbers, the keys in turn. A message that may not have arrived is not sent again under its number."""
        issued = []
        for _ in range(count):
            key = self._turns[source] % KEYS
            self._turns[source] += 1
            number = Number(source, key, self._next[source, key])
            self._next[source, key] += 1
            self.sent[number] = Sent(time.time())
            issued.append(number)
        return issued

    def acknowledge(self, number: Number) -> None:
        """As `Issuer`."""
        self.sent[number].acknowledged = True
