"""Input of a pass: events that warm a contestant up, and all others in one transaction.

A contestant reads committed records alone, so that it sees the others at once when the transaction is committed.
"""

from __future__ import annotations

import uuid
from itertools import islice
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from bench.broker import PARTITIONS
from bench.nexmark.events import events

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bench.nexmark.events import Event

__all__ = ["Feed"]

_SECONDS = 60.0
_OPEN_MS = 900_000
"""Time for which the transaction may be open: the greatest that Kafka allows."""


class Feed:
    """Events in a topic, of which the first tenth is visible at first."""

    def __init__(self, bootstrap: str, topic: str, count: int) -> None:
        """Publishes `count` events; RuntimeError if Kafka does not take them."""
        self.warm_up = count // 10
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1 << 19, "log_level": 0}
        made = enumerate(events(count))
        _send(Producer(settings), topic, islice(made, self.warm_up))
        transaction = {"transactional.id": f"bench-{uuid.uuid4().hex}", "transaction.timeout.ms": _OPEN_MS}
        self._producer = Producer(settings | transaction)
        self._producer.init_transactions(_SECONDS)
        self._producer.begin_transaction()
        _send(self._producer, topic, made)

    def release(self) -> None:
        """Makes all events visible."""
        self._producer.commit_transaction(_SECONDS)


def _send(producer: Producer, topic: str, numbered: Iterable[tuple[int, Event]]) -> None:
    for number, event in numbered:
        while True:
            try:
                producer.produce(topic, event.value, partition=number % PARTITIONS, timestamp=event.time)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if producer.flush(_SECONDS):
        msg = f"Kafka has not taken all events of {topic} within a minute"
        raise RuntimeError(msg)
