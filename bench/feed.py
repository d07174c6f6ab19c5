"""Input of a pass: records that warm a contestant up, and all others in one transaction.

A contestant reads committed records alone, so that it sees the others at once when the transaction is committed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from confluent_kafka import Producer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Feed", "FeedRecord"]

_SECONDS = 60.0
_OPEN_MS = 900_000
"""Time for which the transaction may be open: the greatest that Kafka allows."""


@dataclass(frozen=True, slots=True)
class FeedRecord:
    """Record of an input."""

    partition: int
    time: int
    """Milliseconds since 1970."""
    value: str
    key: str | None = None


class Feed:
    """Records in a topic, the first of which are visible at first."""

    def __init__(self, bootstrap: str, topic: str, records: Iterable[FeedRecord], warm_up: int) -> None:
        """Publishes the records, of which `warm_up` are visible; RuntimeError if Kafka does not take them."""
        self.warm_up = warm_up
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 50, "batch.size": 1 << 19, "log_level": 0}
        left = iter(records)
        _send(Producer(settings), topic, islice(left, warm_up))
        transaction = {"transactional.id": f"bench-{uuid.uuid4().hex}", "transaction.timeout.ms": _OPEN_MS}
        self._producer = Producer(settings | transaction)
        self._producer.init_transactions(_SECONDS)
        self._producer.begin_transaction()
        _send(self._producer, topic, left)

    def release(self) -> None:
        """Makes all records visible."""
        self._producer.commit_transaction(_SECONDS)


def _send(producer: Producer, topic: str, records: Iterable[FeedRecord]) -> None:
    for each in records:
        while True:
            try:
                producer.produce(topic, each.value, each.key, each.partition, timestamp=each.time)
            except BufferError:
                producer.poll(0.1)
            else:
                break
    if producer.flush(_SECONDS):
        msg = f"Kafka has not taken all records of {topic} within a minute"
        raise RuntimeError(msg)
