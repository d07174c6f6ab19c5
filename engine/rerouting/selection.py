"""Selection of journal records by position, by offsets, by time, by a predicate, or because no route took them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.explain.explanation import no_route_takes
from engine.message import COPY_OF, Message
from engine.router.past_routes import configuration_of, generation_of, routes_text
from engine.times import iso
from routes.errors import ConfigurationError
from routes.model import Unmatched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.kafka.offsets import KafkaOffsets, Offsets
    from engine.kafka.reader import KafkaTopicReader, LocatedRecord, Position
    from engine.router.generation import Start
    from engine.router.position_store import NotedStart
    from routes.model import Config
    from routes.predicate import Predicate
    from routes.predicate.bodies import DocumentReader

__all__ = ["JournalSelection", "UnroutedRecords", "selected"]

_REPORT_EVERY = 1000


@dataclass(frozen=True, slots=True)
class JournalSelection:
    """Conditions that a journal record has to meet; without any, all records do."""

    positions: tuple[Position, ...] = ()
    """Positions of the records; empty for all."""
    partition: int | None = None
    """Partition of the records; None for all."""
    first: int | None = None
    """First offset in the partition; None for the first one that is there."""
    last: int | None = None
    """Last offset in the partition; None for the last one that is there now."""
    since_ms: int | None = None
    """Least timestamp, in milliseconds since 1970."""
    until_ms: int | None = None
    """Timestamp that comes after those of the records, in milliseconds since 1970."""
    where: Predicate | None = None
    """Predicate that the message has to fulfil."""
    is_unrouted: bool = False
    """True for only those records that no route took when they were read."""

    def check(self) -> None:
        """Raises UsageError if the conditions contradict each other, or if there is none."""
        if self == JournalSelection():
            msg = "say which records: positions (as 0:17), --unrouted, --where, --since or --partition"
            raise UsageError(msg)
        if self.positions and self != JournalSelection(positions=self.positions):
            msg = "positions do not go with options that select records: leave out one or the other"
            raise UsageError(msg)
        if self.partition is None and (self.first is not None or self.last is not None):
            msg = "--from-offset and --to-offset need --partition, as --partition 0: each partition counts for itself"
            raise UsageError(msg)
        if self.first is not None and self.last is not None and self.first > self.last:
            msg = f"the range is empty: --from-offset {self.first} is after --to-offset {self.last}"
            raise UsageError(msg)
        if self.since_ms is not None and self.until_ms is not None and self.since_ms >= self.until_ms:
            msg = f"the range is empty: --since {iso(self.since_ms)} is not before --until {iso(self.until_ms)}"
            raise UsageError(msg)

    def takes_time(self, time_ms: int) -> bool:
        """Returns True if a record's timestamp is in the range."""
        return (self.since_ms is None or time_ms >= self.since_ms) and (
            self.until_ms is None or time_ms < self.until_ms
        )


class UnroutedRecords:
    """Test whether no route took a journal record, by the routes that were in force when it was read."""

    def __init__(self, config: Config, starts: Sequence[NotedStart], documents: DocumentReader | None) -> None:
        """`starts` are those of the router's generations that are known, the oldest first."""
        self._config = config
        self._starts = starts
        self._documents = documents
        self._read: dict[str, Config | None] = {}
        self.unknown = 0
        """Number of records so far of which it is not known which routes were in force."""

    def end(self, partition: int, end: int) -> int:
        """Returns the end of the records of a partition that may be taken, of those before an offset."""
        newest = self._starts[-1].start if self._starts else None
        if newest is None or newest.routes != routes_text(self._config.text):
            return end
        # Of the records behind it, the routes of today took one or are about to, or none would take it again.
        return min(end, newest.positions.get(partition, 0))

    def takes(self, located: LocatedRecord) -> bool:
        """Returns True if certainly no route took the record, and it did not become a dead letter for that."""
        noted = generation_of(self._starts, located.position.partition, located.position.offset)
        then = None if noted is None else self._then(noted.start)
        if then is None:
            self.unknown += 1
            return False
        if then.routing.on_unmatched is Unmatched.DEAD_LETTER:
            return False
        return no_route_takes(located.record, then, self._documents)

    def _then(self, start: Start) -> Config | None:
        if start.routes not in self._read:
            try:
                self._read[start.routes] = configuration_of(start, self._config)
            except ConfigurationError:
                self._read[start.routes] = None  # They refer to a file or a variable that is gone.
        return self._read[start.routes]


def selected(
    selection: JournalSelection,
    reader: KafkaTopicReader,
    kafka: KafkaOffsets,
    takes: Callable[[Message], bool],
    unrouted: UnroutedRecords,
    report: Callable[[int, int], None],
) -> Iterator[LocatedRecord]:
    """Yields the selected records that the journal holds at the time of the call; copies only by their positions.

    Args:
        selection: conditions that have been checked.
        reader: entered reader of the journal.
        kafka: client that finds offsets by time.
        takes: whether a message fulfils the predicate.
        unrouted: test of records for `selection.is_unrouted`.
        report: called with the numbers of records that are read, and that are to be read.

    Raises:
        UsageError: a position or partition does not exist, or retention has removed it.
        HardFailureError: Kafka does not let this user read the journal.
        UnreachableError: Kafka does not answer.
    """
    if selection.positions:
        for position in dict.fromkeys(selection.positions):
            if position.topic != reader.topic:
                msg = f"{position}: the journal is '{reader.topic}', not '{position.topic}'"
                raise UsageError(msg)
            yield reader.at(position.partition, position.offset)
        return
    starts, ends = _bounds(selection, reader, kafka, unrouted)
    left = dict(starts)
    total = sum(ends.values()) - sum(starts.values())
    for number, located in enumerate(reader.read(starts, ends)):
        place = located.position
        left[place.partition] = place.offset + 1
        if number % _REPORT_EVERY == 0:
            report(sum(left.values()) - sum(starts.values()), total)
        if not selection.takes_time(located.time_ms) or not _is_meant(located, selection, unrouted):
            continue
        if selection.where is None or takes(Message.from_record(located.record)):
            yield located
    report(total, total)


def _is_meant(located: LocatedRecord, selection: JournalSelection, unrouted: UnroutedRecords) -> bool:
    """Returns False for copies, so that the same command never copies copies, unless no route took them either."""
    if selection.is_unrouted:
        return unrouted.takes(located)
    return all(name != COPY_OF for name, _ in located.record.headers)


def _bounds(
    selection: JournalSelection, reader: KafkaTopicReader, kafka: KafkaOffsets, unrouted: UnroutedRecords
) -> tuple[Offsets, Offsets]:
    """Returns the first offsets to read and the ends, of the partitions in which there is something to read."""
    bounds = reader.bounds()
    partition, first, last = selection.partition, selection.first, selection.last
    if partition is not None:
        if partition not in bounds:
            msg = f"topic '{reader.topic}' has no partition {partition}, only 0 to {max(bounds)}"
            raise UsageError(msg)
        low, high = bounds[partition]
        there = f"partition {partition} of '{reader.topic}' " + (
            f"holds offsets {low} to {high - 1}" if low < high else "is empty"
        )
        if first is not None and not low <= first < high:
            raise UsageError(f"--from-offset {first}: no such record; {there}")
        if last is not None and not low <= last < high:
            raise UsageError(f"--to-offset {last}: no such record; {there}")
        bounds = {partition: (low if first is None else first, high if last is None else last + 1)}
    if selection.since_ms is not None:
        # Every record before this offset is older; those behind it are compared one by one.
        since = kafka.since([reader.topic], selection.since_ms).get(reader.topic, {})
        bounds = {each: (max(low, since.get(each, low)), high) for each, (low, high) in bounds.items()}
    if selection.is_unrouted:
        bounds = {each: (low, unrouted.end(each, high)) for each, (low, high) in bounds.items()}
    some = {each: pair for each, pair in bounds.items() if pair[0] < pair[1]}
    return {each: low for each, (low, _) in some.items()}, {each: high for each, (_, high) in some.items()}
