"""The other side of a connector in the conformance suite: what a broker must do so that its source can be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Outgoing:
    """A message as an application sends it."""

    body: bytes = b"hello"
    text: bool = True
    fields: Mapping[str, str] = field(default_factory=dict)
    """JMS fields by name; each harness sends those of `settable`."""
    properties: Mapping[str, str] = field(default_factory=dict)


class Harness(Protocol):
    """One running broker. To join the suite a connector adds its harness to `SOURCES` in `systems`."""

    settable: frozenset[str]
    """JMS fields that a sender can set and that arrive."""
    odd: Mapping[str, str]
    """Properties that are as hard to carry as its wire allows."""
    delivery_mode: str | None
    """The JMSDeliveryMode that messages arrive with; None: they have none."""
    kind: str
    """What the suite's queues arrive as, `queue` or `topic`."""
    largest_bytes: int
    """Of a body that the broker takes."""
    most_properties: int
    """Beside those of `odd`, that a message can have."""
    unreachable: str
    """Part of what is told of a port where nothing listens."""

    @property
    def port(self) -> int:
        """Where it listens, for a proxy to stand in front."""

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        """Keys of `source.NAME`, with their dot and its type, that read this queue, by that port if not its own."""

    def create(self, queue: str) -> None:
        """The queue exists."""

    def send(self, queue: str, messages: Sequence[Outgoing]) -> None:
        """Returns when the broker has them, durably."""

    def waiting(self, queue: str) -> int:
        """Messages in the queue that are not acknowledged, delivered or not."""

    def kill(self) -> None:
        """The broker is gone without a word."""

    def start(self) -> None:
        """The broker is back with everything it had."""
