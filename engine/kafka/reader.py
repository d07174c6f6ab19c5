"""Reader of a topic for commands: from the beginning, from the end, the last records, or one record by its position.

It reads committed records only, as any consumer would, but leaves nothing behind in Kafka: no group and no offsets. It
holds no more in memory than the caller asks for. The router does not read through this module.
"""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from confluent_kafka import KafkaException, TopicPartition

from engine.errors import UsageError
from engine.kafka.clients import NO_GROUP
from engine.kafka.errors import END, MISSING, PASSING, is_invalid_name, is_of_unused_group, refusal, unavailable
from engine.message import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType

    from confluent_kafka import KafkaError
    from confluent_kafka import Message as KafkaMessage

    from engine.errors import UnreachableError
    from engine.kafka.clients import KafkaClients

__all__ = ["ANSWER_SECONDS", "KafkaTopicReader", "LocatedRecord", "Position"]

ANSWER_SECONDS = 10.0
"""Longest wait for each answer of Kafka, in seconds."""

_POLL_SECONDS = 0.2
_SCATTERED = {"fetch.wait.max.ms": "5", "fetch.queue.backoff.ms": "5"}
"""Consumer settings for many reads at scattered positions: after a seek the client first waits for the answer to the
fetch under way at the old position, and then pauses before the next fetch. Both waits are shortened, in
milliseconds."""
_BATCH = 500
_NUMBER = re.compile("[0-9]{1,19}")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Position of a record: topic, partition and offset."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"

    @staticmethod
    def parse(text: str, topic: str) -> Position:
        """Parses `partition:offset`, which means a record of `topic`, or `topic:partition:offset`.

        Raises:
            UsageError: the text has another form.
        """
        *names, partition, offset = ["", "", *text.rsplit(":", 2)][-3:]
        if not (_NUMBER.fullmatch(partition) and _NUMBER.fullmatch(offset)):
            msg = f"{text!r} is not a position: expected PARTITION:OFFSET, as 0:17, or TOPIC:PARTITION:OFFSET"
            raise UsageError(msg)
        return Position(names[0] or topic, int(partition), int(offset))


@dataclass(frozen=True, slots=True)
class LocatedRecord:
    """Record with its position and timestamp."""

    position: Position
    time_ms: int
    """Kafka's timestamp, in milliseconds since 1970; -1 if the record has none."""
    record: Record

    @staticmethod
    def of(message: KafkaMessage) -> LocatedRecord:
        """Converts a record of the Kafka client."""
        given: list[tuple[str, str | bytes | None]] = message.headers() or []  # type: ignore[assignment] # never a dict
        headers = tuple((name, _bytes(value)) for name, value in given)
        record = Record(_bytes(message.key()), _bytes(message.value()), headers)
        position = Position(str(message.topic()), message.partition() or 0, message.offset() or 0)
        return LocatedRecord(position, message.timestamp()[1], record)


class KafkaTopicReader:
    """Reader of one topic; a context manager.

    Entering it raises:
        UsageError: the topic does not exist.
        HardFailureError: Kafka does not let this user read the topic.
        UnreachableError: Kafka does not answer.
    """

    def __init__(
        self, clients: KafkaClients, topic: str, answer_seconds: float = ANSWER_SECONDS, *, scattered: bool = False
    ) -> None:
        """Makes the consumer.

        `answer_seconds` is the longest wait for each answer of Kafka; `scattered` suits reads of many records by their
        positions.
        """
        self.topic = topic
        self._answer_seconds = answer_seconds
        self._servers = clients.servers
        self._trouble = ""
        settings = {"enable.partition.eof": True, "auto.offset.reset": "earliest", "error_cb": self._remember}
        # At the end of a partition Kafka holds back its answer this long, and the next request waits behind it.
        defaults = {"fetch.wait.max.ms": "100"}
        self._consumer = clients.consumer(NO_GROUP, settings | (_SCATTERED if scattered else {}), defaults)

    def __enter__(self) -> Self:
        try:
            self._partitions = self._find()
        except BaseException:
            self._consumer.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def bounds(self) -> dict[int, tuple[int, int]]:
        """First offset and the offset behind the last record, by partition."""
        return {partition: self._watermarks(partition) for partition in self._partitions}

    def read(
        self,
        starts: Mapping[int, int],
        ends: Mapping[int, int] | None = None,
        *,
        follow: bool = False,
        idle_seconds: float | None = None,
    ) -> Iterator[LocatedRecord]:
        """Yields records from the offsets in `starts`, in order within each partition.

        Ends at the end of every partition, or at each partition's offset in `ends`. With `follow` it waits there for
        more records, until none has come for `idle_seconds` (None: for ever). The time that the caller spends on a
        record does not count as idle.

        Raises:
            UsageError: the topic does not exist.
            HardFailureError: Kafka does not let this user read the topic.
            UnreachableError: Kafka does not answer.
        """
        if not starts:
            return
        self._consumer.assign([TopicPartition(self.topic, partition, offset) for partition, offset in starts.items()])
        # At an end that is known, Kafka need not be asked for more, which it answers late.
        open_partitions = {each for each, start in starts.items() if ends is None or start < ends[each]}
        quiet_since = time.monotonic()
        while follow or open_partitions:
            for message in self._poll():
                error = message.error()
                if error is None:
                    located = LocatedRecord.of(message)
                    end = None if ends is None else ends[located.position.partition]
                    if end is None or located.position.offset < end:
                        yield located
                    if end is not None and located.position.offset + 1 >= end:
                        open_partitions.discard(located.position.partition)
                    quiet_since = time.monotonic()
                elif error.code() in END:
                    open_partitions.discard(message.partition())
                else:
                    raise self._translated(error)
            quiet = time.monotonic() - quiet_since
            if follow and idle_seconds is not None and quiet >= idle_seconds:
                return
            if not follow and quiet >= self._answer_seconds:
                raise self._unreachable()

    def present(self) -> Iterator[LocatedRecord]:
        """Yields the records that the topic holds at the time of the call, not those that arrive during the reading."""
        bounds = self.bounds().items()
        return self.read({partition: low for partition, (low, _) in bounds}, {p: high for p, (_, high) in bounds})

    def last(self, count: int, takes: Callable[[LocatedRecord], bool] = lambda _: True) -> list[LocatedRecord]:
        """Returns the newest `count` records of all partitions together that `takes` is true for, oldest first."""
        newest: list[LocatedRecord] = []
        for partition, (low, high) in self.bounds().items():
            newest += self._last_of(partition, low, high, count, takes)
        newest.sort(key=lambda located: (located.time_ms, located.position))
        return newest[-count:]

    def at(self, partition: int, offset: int) -> LocatedRecord:
        """Returns the record at a partition and offset.

        Raises:
            UsageError: the topic has no such partition, or no record at that offset.
        """
        place = f"{self.topic}:{partition}:{offset}"
        if partition not in self._partitions:
            msg = f"{place}: topic '{self.topic}' has no partition {partition}, only 0 to {max(self._partitions)}"
            raise UsageError(msg)
        low, high = self._watermarks(partition)
        if not low <= offset < high:
            there = f"it holds offsets {low} to {high - 1}" if low < high else "it is empty"
            msg = f"{place}: no such record; partition {partition} of '{self.topic}': {there}"
            raise UsageError(msg)
        found = next(self.read({partition: offset}), None)
        if found is None or found.position.offset != offset:
            msg = f"{place}: no record has this offset (compacted away, or a transaction marker)"
            raise UsageError(msg)
        return found

    def _last_of(
        self, partition: int, low: int, high: int, count: int, takes: Callable[[LocatedRecord], bool]
    ) -> deque[LocatedRecord]:
        # Transaction markers and compaction leave gaps in the offsets, and not every record is taken, so reading goes
        # back further until there are enough records.
        span = count
        while True:
            start = max(low, high - span)
            found = deque(filter(takes, self._until(partition, start, high)), maxlen=count)
            if len(found) == count or start == low:
                return found
            span *= 4

    def _until(self, partition: int, start: int, end: int) -> Iterator[LocatedRecord]:
        return self.read({partition: start}, {partition: end}) if start < end else iter(())

    def _poll(self) -> list[KafkaMessage]:
        try:
            # `consume` waits for all the messages asked for or until its time is over, so it takes only those already
            # fetched.
            first = self._consumer.poll(_POLL_SECONDS)
            found = [] if first is None else [first, *self._consumer.consume(_BATCH - 1, 0)]
        except KafkaException as error:
            raise self._translated(error.args[0]) from error
        return [message for message in found if not is_of_unused_group(message.error())]

    def _find(self) -> tuple[int, ...]:
        try:
            found = self._consumer.list_topics(self.topic, timeout=self._answer_seconds).topics[self.topic]
        except KafkaException as error:
            raise self._translated(error.args[0]) from error
        if found.error is not None:
            raise self._translated(found.error)
        return tuple(sorted(found.partitions))

    def _watermarks(self, partition: int) -> tuple[int, int]:
        deadline = time.monotonic() + self._answer_seconds
        while True:
            try:
                low, high = self._consumer.get_watermark_offsets(
                    TopicPartition(self.topic, partition), timeout=self._answer_seconds
                )
            except KafkaException as error:
                # A partition without a leader is refused at once.
                if error.args[0].code() in PASSING and time.monotonic() < deadline:
                    time.sleep(_POLL_SECONDS)
                    continue
                raise self._translated(error.args[0]) from error
            return low, high

    def _remember(self, error: KafkaError) -> None:
        self._trouble = error.str()

    def _translated(self, error: KafkaError) -> Exception:
        if error.code() in MISSING:
            return UsageError(f"topic '{self.topic}' does not exist on Kafka at {self._servers}")
        if is_invalid_name(error):
            return UsageError(f"'{self.topic}' is not a valid topic name (a-z, A-Z, 0-9, '.', '_' and '-')")
        return refusal(error, self._servers, f"topic '{self.topic}'") or self._unreachable(error.str())

    def _unreachable(self, why: str = "") -> UnreachableError:
        return unavailable(self._servers, self._trouble or why or "no records came")


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
