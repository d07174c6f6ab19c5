"""Lag of the router behind its journal, and presence of the topics that it needs; a thread samples both.

Transactions leave markers in the journal, which have offsets but are not records. A tail that consists of markers only
is not a lag; the sampler reads the tail to find that out. Records hidden behind a transaction that stays open, because
Kafka has lost it or its producer takes very long, count as lag.
"""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError
from engine.kafka.clients import NO_GROUP
from engine.kafka.errors import END, KafkaUnavailableError, is_of_unused_group
from engine.kafka.types import KafkaException, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.kafka.clients import KafkaClients
    from engine.kafka.offsets import KafkaOffsets, Offsets

__all__ = ["Lag", "LagSampler"]

_TAIL_AT_MOST = 1000
"""Length in offsets above which a tail is not read: it is assumed to hold records."""
_TAIL_SECONDS = 2.0
_HISTORY = 600
_HIDDEN_SECONDS = 75.0
"""Seconds after which hidden records count; longer than the default `transaction.timeout.ms` of producers."""
_JOIN_SECONDS = 15.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Lag:
    """Lag of the router: the journal records that are not routed yet."""

    records: Mapping[int, int]
    """Number of these records by journal partition."""
    seconds: float
    """Age of the oldest of these records; 0 if there is none."""

    @property
    def total(self) -> int:
        """Number of these records in all partitions."""
        return sum(self.records.values())


@dataclass(slots=True)
class _Partition:
    """State of a journal partition in the sampler."""

    times: array[float] = field(default_factory=lambda: array("d"))
    """Monotonic times of the samples of the partition's end."""
    ends: array[int] = field(default_factory=lambda: array("q"))
    """Offsets of these samples. A record below an end is at least as old as its sample."""
    looked_at: int = -1
    """The position whose tail was read last."""
    empty_until: int = -1
    """Offset up to which there is no record from `looked_at` on; -1 if there is one."""
    hidden: int = 0
    """Number of records behind the end that cannot be read, because a transaction has been open for too long."""
    hidden_since: float | None = None
    """Monotonic time at which records were first seen behind the present end; None if there are none."""

    @property
    def end(self) -> int:
        return self.ends[-1]

    @property
    def is_still(self) -> bool:
        """True if the last two samples have the same end."""
        return len(self.ends) > 1 and self.ends[-2] == self.ends[-1]

    def note(self, end: int, written: int) -> None:
        """Adds a sample: `end` is the end for readers of committed records, `written` that of all records."""
        now = time.monotonic()
        if written <= end or (self.ends and end != self.end):
            self.hidden_since = None
        elif self.hidden_since is None:
            self.hidden_since = now
        is_long = self.hidden_since is not None and now - self.hidden_since > _HIDDEN_SECONDS
        self.hidden = written - end if is_long else 0
        if self.is_still and self.end == end:
            # Of successive samples with the same end, only the first is kept, for the age of records, and the last, to
            # tell that the end still holds.
            self.times.pop()
            self.ends.pop()
        self.times.append(now)
        self.ends.append(end)
        del self.times[:-_HISTORY], self.ends[:-_HISTORY]

    def records(self, position: int) -> int:
        at = max(position, self.empty_until) if position == self.looked_at else position
        return max(0, self.end - at) + self.hidden


class LagSampler:
    """Sampler of the journal's ends and of missing topics, with a thread of its own; safe from any thread."""

    def __init__(
        self,
        kafka: KafkaOffsets,
        clients: KafkaClients,
        journal: str,
        outputs: Sequence[str],
        positions: Offsets,
        interval_seconds: float = 2.0,
    ) -> None:
        """Starts the thread, which asks Kafka every `interval_seconds`.

        `journal` is the topic of the journal, `outputs` are those of destinations and dead letters.
        `positions` holds the first offset to route of each journal partition.
        """
        self._kafka = kafka
        self._clients = clients
        self._journal = journal
        self._outputs = outputs
        self._positions = dict(positions)
        self._interval = interval_seconds
        self._partitions: dict[int, _Partition] = {}
        self._lock = Lock()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="lag", daemon=True)
        self.contact = time.monotonic()
        """Monotonic time of Kafka's last answer."""
        self.error: Exception | None = None
        """Error of the last sample; None if it succeeded."""
        self.missing: frozenset[str] = frozenset()
        """Topics that were missing in the last two samples."""
        self._missing_before: frozenset[str] = frozenset()
        self._thread.start()

    def lag(self, positions: Offsets, times_ms: Mapping[int, int]) -> Lag:
        """The lag of a router that is at `positions`, the next offset of each journal partition.

        `times_ms` holds the journal timestamp of the last routed record of each partition, in milliseconds since 1970.
        """
        with self._lock:
            self._positions = dict(positions)
            records = {number: each.records(positions.get(number, 0)) for number, each in self._partitions.items()}
            ages = [self._age(number, positions, times_ms) for number, count in records.items() if count]
        return Lag(records, max(ages, default=0.0))

    @property
    def hidden(self) -> Mapping[int, int]:
        """First hidden offset of each journal partition whose rest is hidden by a transaction that stays open."""
        with self._lock:
            return {number: each.end for number, each in self._partitions.items() if each.hidden}

    @property
    def partitions(self) -> int:
        """Number of the journal's partitions at the last sample."""
        return len(self._partitions)

    def close(self) -> None:
        """Ends the sampler's thread."""
        self._stop.set()
        self._thread.join(_JOIN_SECONDS)

    def _age(self, number: int, positions: Offsets, times_ms: Mapping[int, int]) -> float:
        position = positions.get(number, 0)
        partition = self._partitions[number]
        first = bisect_right(partition.ends, position)
        hidden_since = partition.hidden_since or time.monotonic()
        since = partition.times[first] if first < len(partition.times) else hidden_since
        if first == 0 and number in times_ms:
            # The record is older than the first sample: its age is about that of the record routed last.
            return max(time.time() - times_ms[number] / 1000, 0.0)
        return time.monotonic() - since

    def sample(self) -> None:
        """Takes a sample now, in the calling thread."""
        try:
            written = self._kafka.ends([self._journal]).get(self._journal, {})
            ends = self._kafka.ends([self._journal], committed=True).get(self._journal, {})
            there = self._kafka.partitions([self._journal, *self._outputs])
            self._note(ends, written)
            self._look_at_tails()
        except (KafkaUnavailableError, HardFailureError) as error:
            self.error = error
        else:
            missing = frozenset({self._journal, *self._outputs} - there.keys())
            # Only topics missing twice count: a broker that has just restarted may not know its topics yet.
            self.missing, self._missing_before = missing & self._missing_before, missing
            self.contact, self.error = time.monotonic(), None

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
                and each.is_still
                and (position != each.looked_at or each.empty_until >= 0)
            }
        for number, until in self._ends_of_nothing(tails).items():
            with self._lock:
                self._partitions[number].looked_at = tails[number]
                self._partitions[number].empty_until = until

    def _ends_of_nothing(self, tails: Offsets) -> Offsets:
        """The end of each partition of which no record follows from its position on, -1 if one does.

        Partitions for which Kafka is too slow are left out.
        """
        ends: Offsets = {}
        if not tails:
            return ends
        client = self._clients.consumer(NO_GROUP, {"enable.partition.eof": True})
        deadline = time.monotonic() + _TAIL_SECONDS
        try:
            client.assign([TopicPartition(self._journal, number, at) for number, at in tails.items()])
            while len(ends) < len(tails) and (left := deadline - time.monotonic()) > 0:
                message = client.poll(left)
                if message is None or (number := message.partition()) is None:
                    continue
                if (error := message.error()) is None:
                    ends[number] = -1
                    client.pause([TopicPartition(self._journal, number)])
                elif error.code() in END:
                    ends.setdefault(number, message.offset() or 0)
                # The consumer group, which Kafka may refuse, is not used here.
                elif not is_of_unused_group(error):
                    break
        except KafkaException as error:
            raise KafkaUnavailableError(str(error)) from error
        finally:
            client.close()
        return ends
