"""Bounded look-ups of records: one by its position, or those of a topic from a time on, a key's partition first."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from engine.kafka.offsets import KafkaOffsets
from engine.kafka.partitions import partition_of
from engine.kafka.reader import KafkaTopicReader
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from engine.kafka.clients import KafkaClients
    from engine.kafka.offsets import Offsets
    from engine.kafka.reader import LocatedRecord, Position

__all__ = ["LookUp", "RecordLookup"]

_MOST = 100_000
"""Greatest number of records that a look-up reads from its time on, and of those before it."""
_MARGIN_MS = 60_000
"""Milliseconds before its time for which a look-up reads too: the clocks of those who write may differ."""
_FAR, _NEAR, _PROBE = 20_000, 2_000, 500
"""Offsets of a partition from which on a look-up of an ordered record halves the stretch instead of reading it whole,
those that it then reads whole, and the most records that it reads to find out on which half the record is."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Result of a look-up in one topic."""

    topic: str
    since_ms: int
    """Time from which on records were read, in milliseconds since 1970."""
    found: tuple[LocatedRecord, ...] = ()
    read: int = 0
    """Number of records that were read."""
    is_complete: bool = True
    """True if no record from that time on was left out."""
    has_gap: bool = False
    """True if retention has removed the beginning of a partition, with records that may be later than that time."""
    is_topic: bool = True
    """False if there is no such topic."""

    @property
    def extent(self) -> str:
        """The extent of the reading, as words behind "not found"."""
        if not self.is_topic:
            return f"there is no topic '{self.topic}'"
        reach = "to the end" if self.is_complete else "and no further, the most that are read"
        gap = "; retention has removed older ones" if self.has_gap else ""
        return f"among {self.read:,} records of '{self.topic}' from {iso(self.since_ms)} on, {reach}{gap}"


class RecordLookup:
    """Reader of single records and of stretches of topics; it leaves nothing behind in Kafka.

    Every method raises `UnreachableError` if Kafka does not answer, and `HardFailureError` if it refuses access.
    """

    def __init__(self, clients: KafkaClients, most: int = _MOST) -> None:
        """`most` is the greatest number of records that a look-up reads from its time on, and of those before it."""
        self._clients = clients
        self._most = most
        self.offsets = KafkaOffsets(clients)

    def at(self, position: Position) -> LocatedRecord:
        """Returns the record at a position; UsageError if there is none."""
        with KafkaTopicReader(self._clients, position.topic) as reader:
            return reader.at(position.partition, position.offset)

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """First offset and the offset behind the last record, by partition; UsageError if there is no such topic."""
        with KafkaTopicReader(self._clients, topic) as reader:
            return reader.bounds()

    def look(
        self,
        topic: str,
        since_ms: int,
        takes: Callable[[LocatedRecord], bool],
        *,
        key: bytes | None = None,
        only_first: bool = False,
        order: Callable[[LocatedRecord], int | None] | None = None,
    ) -> LookUp:
        """Looks for the records of a topic with timestamp `since_ms` or later that `takes` is true for.

        Records of the minute before are read if nothing is found. With `order` a record is also found if far more
        records than a look-up reads are between the time and the record, in a partition that is in order.

        Args:
            topic: name of the topic, which need not exist.
            since_ms: milliseconds since 1970.
            takes: true for a record that is wanted.
            key: key of the records, if it is known.
            only_first: end with the first record.
            order: negative for a record before the wanted one in its partition, positive for one behind it, 0 for it;
                None for a record that does not tell.
        """
        ends = self.offsets.ends([topic], committed=True).get(topic)
        if ends is None:
            return LookUp(topic, since_ms, is_topic=False)
        firsts = self.offsets.starts([topic]).get(topic, {})
        after = self.offsets.since([topic], since_ms).get(topic, {})
        has_gap = any(0 < firsts.get(partition, 0) >= at for partition, at in after.items())
        groups = _groups(ends, key)
        if order is not None and (ordered := self._ordered(topic, after, ends, groups, order)):
            return LookUp(topic, since_ms, (ordered,))
        found, read, is_complete = self._read(topic, after, ends, groups, takes, only_first)
        if not found:
            before = self.offsets.since([topic], since_ms - _MARGIN_MS).get(topic, {})
            found, more, is_whole = self._read(topic, before, after, groups, takes, only_first)
            read, is_complete, since_ms = read + more, is_complete and is_whole, since_ms - _MARGIN_MS
        return LookUp(topic, since_ms, tuple(found), read, is_complete, has_gap)

    def _read(
        self,
        topic: str,
        starts: Offsets,
        ends: Offsets,
        groups: list[list[int]],
        takes: Callable[[LocatedRecord], bool],
        only_first: bool,
    ) -> tuple[list[LocatedRecord], int, bool]:
        """Records that are taken, the number of those read, and whether none was left out for their number."""
        found: list[LocatedRecord] = []
        count = 0
        with closing(self._records(topic, starts, ends, groups)) as records:
            for located in records:
                if count >= self._most:
                    return found, count, False
                count += 1
                if takes(located):
                    found.append(located)
                    if only_first:
                        break
        return found, count, True

    def _ordered(
        self,
        topic: str,
        starts: Offsets,
        ends: Offsets,
        groups: list[list[int]],
        order: Callable[[LocatedRecord], int | None],
    ) -> LocatedRecord | None:
        """The record in a long partition, by halving; None if there is none, or if the records are not in order."""
        far = [each for group in groups for each in group if ends[each] - starts.get(each, 0) > _FAR]
        if not far:
            return None
        with KafkaTopicReader(self._clients, topic, scattered=True) as reader:
            for partition in far:
                low, high = starts.get(partition, 0), ends[partition]
                while high - low > _NEAR:
                    middle = (low + high) // 2
                    read = islice(reader.read({partition: middle}, {partition: high}), _PROBE)
                    place = next((sign for each in read if (sign := order(each)) is not None), None)
                    # None: the rest has no record that tells, so the record is before it.
                    low, high = (middle, high) if place is not None and place <= 0 else (low, middle)
                rest = islice(reader.read({partition: low}, {partition: ends[partition]}), _NEAR + _PROBE)
                if found := next((each for each in rest if order(each) == 0), None):
                    return found
        return None

    def _records(
        self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int], groups: list[list[int]]
    ) -> Generator[LocatedRecord]:
        """Yields the records of one group of partitions after the other."""
        wanted = [[each for each in group if starts.get(each, 0) < ends.get(each, 0)] for group in groups]
        if not any(wanted):
            return
        with KafkaTopicReader(self._clients, topic) as reader:
            for group in filter(None, wanted):
                yield from reader.read(
                    {each: starts.get(each, 0) for each in group}, {each: ends[each] for each in group}
                )


def _groups(partitions: Offsets, key: bytes | None) -> list[list[int]]:
    """All partitions, in the order of reading."""
    if key is None:
        return [sorted(partitions)]
    own = partition_of(key, len(partitions))
    return [[own], [each for each in sorted(partitions) if each != own]]
