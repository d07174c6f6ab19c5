"""What the router's JVM counts, row by row, as Python values.

Spark's own progress comes once per interval, which in real-time mode is far too late for a metric. `jmsbridge.Tally`
counts inside the JVM instead (`jvm/spark`); `counted` puts it behind the routing, `read` fetches its figures in one
call. It lives in the JVM of a local session: one tally for each process.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from routes.model import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from engine.router import Outcome, Routed

__all__ = ["BUCKETS", "INTERCEPTOR", "Example", "Note", "Reading", "SendFailure", "Tally"]

INTERCEPTOR = "jmsbridge.Sends"
"""To be among the sink's `interceptor.classes`: what `sent`, `acknowledged` and `failed` of a reading rest on."""

BUCKETS = 17
"""Latency buckets of a reading: those of `engine.telemetry.metrics.LATENCY_BUCKETS_SECONDS`, and one for what is
slower."""

_COUNT, _CLOCK = "jmsbridge_tally", "jmsbridge_now"
_SINK_COLUMNS = ("key", "value", "headers", "topic")
_EMITS, _TIMED, _NOTED = 1, 2, 4
_KINDS = {"routed": _EMITS | _TIMED, Policy.SKIP.value: _NOTED, Policy.DEAD_LETTER.value: _EMITS | _NOTED}


@dataclass(frozen=True, slots=True)
class Note:
    """A message that failed softly."""

    outcome: int
    """Index into the outcomes that `begin` was called with."""
    route: int | None
    partition: int
    offset: int
    time_ms: int
    """When the journal got it, milliseconds since 1970."""
    message: str
    """The first 200 characters of its JMSMessageID; empty if it has none."""


@dataclass(frozen=True, slots=True)
class Example:
    """A message that took about so long."""

    partition: int
    offset: int
    latency_ms: int
    time_ms: int
    """When it was routed, milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class SendFailure:
    """The first record that Kafka did not take."""

    topic: str
    kind: str
    """Java class of the error."""
    detail: str


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures since `begin`."""

    counts: tuple[tuple[int, ...], ...]
    """By outcome, then: rows without a route, rows of each route."""
    emitted: int
    """Rows that are on their way to a producer, rows counted before included."""
    sent: int
    """Records that producers were given; until it equals `emitted`, rows are between the two."""
    acknowledged: int
    failed: int
    failure: SendFailure | None
    buckets: tuple[int, ...]
    latency_seconds: float
    """Sum over all routed rows."""
    examples: tuple[Example | None, ...]
    """A recent message for each bucket that has any."""
    processed: Mapping[int, int]
    """Highest offset by journal partition; partitions without a row are missing."""
    times_ms: Mapping[int, int]
    """When the journal got that record."""
    notes: tuple[Note, ...]
    """Failures since the last reading, as far as there was room for them."""
    unnoted: int
    """How many there was no room for, since `begin`."""
    reading: frozenset[int] = frozenset()
    """Journal partitions that tasks of real-time mode wait on or read."""
    looked: bool = False
    """Whether a task of batch mode has read all of its first batch, or there was nothing to read."""

    @property
    def settled(self) -> bool:
        """Whether everything that was decided is acknowledged: nothing failed, nothing is under way."""
        return self.emitted == self.sent == self.acknowledged


class Tally:
    """The JVM's counts. `begin` comes before the query that is counted."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        self._java = jvm.jmsbridge.Tally
        self._sends = jvm.jmsbridge.Sends
        types = jvm.org.apache.spark.sql.types.DataTypes
        _register(spark, _COUNT, jvm.jmsbridge.Tally(), "UDF6", types.BooleanType)
        _register(spark, _CLOCK, jvm.jmsbridge.Clock(), "UDF0", types.LongType)

    def now(self) -> Column:
        """Milliseconds since 1970 at each row; `current_timestamp` stands still within an interval."""
        return F.call_function(_CLOCK)

    def begin(self, outcomes: tuple[Outcome, ...], routes: int) -> None:
        """Starts new figures; rows that were counted before and are routed again do not count again.

        No query may run, and nothing may be under way.
        """
        self._java.begin(bytes(_KINDS.get(outcome.kind, 0) for outcome in outcomes), routes)

    def counted(self, routed: Routed) -> DataFrame:
        """The rows to publish, with the columns of Spark's Kafka sink; every row of `routed` is counted."""
        columns = "outcome", "route", "journal_partition", "journal_offset"
        row = F.call_function(_COUNT, *columns, F.unix_micros("journal_timestamp"), "failed_message")
        # A column first and a filter on it: a filter on the call itself would be moved below the projections, and
        # with it a second computation of the outcome.
        return routed.frame.withColumn("counted", row).where("counted AND topic IS NOT NULL").select(*_SINK_COLUMNS)

    def read(self) -> Reading:
        """The figures of this moment. Takes about a millisecond."""
        figures: dict[str, Any] = json.loads(self._java.read())
        return _reading(figures)

    def under_way(self) -> int:
        """Records handed to producers whose fate is not known yet, those of earlier queries included."""
        return int(self._sends.underWay())

    def reset(self) -> None:
        """Forgets everything, also what was counted before. For a journal that is not the one before."""
        self._java.reset()


def _register(spark: SparkSession, name: str, function: Any, interface: str, result: Any) -> None:
    # By reflection: py4j takes either `udf(UDF6, DataType)` or `udf(Object, DataType)`, as chance has it.
    jvm: Any = spark._jvm
    methods = jvm.java.lang.Class.forName("org.apache.spark.sql.functions").getMethods()
    wanted = f"functions.udf(org.apache.spark.sql.api.java.{interface},"
    make = next(method for method in methods if wanted in method.toString())
    gateway: Any = spark.sparkContext._gateway
    arguments = gateway.new_array(jvm.java.lang.Object, 2)
    arguments[0], arguments[1] = function, result
    # Not deterministic, or Spark would call it for fewer rows, more often, or before the routing.
    functions: Any = spark._jsparkSession.udf()
    functions.register(name, make.invoke(None, arguments).asNondeterministic())


def _reading(figures: Mapping[str, Any]) -> Reading:
    outcomes = figures["outcomes"]
    cells = figures["counts"]
    width = len(cells) // outcomes if outcomes else 0
    return Reading(
        counts=tuple(tuple(cells[start : start + width]) for start in range(0, len(cells), width or 1)),
        emitted=figures["emitted"],
        sent=figures["sent"],
        acknowledged=figures["acknowledged"],
        failed=figures["failed"],
        failure=_failure(figures["failure"]),
        buckets=tuple(figures["buckets"]),
        latency_seconds=figures["latency_ms"] / 1000,
        examples=tuple(example and Example(*example) for example in figures["examples"]),
        processed={partition: offset for partition, offset in enumerate(figures["processed"]) if offset >= 0},
        times_ms={partition: time for partition, time in enumerate(figures["times"]) if time >= 0},
        notes=tuple(map(_note, figures["notes"])),
        unnoted=figures["unnoted"],
        reading=frozenset(figures["reading"]),
        looked=figures["looked"],
    )


def _note(told: Sequence[Any]) -> Note:
    outcome, route, partition, offset, time_ms, message = told
    return Note(outcome, None if route < 0 else route, partition, offset, time_ms, base64.b64decode(message).decode())


def _failure(encoded: str) -> SendFailure | None:
    if not encoded:
        return None
    return SendFailure(*base64.b64decode(encoded).decode().split("\n", 2))
