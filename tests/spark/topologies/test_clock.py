"""Windows and timers that follow the clock, compared with a model in plain Python."""

from __future__ import annotations

import json as texts
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.embedded import EmbeddedKafka
from engine.streams import (
    InputRecord,
    ProcessorContext,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    json,
    plan,
)
from tests.conftest import TopicFactory
from tests.topic_records import committed_records, ordered_producer
from tests.waiting import until

SIZE, ADVANCE, GRACE, GAP = 100, 40, 30, 50


@dataclass
class HoppingModel:
    """Windows of time that close by stream time, and by a clock that moves stream time on to the end of a window."""

    size: int
    advance: int
    grace: int
    time: int = -1
    late: int = 0
    rejected: int = 0
    nulls: int = 0
    open: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    """Number and latest time of records by end of the window and key."""
    closed: list[tuple[int, str, int, int]] = field(default_factory=list)

    def record(self, key: str | None, time: int) -> None:
        if key is None:
            self.nulls += 1
            return
        if time < 0:
            self.rejected += 1
            return
        now = max(self.time, time)
        ends = [
            start + self.size
            for start in range(time // self.advance * self.advance, time - self.size, -self.advance)
            if start >= 0 and start + self.size + self.grace > now
        ]
        self.late += not ends
        for end in ends:
            number, latest = self.open.get((end, key), (0, 0))
            self.open[end, key] = number + 1, max(latest, time)
        self.time = now
        self.close()

    def clock(self, to: int) -> None:
        """Moves the clock on."""
        while due := sorted(end + self.grace for end, _ in self.open if end + self.grace <= to):
            self.time = max(self.time, due[0])
            self.close()

    def close(self) -> None:
        for end, key in sorted(each for each in self.open if each[0] + self.grace <= self.time):
            self.closed.append((end, key, *self.open.pop((end, key))))


@dataclass
class SessionModel:
    """The same for sessions."""

    gap: int
    grace: int
    time: int = -1
    late: int = 0
    open: dict[str, list[tuple[int, int, int]]] = field(default_factory=dict)
    """First time, last time and number of records of the sessions of each key."""
    closed: list[tuple[int, str, int, int]] = field(default_factory=list)

    def record(self, key: str | None, time: int) -> None:
        if key is None or time < 0:
            return
        own = self.open.setdefault(key, [])
        near = [each for each in own if each[0] - self.gap <= time <= each[1] + self.gap]
        now = max(self.time, time)
        first, last = min([time, *(each[0] for each in near)]), max([time, *(each[1] for each in near)])
        if last + self.gap + self.grace < now:
            self.late += 1
        else:
            self.open[key] = [each for each in own if each not in near]
            self.open[key].append((first, last, 1 + sum(each[2] for each in near)))
            self.time = now
        self.close()

    def clock(self, to: int) -> None:
        while due := sorted(
            each[1] + self.gap + self.grace + 1
            for own in self.open.values()
            for each in own
            if each[1] + self.gap + self.grace < to
        ):
            self.time = max(self.time, due[0])
            self.close()

    def close(self) -> None:
        for last, key, first, number in sorted(
            (last, key, first, number) for key, own in self.open.items() for first, last, number in own
        ):
            if last + self.gap + self.grace < self.time:
                self.open[key].remove((first, last, number))
                self.closed.append((last, key, number, last))


def windowed() -> Topology:
    """Hopping windows and sessions that the clock closes, and windows that it does not close."""
    builder = StreamsBuilder("clock")
    keyed = builder.stream("in", value=json("n int")).group_by_key()
    hopping = keyed.windowed_by(TimeWindows.of(f"{SIZE} ms", advance=f"{ADVANCE} ms", grace=f"{GRACE} ms"))
    sessions = keyed.windowed_by(SessionWindows.of(f"{GAP} ms", grace=f"{GRACE} ms"))
    for name, table in (
        ("hopping", hopping.count("hopping").suppress(close="clock")),
        ("sessions", sessions.count("sessions").suppress(close="clock")),
        ("others", hopping.count("others").suppress()),
    ):
        rows = table.to_stream().map_values(f"{name}-fields", end="unix_millis(window_end)", count="count")
        rows.to(f"{name}-out", name=f"{name}-to")
    return builder.build()


def results(driver: TopologyTestDriver, topic: str) -> list[tuple[int, str, int, int]]:
    return [(each.value["end"], each.key, each.value["count"], each.timestamp) for each in driver.read_output(topic)]


def test_windows_close_as_in_a_model(spark: SparkSession) -> None:
    topology = windowed()
    late = 0
    for seed in range(25):
        chance = random.Random(seed)  # noqa: S311
        hopping, sessions, others = (
            HoppingModel(SIZE, ADVANCE, GRACE),
            SessionModel(GAP, GRACE),
            HoppingModel(SIZE, ADVANCE, GRACE),
        )
        clock, time = 1_000, 1_000
        with TopologyTestDriver(topology, spark, wall_clock_ms=clock) as driver:
            for _ in range(60):
                if chance.random() < 0.3:
                    step = chance.choice((0, 1, 10, SIZE, 300))
                    clock += step
                    driver.advance_wall_clock(f"{step} ms")
                    hopping.clock(clock)
                    sessions.clock(clock)
                time = chance.choice((time, time + chance.randrange(60), clock, clock - chance.randrange(400), -1))
                key = chance.choice(("a", "b", "c", None))
                driver.pipe_input("in", key, {"n": 1}, timestamp=time)
                for model in (hopping, sessions, others):
                    model.record(key, time)
                time = max(time, 0)
            # Expiry is in the order of the times, then of the keys of the state: windows by key and start.
            assert sorted(results(driver, "hopping-out")) == sorted(hopping.closed), seed
            assert sorted(results(driver, "sessions-out")) == sorted(sessions.closed), seed
            assert sorted(results(driver, "others-out")) == sorted(others.closed), seed
            counts = driver.counts()
            assert counts.get(("hopping", "late_records"), 0) == hopping.late, seed
            assert counts.get(("sessions", "late_records"), 0) == sessions.late, seed
            late += hopping.late - others.late
    assert late > 0


def test_calendar_and_sliding_windows_close_without_a_further_record(spark: SparkSession) -> None:
    builder = StreamsBuilder("closing")
    keyed = builder.stream("in", value=json("n int")).group_by_key()
    day = TimeWindows.of("1 day", zone="Europe/Berlin", grace="1 h")
    for name, windows in (("days", day), ("sliding", SlidingWindows.of("10 s", grace="5 s"))):
        keyed.windowed_by(windows).count(name).suppress(close="clock").to(f"{name}-out")
    with TopologyTestDriver(builder.build(), spark, wall_clock_ms=0) as driver:
        driver.pipe_input("in", "k", {"n": 1}, timestamp=20_000)
        driver.pipe_input("in", "k", {"n": 1}, timestamp=25_000)

        def counts(topic: str) -> list[int]:
            return [each.value["count"] for each in driver.read_output(topic)]

        driver.advance_wall_clock("25 s")
        assert counts("sliding-out") == []
        # The window from 10 to 20 s, which both of its ends belong to, closes behind 25 s.
        driver.advance_wall_clock("1 ms")
        assert counts("sliding-out") == [1]
        driver.advance_wall_clock("1 minute")
        assert counts("sliding-out") == [2, 1]
        # A day in Berlin ends at 23:00 UTC.
        driver.advance_wall_clock(f"{24 * 3_600_000 - 85_002} ms")
        assert counts("days-out") == []
        driver.advance_wall_clock("1 ms")
        assert counts("days-out") == [2]
        driver.pipe_input("in", "k", {"n": 1}, timestamp=25_000)
        assert driver.counts() == {("days", "late_records"): 1, ("sliding", "late_records"): 1}


def awaits(order: InputRecord, context: ProcessorContext) -> Iterator[dict[str, Any]]:
    """Sets a timer of the clock for an order without payment, and removes it when the payment comes."""
    assert order.value is not None
    if order.value["paid"]:
        assert context.state is not None
        context.cancel_clock(context.state["due"])
        context.state = None
        yield {"what": "paid", "at": context.clock}
    else:
        context.state = {"due": context.clock + 1_000}
        context.schedule_clock(context.clock + 1_000)


def test_timers_of_the_clock_fire_in_the_order_of_their_times_whatever_the_records_say(spark: SparkSession) -> None:
    def remind(context: ProcessorContext, time: int) -> list[dict[str, Any]]:
        assert context.state is not None
        if context.key == "bad":
            raise ArithmeticError("bad")
        if time < 2_500:
            context.state = {"due": time + 1_000}
            context.schedule_clock(time + 1_000)
        return [{"what": "reminder", "at": context.clock}]

    builder = StreamsBuilder("awaiting")
    orders = builder.stream("in", value=json("paid boolean"))
    fields = "what string, at bigint"
    orders.process(awaits, on_clock=remind, fields=fields, state="due bigint", name="orders").to("out")
    with TopologyTestDriver(builder.build(), spark, wall_clock_ms=500) as driver:
        driver.pipe_input("in", "a", {"paid": False}, timestamp=9_000_000)
        driver.advance_wall_clock("200 ms")
        driver.pipe_input("in", "b", {"paid": False}, timestamp=5)
        driver.pipe_input("in", "bad", {"paid": False}, timestamp=5)
        assert driver.read_output("out") == []
        driver.advance_wall_clock("900 ms")
        driver.pipe_input("in", "b", {"paid": True}, timestamp=6)
        driver.advance_wall_clock("1 h")
        assert [
            (each.key, each.timestamp, each.value["what"], each.value["at"]) for each in driver.read_output("out")
        ] == [
            ("a", 1_500, "reminder", 1_500),
            ("b", 6, "paid", 1_600),
            ("a", 2_500, "reminder", 2_500),
        ]
        (failed,) = driver.rejected()
        assert dict(failed.headers)["jmsbridge.node"] == b"orders"
        assert driver.get_store("orders").get("b") is None


def test_a_process_without_a_function_for_the_clock_has_no_clock(spark: SparkSession) -> None:
    builder = StreamsBuilder("clockless")
    builder.stream("in", value=json("n int")).process(
        lambda _, context: context.schedule_clock(5), fields="n int", state="n int"
    ).to("out")
    with TopologyTestDriver(builder.build(), spark, wall_clock_ms=0) as driver:
        driver.pipe_input("in", "k", {"n": 1})
        (failed,) = driver.rejected()
        assert b"process() follows no clock: give it the function of its timers, on_clock=" in (
            dict(failed.headers)["jmsbridge.error"] or b""
        )


@pytest.mark.parametrize("is_exact", [True, False], ids=["exactly-once", "at-least-once"])
def test_a_repeated_batch_closes_the_same_windows(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, *, is_exact: bool
) -> None:
    read, written = topic("in", config={"retention.ms": "-1"}), topic("out", config={"retention.ms": "-1"})
    builder = StreamsBuilder(f"again-{uuid.uuid4().hex[:8]}")
    windows = TimeWindows.of("1 s", grace="1 s")
    keyed = builder.stream(read, value=json("n int")).group_by_key()
    keyed.windowed_by(windows).aggregate("sums", total="sum(n)").suppress(close="clock").to(written)
    producer = ordered_producer(kafka.bootstrap)
    for number in range(30):
        producer.produce(read, texts.dumps({"n": number}), f"k{number % 3}", timestamp=1_000_000 + 100 * number)
    assert producer.flush(30) == 0

    jvm: Any = spark._jvm
    runs = jvm.jmsbridge.streams.TopologyRun
    clients = {"bootstrap.servers": kafka.bootstrap}
    level = "read_committed" if is_exact else "read_uncommitted"
    consumer = {**clients, "enable.auto.commit": "false", "auto.offset.reset": "none", "isolation.level": level}

    def published() -> list[tuple[bytes | None, bytes | None]]:
        return [(each.key(), each.value()) for each in committed_records(kafka.bootstrap, written)]

    def run(count: int) -> None:
        folder = (tmp_path / "state").as_uri()
        program = plan(builder.build(), spark).java
        settings = jvm.jmsbridge.streams.RunSettings(
            program, is_exact, {read: 1}, consumer, clients, folder, 1_000, 1 << 40, []
        )
        runs.open("again", settings)
        try:
            rows = spark.readStream.format("jmsbridge.streams.TopologySource").option("run", "again").load()
            sink = rows.writeStream.format("jmsbridge.streams.TopologySink").option("run", "again").outputMode("update")
            trigger = sink.option("checkpointLocation", str(tmp_path / "spark")).trigger(
                processingTime="200 milliseconds"
            )
            query = trigger.start()
            query.processAllAvailable()
            until(lambda: len(published()) == count, 60, f"{count} windows")
            query.stop()
        finally:
            runs.close("again")

    run(9)
    first = published()
    # As if Spark had ended before its own commit: the window that was due closes once more, or was held back.
    commits = tmp_path / "spark" / "commits"
    newest = max((each for each in commits.iterdir() if each.name.isdecimal()), key=lambda each: int(each.name))
    for each in (newest, commits / f".{newest.name}.crc"):
        each.unlink()
    run(9 if is_exact else 18)
    assert published() == (first if is_exact else 2 * first)
