"""Tests what the JVM counts for the router, and the bitmaps of published positions."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import functions as F

from engine.message import ORIGIN, POSITION
from engine.router import Routed, RoutingOutcome
from engine.router.kafka_io import KafkaIO
from engine.router.published import Proof, find
from engine.router.row_counters import BUCKETS, Example, Note, RowCounters, RowCounts, SendFailure
from engine.telemetry.metrics import LATENCY_BUCKETS_SECONDS
from routes.config import loads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONFIGURATION = "bridge.id=b\nroutes.r.in.include=TRUE\nroutes.r.out.topic=x\n"
OUTCOMES = (RoutingOutcome("routed"), RoutingOutcome("skip", "key-invalid"), RoutingOutcome("unrouted", "expired"))


@pytest.fixture
def counters(spark: SparkSession) -> Iterator[RowCounters]:
    made = RowCounters(spark)
    made.reset()
    made.begin(OUTCOMES, 2)
    yield made
    made.reset()


def routed(spark: SparkSession, start: int, end: int) -> Routed:
    """Offsets of one partition: by turns routed, skipped under route 1, expired."""
    frame = spark.range(start, end, 1, 1).selectExpr(
        "cast(cast(id AS string) AS binary) AS key",
        "cast(cast(id AS string) AS binary) AS value",
        "cast(array() AS array<struct<key:string,value:binary>>) AS headers",
        "CASE WHEN id % 3 = 0 THEN 'out' END AS topic",
        "cast(id % 3 AS int) AS outcome",
        "CASE id % 3 WHEN 0 THEN 0 WHEN 1 THEN 1 END AS publication",
        "0 AS journal_partition",
        "id AS journal_offset",
        "timestamp_millis(1000) AS journal_timestamp",
        "0 AS copy",
        "CASE WHEN id < 7 THEN 'ID:\"ü' || id || repeat('x', (id - 1) * 100) END AS failed_message",
    )
    return Routed(frame, OUTCOMES)


def count(spark: SparkSession, rows: Routed) -> None:
    """Counts the rows without publishing any."""
    KafkaIO(spark, loads(CONFIGURATION)).write(rows, ())


def test_every_row_is_counted(spark: SparkSession, counters: RowCounters) -> None:
    count(spark, routed(spark, 0, 9))
    reading = counters.read()
    assert reading.counts == ((0, 3, 0), (0, 0, 3), (3, 0, 0))
    assert reading.emitted == 3
    assert reading.processed == {0: 8}
    assert reading.times_ms == {0: 1000}
    assert reading.notes == (
        Note(1, 1, 0, 1, 1000, 'ID:"ü1'),
        Note(1, 1, 0, 4, 1000, 'ID:"ü4' + "x" * 194),
        Note(1, 1, 0, 7, 1000, ""),
    )
    assert counters.read().notes == ()


def test_figures_that_are_0_are_not_read(spark: SparkSession, counters: RowCounters) -> None:
    counters.begin(OUTCOMES, 5_000)
    count(spark, routed(spark, 0, 3))
    # 15,003 cells, of which three are not 0.
    assert len(counters._java.read()) < 2_000
    assert [sum(row) for row in counters.read().counts] == [1, 1, 1]


def test_figures_of_several_processes_are_added_up() -> None:
    def process(*, failure: str = "", looked: bool = False, **more: object) -> dict[str, object]:
        totals = dict.fromkeys(("emitted", "sent", "acknowledged", "failed", "latency_ms", "unnoted"), 1)
        few = {"outcomes": 2, "width": 2, "counts": [], "marks": [], "buckets": [1] * BUCKETS, "notes": []}
        return {
            **totals,
            **few,
            "examples": [None] * BUCKETS,
            "failure": failure,
            "reading": [],
            "looked": looked,
            "refused": [],
            "destinations": [],
            "elsewhere": 1,
            **more,
        }

    failure = base64.b64encode(b"t\nType\ndetail").decode()
    reading = RowCounts.of(
        [
            process(counts=[0, 5, 3, 1], marks=[7, 100, 1_000], destinations=[["cXVldWU6w7w=", 5]]),
            process(counts=[3, 2], marks=[7, 90, 2_000, 8, 0, -1], failure=failure, reading=[8], looked=True),
            process(examples=[[1, 2, 3, 4], *[None] * (BUCKETS - 1)], destinations=[["cXVldWU6w7w=", 2], ["", 1]]),
        ]
    )
    assert reading.counts == ((5, 0), (0, 3))
    assert (reading.processed, reading.times_ms) == ({7: 100, 8: 0}, {7: 1_000})
    assert (reading.emitted, reading.buckets, reading.latency_seconds) == (3, (3,) * BUCKETS, 0.003)
    assert reading.failure == SendFailure("t", "Type", "detail")
    assert reading.examples[0] == Example(1, 2, 3, 4)
    assert reading.reading == {8}
    assert reading.looked
    assert (reading.destinations, reading.elsewhere) == ({"queue:ü": 7, "": 1}, 3)


def test_rows_that_no_route_took_are_counted_by_destination_within_a_bound(
    spark: SparkSession, counters: RowCounters
) -> None:
    counters.begin((RoutingOutcome("routed"), RoutingOutcome("skip", "x"), RoutingOutcome("unrouted", "unmatched")), 2)
    frame = routed(spark, 0, 900).frame.withColumn(
        "failed_message", F.expr("CASE journal_offset % 9 WHEN 2 THEN 'queue:ü' WHEN 5 THEN 'q' || journal_offset END")
    )
    count(spark, Routed(frame, OUTCOMES))
    reading = counters.read()
    assert (reading.destinations["queue:ü"], reading.destinations[""]) == (100, 100)
    assert len(reading.destinations) == 100
    assert sum(reading.destinations.values()) + reading.elsewhere == sum(reading.counts[2]) == 300


def test_a_bucket_gives_a_message_that_took_so_long_as_an_example(spark: SparkSession, counters: RowCounters) -> None:
    before = time.time() * 1000
    count(spark, routed(spark, 0, 9))
    *quicker, example = counters.read().examples
    assert quicker == [None] * (BUCKETS - 1)
    assert example is not None
    # Others came within the same second.
    assert (example.partition, example.offset) == (0, 0)
    assert before - 1 < example.time_ms < time.time() * 1000 + 1
    assert example.latency_ms == example.time_ms - 1000


def test_latency_counts_routed_rows_in_their_bucket(spark: SparkSession, counters: RowCounters) -> None:
    fresh = F.lit(datetime.now(UTC))
    frame = routed(spark, 0, 9).frame
    count(spark, Routed(frame, OUTCOMES))
    count(spark, Routed(frame.withColumns({"journal_timestamp": fresh, "journal_partition": F.lit(1)}), OUTCOMES))
    reading = counters.read()
    # 1970 is beyond the last bound.
    assert reading.buckets[-1] == 3
    assert sum(reading.buckets) == 6
    assert reading.latency_seconds > 3 * (time.time() - 100)


@pytest.mark.parametrize(("age_seconds", "bound"), [(20, 30.0), (45, 60.0), (150, 300.0)])
def test_the_bounds_of_the_buckets_are_those_of_the_metric(
    spark: SparkSession, counters: RowCounters, age_seconds: int, bound: float
) -> None:
    arrival = F.lit(datetime.now(UTC) - timedelta(seconds=age_seconds))
    count(spark, Routed(routed(spark, 0, 3).frame.withColumn("journal_timestamp", arrival), OUTCOMES))
    filled = [at for at, number in enumerate(counters.read().buckets) if number]
    assert filled == [LATENCY_BUCKETS_SECONDS.index(bound)]


def test_a_row_that_is_routed_again_in_the_same_process_is_not_counted_again(
    spark: SparkSession, counters: RowCounters
) -> None:
    count(spark, routed(spark, 0, 6))
    counters.begin(OUTCOMES, 2)
    count(spark, routed(spark, 3, 9))
    reading = counters.read()
    assert reading.counts == ((0, 1, 0), (0, 0, 1), (1, 0, 0))
    assert (reading.emitted, reading.processed) == (2, {0: 8})


def test_each_copy_of_a_message_is_counted_once(spark: SparkSession, counters: RowCounters) -> None:
    rows = routed(spark, 0, 6)
    copies = replace(rows, frame=rows.frame.drop("copy").withColumn("copy", F.explode(F.array(*map(F.lit, range(3))))))
    count(spark, copies)
    assert counters.read().counts == ((0, 6, 0), (0, 0, 6), (6, 0, 0))
    count(spark, copies)
    assert counters.read().counts == ((0, 6, 0), (0, 0, 6), (6, 0, 0))


def test_what_is_emitted_and_not_sent_is_not_settled(spark: SparkSession, counters: RowCounters) -> None:
    assert counters.read().settled
    count(spark, routed(spark, 0, 3))
    assert not counters.read().settled
    assert counters.under_way() == 0


def test_more_failures_than_there_is_room_for_are_numbered(spark: SparkSession, counters: RowCounters) -> None:
    count(spark, routed(spark, 0, 3000))
    reading = counters.read()
    assert len(reading.notes) == 256
    assert reading.unnoted == 1000 - 256


def test_the_clock_runs_within_a_query(spark: SparkSession, counters: RowCounters) -> None:
    times = [
        row.now for row in spark.range(0, 2_000_000, 1, 1).select(counters.now().alias("now")).distinct().collect()
    ]
    assert len(times) > 1
    assert abs(max(times) / 1000 - time.time()) < 60


OUTPUT = "topic string, partition int, offset bigint, headers array<struct<key:string,value:binary>>"


def outputs(spark: SparkSession, *records: list[tuple[str, str]]) -> DataFrame:
    rows = [("t", 0, at, [(name, value.encode()) for name, value in headers]) for at, headers in enumerate(records)]
    return spark.createDataFrame(rows, OUTPUT)


def of_older_version(since: dict[int, int], end: int = 2**62) -> Proof:
    """All records with a position count, as those of a run without seals."""
    return Proof("j", "me", since, dict.fromkeys(since, end), lambda *_: F.lit(True), "dead")


def journal(spark: SparkSession, partition: int, count: int) -> DataFrame:
    return spark.range(0, count, 1, 1).select(F.lit(partition).alias("partition"), F.col("id").alias("offset"))


def test_published_positions_are_those_of_this_bridge_and_journal(spark: SparkSession) -> None:
    def own(position: str) -> list[tuple[str, str]]:
        return [(ORIGIN, "me"), (POSITION, position)]

    frame = outputs(
        spark,
        own("j:0:7"),
        [*own("j:0:9"), ("jmsbridge.reason", "key-invalid")],
        own("j:1:40000"),
        own("j:0:4"),
        own("other:0:8"),
        own("j:0:x"),
        own("j"),
        [(ORIGIN, "someone"), (POSITION, "j:0:6")],
        [(ORIGIN, "someone"), (POSITION, "k:3:1"), *own("j:0:5")],
        [("a", "b")],
        [],
    )
    found = find(frame, of_older_version({0: 5, 1: 0, 2: 0}))
    assert found.highest == {0: 9, 1: 40000}
    assert found.count == 4
    missing = [row.offset for row in found.missing_in(journal(spark, 0, 11)).collect()]
    assert missing == [0, 1, 2, 3, 4, 6, 8, 10]
    assert found.missing_in(journal(spark, 1, 40002)).count() == 40001


def test_copies_are_found_one_by_one(spark: SparkSession) -> None:
    places = ("j:0:7", "j:0:7:2", "j:0:8:1", "j:0:9:x", "j:0:9:1:1", "j:0:9:-1")
    found = find(outputs(spark, *([(ORIGIN, "me"), (POSITION, each)] for each in places)), of_older_version({0: 5}))
    frame = spark.range(7, 10, 1, 1).select(
        F.lit(0).alias("source_partition"),
        F.col("id").alias("source_offset"),
        F.explode(F.array(*map(F.lit, range(3)))),
    )
    rows = found.missing_copies_in(frame.withColumnRenamed("col", "copy")).collect()
    missing = {(row.source_offset, row.copy) for row in rows}
    assert missing == {(7, 1), (8, 0), (8, 2), (9, 0), (9, 1), (9, 2)}
    assert found.highest == {0: 8}


def test_bitmaps_find_every_position_across_their_borders(spark: SparkSession) -> None:
    expected = {0, 1, 7, 8, 9, 32766, 32767, 32768, 32769, 65535, 65536, 99999}
    frame = outputs(spark, *([(ORIGIN, "me"), (POSITION, f"j:2:{offset}")] for offset in sorted(expected)))
    found = find(frame, of_older_version({2: 0}))
    missing = {row.offset for row in found.missing_in(journal(spark, 2, 100_000)).collect()}
    assert missing == set(range(100_000)) - expected
    assert json.dumps(found.highest) == '{"2": 99999}'


def test_many_partitions_take_no_more_calls_into_the_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = outputs(spark, *([(ORIGIN, "me"), (POSITION, f"j:{each}:{each}")] for each in (0, 7, 9_999, 10_000)))
    calls: list[str] = []
    send: Any = GatewayClient.send_command

    def counted(self: GatewayClient, command: str, *more: Any, **named: Any) -> Any:
        calls.append(command)
        return send(self, command, *more, **named)

    monkeypatch.setattr(GatewayClient, "send_command", counted)
    found = find(frame, of_older_version({partition: 5 for partition in range(10_000) if partition != 3}))
    assert found.highest == {7: 7, 9_999: 9_999}
    # 400 with one partition too; it was eight for each partition, in every slice of the outputs.
    assert len(calls) < 1000
