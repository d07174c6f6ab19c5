"""How far the router is behind its journal, and whether the topics it needs are there: sampled in a thread.

The end of a journal that is written in transactions lies behind markers, which are no records: a tail of markers only
counts as nothing to do. Whether a tail is one is found by reading it. What a transaction hides that nobody ends, since
Kafka has lost it or its producer may take very long, is waiting as well.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from engine.errors import HardFailureError
from engine.kafka import QUIET
from engine.spark.positions import KafkaUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.spark.positions import KafkaOffsets, Offsets

__all__ = ["Lag", "LagSampler"]

_TAIL_AT_MOST = 1000
"""Longer tails are not read to see whether they hold records."""
_TAIL_SECONDS = 2.0
_HISTORY = 600
_HIDDEN_SECONDS = 75.0
"""Longer than Kafka lets producers leave a transaction open, unless they ask for more."""
_JOIN_SECONDS = 15.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Lag:
    """What is still to be routed."""

    records: Mapping[int, int]
    """By journal partition."""
    seconds: float
    """Age of the oldest of them; 0 without one."""

    @property
    def total(self) -> int:
        """Over all partitions."""
        return sum(self.records.values())


@dataclass(slots=True)
class _Partition:
    """One journal partition, as the sampler knows it."""

    ends: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_HISTORY))
    """When (monotonic) the end was where: a record below an end is at least as old as the sample."""
    looked_at: int = -1
    """The position whose tail was read last."""
    empty_until: int = -1
    """Between `looked_at` and here there is no record."""
    hidden: int = 0
    """Records behind the end that cannot be read, because a transaction has been open for long."""
    hidden_since: float | None = None
    """When (monotonic) records were first seen behind the end as it is now, however long that is ago."""

    @property
    def end(self) -> int:
        return self.ends[-1][1]

    def note(self, end: int, written: int) -> None:
        """The end for who reads committed, and that of all records."""
        now = time.monotonic()
        if written <= end or (self.ends and end != self.end):
            self.hidden_since = None
        elif self.hidden_since is None:
            self.hidden_since = now
        is_long = self.hidden_since is not None and now - self.hidden_since > _HIDDEN_SECONDS
        self.hidden = written - end if is_long else 0
        if len(self.ends) > 1 and self.ends[-2][1] == self.end == end:
            # Only the first sample of an end tells an age, only the last one that it still holds.
            self.ends.pop()
        self.ends.append((now, end))

    def records(self, position: int) -> int:
        at = max(position, self.empty_until) if position == self.looked_at else position
        return max(0, self.end - at) + self.hidden


class LagSampler:
    """Asks Kafka about every `interval_seconds` where the journal ends. Safe from any thread."""

    def __init__(
        self,
        kafka: KafkaOffsets,
        consumer: Mapping[str, str],
        journal: str,
        outputs: Sequence[str],
        positions: Offsets,
        interval_seconds: float = 2.0,
    ) -> None:
        """`consumer` are librdkafka's settings, `positions` the first offset to route of each partition."""
        self._kafka = kafka
        self._settings = {
            **consumer,
            "group.id": "unused",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
        }
        self._journal = journal
        self._outputs = outputs
        self._positions = dict(positions)
        self._interval = interval_seconds
        self._partitions: dict[int, _Partition] = {}
        self._lock = Lock()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="lag", daemon=True)
        self.contact = time.monotonic()
        """When (monotonic) Kafka answered last."""
        self.complaint: Exception | None = None
        """What the last answer was, if it was not good."""
        self.missing: frozenset[str] = frozenset()
        """Topics that were not there in the last two samples."""
        self._missing_before: frozenset[str] = frozenset()
        self._thread.start()

    def lag(self, positions: Offsets, times_ms: Mapping[int, int]) -> Lag:
        """The lag of a router that is at `positions` (the next offset of each partition).

        `times_ms` tells when the last routed record of a partition had entered the journal.
        """
        with self._lock:
            self._positions = dict(positions)
            records = {number: each.records(positions.get(number, 0)) for number, each in self._partitions.items()}
            ages = [self._age(number, positions, times_ms) for number, count in records.items() if count]
        return Lag(records, max(ages, default=0.0))

    @property
    def hidden(self) -> Mapping[int, int]:
        """Where a transaction that nobody ends hides the rest of a partition of the journal."""
        with self._lock:
            return {number: each.end for number, each in self._partitions.items() if each.hidden}

    @property
    def partitions(self) -> int:
        """How many the journal has, at the last sample."""
        return len(self._partitions)

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def _age(self, number: int, positions: Offsets, times_ms: Mapping[int, int]) -> float:
        position = positions.get(number, 0)
        partition = self._partitions[number]
        ends = partition.ends
        hidden_since = partition.hidden_since or time.monotonic()
        since = next((at for at, end in ends if end > position), hidden_since)
        if ends[0][1] > position and number in times_ms:
            # From before the first sample: about as old as the record routed last.
            return max(time.time() - times_ms[number] / 1000, 0.0)
        return time.monotonic() - since

    def sample(self) -> None:
        """Asks Kafka now."""
        try:
            written = self._kafka.ends([self._journal]).get(self._journal, {})
            ends = self._kafka.ends([self._journal], committed=True).get(self._journal, {})
            there = self._kafka.partitions([self._journal, *self._outputs])
            self._note(ends, written)
            self._look_at_tails()
        except (KafkaUnavailableError, HardFailureError) as error:
            self.complaint = error
        else:
            missing = frozenset({self._journal, *self._outputs} - there.keys())
            # A broker that has just come back may not know its topics yet.
            self.missing, self._missing_before = missing & self._missing_before, missing
            self.contact, self.complaint = time.monotonic(), None

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            self.sample()

    def _note(self, ends: Offsets, written: Offsets) -> None:
        with self._lock:
            for number, end in ends.items():
                self._partitions.setdefault(number, _Partition()).note(end, written.get(number, end))

    def _look_at_tails(self) -> None:
        with self._lock:
            tails = {
                number: position
                for number, each in self._partitions.items()
                if not each.hidden
                and 0 < each.records(position := self._positions.get(number, 0)) <= _TAIL_AT_MOST
                and len(each.ends) > 1
                and each.ends[-2][1] == each.ends[-1][1]
                and (position != each.looked_at or each.empty_until >= 0)
            }
        for number, position in tails.items():
            until = self._end_of_nothing(number, position)
            if until is None:
                continue
            with self._lock:
                self._partitions[number].looked_at = position
                self._partitions[number].empty_until = until

    def _end_of_nothing(self, number: int, position: int) -> int | None:
        """Where the partition ends, if there is no record from `position` on, else -1; None if Kafka is too slow."""
        consumer = Consumer({**self._settings, **QUIET})
        try:
            consumer.assign([TopicPartition(self._journal, number, position)])
            message = consumer.poll(_TAIL_SECONDS)
            if message is None:
                return None
            error = message.error()
            if error is None:
                return -1
            return message.offset() if error.code() == KafkaError._PARTITION_EOF else None
        except KafkaException as error:
            raise KafkaUnavailableError(str(error)) from error
        finally:
            consumer.close()
