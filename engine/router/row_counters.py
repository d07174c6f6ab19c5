"""Counts of routed rows, which the router's JVM makes row by row, as Python values.

Spark reports its progress once per interval, which in real-time mode is far too late for a metric. Therefore the class
`jmsbridge.figures.RowCounters` counts inside the JVM (`jvm/spark`): the sink calls it for each row, `read` fetches the
figures in one call. Its state is static in each JVM. In a session with executors, these report to the driver's JVM; the
figures of all are added up here.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from engine.telemetry.metrics import LATENCY_BUCKETS_SECONDS, UNMATCHED
from routes.model import Policy
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from engine.router.plan.route import RoutingOutcome

__all__ = ["BUCKETS", "INTERCEPTOR", "Example", "Note", "RefusedMessage", "RowCounters", "RowCounts", "SendFailure"]

INTERCEPTOR = "jmsbridge.figures.Sends"
"""Class for the `interceptor.classes` of the sink's producers; it counts `sent`, `acknowledged` and `failed`."""

BUCKETS = len(LATENCY_BUCKETS_SECONDS) + 1
"""Number of latency buckets in a reading; the last one is for longer times."""
_BOUNDS_MS = [round(1000 * bound) for bound in LATENCY_BUCKETS_SECONDS]

_CLOCK = "jmsbridge_now"
_EMITS, _TIMED, _NOTED, _BY_DESTINATION = 1, 2, 4, 8
_KINDS = {"routed": _EMITS | _TIMED, Policy.SKIP.value: _NOTED, Policy.DEAD_LETTER.value: _EMITS | _NOTED}


def _kind(outcome: RoutingOutcome) -> int:
    if outcome.kind == "unrouted" and outcome.reason == UNMATCHED:
        return _BY_DESTINATION
    # Held messages are counted; that they are held is on purpose, so none is worth a note.
    return _KINDS.get(outcome.kind, 0) & ~(_NOTED if outcome.reason == HELD else 0)


@dataclass(frozen=True, slots=True)
class Note:
    """Note about a message that failed softly."""

    outcome: int
    """Index into the outcomes that `begin` was called with."""
    publication: int | None
    """Index of the publication in the configuration; None if no route took the message."""
    partition: int
    """Journal partition of the message, with `offset` its position."""
    offset: int
    time_ms: int
    """Journal timestamp in milliseconds since 1970."""
    message: str
    """First 200 characters of the message's JMSMessageID; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Example:
    """Example of a message in a latency bucket, by its journal position."""

    partition: int
    offset: int
    latency_ms: int
    time_ms: int
    """Time of its routing in milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class SendFailure:
    """Failure of the first record that Kafka did not take."""

    topic: str
    kind: str
    """Java class of the error."""
    detail: str
    """Message of the error."""


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """Message whose record Kafka has refused for its own sake."""

    partition: int
    """Journal partition of the message, with `offset` its position."""
    offset: int
    copy: int
    """Number of the copy of the message, from 0."""
    failure: SendFailure

    @classmethod
    def of(cls, encoded: str) -> RefusedMessage:
        """Reads what `jmsbridge.figures.Sends` tells."""
        partition, offset, copy, *failure = base64.b64decode(encoded).decode().split("\n", 5)
        return cls(int(partition), int(offset), int(copy), SendFailure(*failure))


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Reading of the JVM's figures since `begin`."""

    counts: tuple[tuple[int, ...], ...]
    """Rows by outcome; for each outcome, rows without a publication, then rows of each publication."""
    emitted: int
    """Rows that become a record, including rows that are routed again and not counted again."""
    sent: int
    """Records given to producers; while it is less than `emitted`, rows are on their way to a producer."""
    acknowledged: int
    failed: int
    failure: SendFailure | None
    buckets: tuple[int, ...]
    latency_seconds: float
    """Sum of the latencies of all routed rows."""
    examples: tuple[Example | None, ...]
    """A recent message for each latency bucket; None for a bucket without messages."""
    processed: Mapping[int, int]
    """Offset of the last routed row by journal partition; partitions without a row are left out."""
    times_ms: Mapping[int, int]
    """Journal timestamp of that row by journal partition, in milliseconds since 1970."""
    notes: tuple[Note, ...]
    """Notes about failures since the last reading, as far as the JVM had room for them."""
    unnoted: int
    """Number of failures since `begin` for which the JVM had no room."""
    reading: frozenset[int] = frozenset()
    """Journal partitions that tasks of real-time mode wait on or read."""
    looked: bool = False
    """True once a task of batch mode has read all of its first batch, or there was nothing to read."""
    refused: tuple[RefusedMessage, ...] = ()
    """Messages that Kafka has refused since `begin`, a thousand of each process at most."""
    destinations: Mapping[str, int] = field(default_factory=dict)
    """Messages that no route took, by their JMSDestination, cut to 200 characters; empty for those without one."""
    elsewhere: int = 0
    """Number of such messages to further destinations: of each process, 100 are told apart."""

    @classmethod
    def of(cls, processes: Sequence[Mapping[str, Any]]) -> RowCounts:
        """Adds up what `RowCounters` of Java tells of each process; they share the partitions of the journal."""
        cells = [0] * (processes[0]["outcomes"] * processes[0]["width"])
        marks: dict[int, tuple[int, int]] = {}
        for figures in processes:
            # Only what is not 0 is listed: of many executors, each has a few of many partitions.
            for cell, count in _tuples(figures["counts"], 2):
                cells[cell] += count
            for partition, *mark in _tuples(figures["marks"], 3):
                marks[partition] = max(marks.get(partition, (-1, 0)), (mark[0], mark[1]))

        destinations: dict[str, int] = {}
        for figures in processes:
            for encoded, count in figures["destinations"]:
                text = base64.b64decode(encoded).decode()
                destinations[text] = destinations.get(text, 0) + count

        def total(name: str) -> int:
            return sum(figures[name] for figures in processes)

        def together(name: str) -> Iterator[tuple[Any, ...]]:
            return zip(*(figures[name] for figures in processes), strict=True)

        examples = (next(filter(None, each), None) for each in together("examples"))
        return cls(
            counts=tuple(_tuples(cells, processes[0]["width"])),
            emitted=total("emitted"),
            sent=total("sent"),
            acknowledged=total("acknowledged"),
            failed=total("failed"),
            failure=_failure(next(filter(None, (figures["failure"] for figures in processes)), "")),
            buckets=tuple(map(sum, together("buckets"))),
            latency_seconds=total("latency_ms") / 1000,
            examples=tuple(example and Example(*example) for example in examples),
            processed={partition: offset for partition, (offset, _) in marks.items()},
            times_ms={partition: time_ms for partition, (_, time_ms) in marks.items() if time_ms >= 0},
            notes=tuple(_note(note) for figures in processes for note in figures["notes"]),
            unnoted=total("unnoted"),
            reading=frozenset(partition for figures in processes for partition in figures["reading"]),
            looked=any(figures["looked"] for figures in processes),
            refused=tuple(RefusedMessage.of(each) for figures in processes for each in figures["refused"]),
            destinations=destinations,
            elsewhere=total("elsewhere"),
        )

    @property
    def settled(self) -> bool:
        """True if Kafka has acknowledged all decided records: none failed, none is under way."""
        return self.emitted == self.sent == self.acknowledged


class RowCounters:
    """Counters in the JVM; `begin` has to be called before the query whose rows are counted."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.jmsbridge.figures.RowCounters
        self._executors = jvm.jmsbridge.cluster.Executors
        types = jvm.org.apache.spark.sql.types.DataTypes
        _register(spark, _CLOCK, jvm.jmsbridge.Clock(), "UDF0", types.LongType)

    def now(self) -> Column:
        """The time at each row in milliseconds since 1970; `current_timestamp` stands still within an interval."""
        return F.call_function(_CLOCK)

    def begin(self, outcomes: tuple[RoutingOutcome, ...], publications: int) -> None:
        """Starts new figures; a row that was counted before is not counted again if it is routed again.

        To be called while no query runs and no record is under way.
        """
        self._java.begin(bytes(map(_kind, outcomes)), publications, _BOUNDS_MS)

    def read(self) -> RowCounts:
        """Reads the present figures; takes about a millisecond."""
        return RowCounts.of(json.loads(self._executors.read()))

    def under_way(self) -> int:
        """Number of records, of earlier queries too, that producers have neither confirmed nor given up."""
        return int(self._executors.underWay())

    def refresh(self) -> None:
        """Makes `under_way` wait for reports that executors make from now on; to be called when no task runs."""
        self._executors.refresh()

    def has_all_reports(self) -> bool:
        """True if each executor that has worked for the query has reported since `refresh`."""
        return bool(self._executors.haveReported())

    def reset(self) -> None:
        """Forgets all figures, and which rows were counted before; for another journal in the same JVM."""
        self._java.reset()


def _register(spark: SparkSession, name: str, function: Any, interface: str, result: Any) -> None:
    # By reflection, since py4j would choose between `udf(UDF0, DataType)` and `udf(Object, DataType)` at random.
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    find_class = jvm.java.lang.Class.forName
    kinds = gateway.new_array(jvm.java.lang.Class, 2)
    kinds[0] = find_class(f"org.apache.spark.sql.api.java.{interface}")
    kinds[1] = find_class("org.apache.spark.sql.types.DataType")
    make = find_class("org.apache.spark.sql.functions").getMethod("udf", kinds)
    arguments = gateway.new_array(jvm.java.lang.Object, 2)
    arguments[0], arguments[1] = function, result
    # Marked as not deterministic; otherwise Spark might call it for fewer rows, more often, or before the routing.
    functions: Any = spark._jsparkSession.udf()
    functions.register(name, make.invoke(None, arguments).asNondeterministic())


def _tuples(values: Sequence[int], length: int) -> Iterator[tuple[int, ...]]:
    """Each `length` values after the other."""
    return zip(*(values[start::length] for start in range(length)), strict=True)


def _note(fields: Sequence[Any]) -> Note:
    outcome, publication, partition, offset, time_ms, message = fields
    taken = None if publication < 0 else publication
    return Note(outcome, taken, partition, offset, time_ms, base64.b64decode(message).decode())


def _failure(encoded: str) -> SendFailure | None:
    if not encoded:
        return None
    return SendFailure(*base64.b64decode(encoded).decode().split("\n", 2))
