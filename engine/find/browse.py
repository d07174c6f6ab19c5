"""Topics of a bridge and their newest records, page by page: read backwards, in bounded time and memory."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.find.places import topic_kinds
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.topics import BridgeTopics
from engine.message import Message
from engine.printable import listed
from routes.predicate.bodies import BOUNDS, Bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.find.question import TopicKind
    from engine.kafka.clients import KafkaClients
    from engine.kafka.offsets import Offsets
    from engine.kafka.reader import LocatedRecord
    from routes.model import Config
    from routes.predicate import Predicate
    from routes.predicate.bodies import DocumentReader

__all__ = ["Browsed", "BrowsedRecord", "BrowsedTopic", "RecordFilter", "browse", "browsed_topics"]

_STEP = 20
"""Number of offsets of each partition that are read at first; each further step reads four times as many."""
_MOST_STEP = 20_000
_MOST_BODY = 64 * 1024
"""Bytes of each body that are kept."""


@dataclass(frozen=True, slots=True)
class BrowsedTopic:
    """A topic of a bridge with messages in it."""

    name: str
    kind: TopicKind
    user: str
    """Parts of the bridge that use the topic, in a few words."""


def browsed_topics(config: Config, seconds: float) -> tuple[BrowsedTopic, ...]:
    """Returns the topics of a bridge: journal, dead letters, destinations, sinks' topics.

    Kafka is asked, `seconds` at most, only if headers choose topics.

    Raises:
        UnreachableError: Kafka does not answer.
    """
    routes = BridgeTopics(config).routes(seconds)
    letters, _, quarantine = config.letter_topics
    users = {config.journal.topic: ["journal"], letters: ["dead letters"], quarantine: ["quarantine"]}
    for name, topic in [
        *((f"sink {sink.name}", sink.topic) for sink in config.sinks),
        *((f"route {route.name}", topic) for route in routes for target in route.targets for topic in target.topics),
    ]:
        users.setdefault(topic, []).append(name)
    return tuple(
        BrowsedTopic(topic, kind, listed(list(dict.fromkeys(users[topic]))))
        for topic, kind in topic_kinds(config, routes).items()
    )


@dataclass(frozen=True, slots=True)
class BrowsedRecord:
    """A record with a body that is cut to 64 KiB."""

    located: LocatedRecord
    size: int
    """Bytes of the whole body."""

    @staticmethod
    def of(located: LocatedRecord) -> BrowsedRecord:
        """Cuts the body of a record."""
        value = located.record.value or b""
        if len(value) <= _MOST_BODY:
            return BrowsedRecord(located, len(value))
        record = replace(located.record, value=value[:_MOST_BODY])
        return BrowsedRecord(replace(located, record=record), len(value))


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """A selection of records: a record is selected if all that is given is true of it."""

    since_ms: int | None = None
    """Time of the oldest record, in milliseconds since 1970."""
    until_ms: int | None = None
    """Time before which a record is, in milliseconds since 1970."""
    where: Predicate | None = None
    """Predicate that the message has to fulfil."""
    bounds: Bounds = field(default=BOUNDS, compare=False)
    """Sizes beyond which the predicate does not see the message's body."""
    documents: DocumentReader | None = field(default=None, compare=False, repr=False)
    """Reader of bodies with a schema for `where`; None if there is no registry."""

    def takes(self, located: LocatedRecord) -> bool:
        """Returns True if a record is selected; raises what `documents` does."""
        return (
            (self.since_ms is None or located.time_ms >= self.since_ms)
            and (self.until_ms is None or located.time_ms < self.until_ms)
            and (
                self.where is None
                or Message.from_record(located.record, self.documents, self.bounds).fulfils(self.where)
            )
        )


@dataclass(frozen=True, slots=True)
class Browsed:
    """Some records of a topic, the newest first, and the place where older ones begin."""

    records: tuple[BrowsedRecord, ...]
    looked_at: int
    """Number of records that were read."""
    in_time: bool
    """False if the time was over before enough records were found or all were read."""
    older: Mapping[int, int]
    """By partition, the offset behind the next older record; empty if there are no older ones."""


def browse(
    clients: KafkaClients,
    topic: str,
    takes: RecordFilter,
    count: int,
    seconds: float,
    before: Mapping[int, int] | None = None,
) -> Browsed:
    """Returns the newest `count` records that a filter takes, of those before the offsets in `before`.

    Each partition is read strictly backwards, and the partitions are merged by time. So the pages of a topic, each with
    `before` as `older` of the page before it, have each record once, whatever the records' times are.

    `until_ms` finds its place through Kafka's index: a record that is late by its own time, behind the first record of
    that time or later, is left out.

    Raises:
        UsageError: the topic does not exist.
        HardFailureError: Kafka does not let this user read it.
        UnreachableError: Kafka does not answer.
    """
    deadline = time.monotonic() + seconds
    with KafkaTopicReader(clients, topic, seconds) as reader:
        bounds = reader.bounds()
        lows = {partition: low for partition, (low, _) in bounds.items()} | _since(clients, topic, takes.since_ms)
        highs = {partition: high for partition, (_, high) in bounds.items()}
        for upper in (before or {}, _since(clients, topic, takes.until_ms)):
            highs |= {p: min(offset, highs[p]) for p, offset in upper.items() if p in highs}
        backwards = _Backwards(reader, takes, lows, highs, deadline)
        records = tuple(_first(iter(backwards), count))
    return Browsed(records, backwards.looked_at, not backwards.is_late, backwards.older())


def _since(clients: KafkaClients, topic: str, time_ms: int | None) -> Offsets:
    return {} if time_ms is None else KafkaOffsets(clients).since([topic], time_ms).get(topic, {})


def _first(records: Iterator[BrowsedRecord], count: int) -> Iterator[BrowsedRecord]:
    # Not `zip` or `islice` behind a check: the iterator must not take a record that is not given.
    while count and (record := next(records, None)) is not None:
        count -= 1
        yield record


class _Backwards:
    """Iterator over the records of a topic from the end, the newest of all partitions' next ones first."""

    def __init__(
        self, reader: KafkaTopicReader, takes: RecordFilter, lows: Offsets, highs: Offsets, deadline: float
    ) -> None:
        self.looked_at = 0
        self.is_late = False
        self._reader = reader
        self._takes = takes
        self._lows = lows
        self._read_to = dict(highs)
        self._waiting: dict[int, deque[BrowsedRecord]] = {partition: deque() for partition in highs}
        self._deadline = deadline
        self._step = _STEP
        self._has_progress = False
        """True if a stretch was read: the first one is read whatever its time, or a slow topic would never go on."""

    def __iter__(self) -> Iterator[BrowsedRecord]:
        while True:
            while not self.is_late and (hungry := self._hungry()):
                self._read(hungry)
            filled = [records for records in self._waiting.values() if records]
            if not filled:
                return
            yield max(filled, key=lambda records: _age(records[0])).popleft()

    def older(self) -> Offsets:
        """By partition, the offset behind the next record; empty at the beginning of the topic."""
        found = {
            partition: records[0].located.position.offset + 1 if records else self._read_to[partition]
            for partition, records in self._waiting.items()
        }
        return found if any(found[partition] > self._lows[partition] for partition in found) else {}

    def _hungry(self) -> list[int]:
        """Partitions with records that were not read yet, and none that waits."""
        return [p for p, records in self._waiting.items() if not records and self._read_to[p] > self._lows[p]]

    def _read(self, partitions: list[int]) -> None:
        starts = {p: max(self._lows[p], self._read_to[p] - self._step) for p in partitions}
        found: dict[int, deque[BrowsedRecord]] = {p: deque() for p in partitions}
        for located in self._reader.read(starts, self._read_to):
            self.looked_at += 1
            if self._takes.takes(located):
                found[located.position.partition].appendleft(BrowsedRecord.of(located))
            if time.monotonic() > self._deadline and self._has_progress:
                # Of these stretches nothing is given: they are read again from the same place.
                self.is_late = True
                return
        self._waiting |= found
        self._read_to |= starts
        self._has_progress = True
        self._step = min(self._step * 4, _MOST_STEP)
        self.is_late = time.monotonic() > self._deadline


def _age(record: BrowsedRecord) -> tuple[int, int, int]:
    at = record.located.position
    return record.located.time_ms, at.partition, at.offset
