"""Records that are dated ahead of the clock, and records that come late: both can be records that fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.streams import (
    SessionWindows,
    SlidingWindows,
    Stream,
    StreamsBuilder,
    Table,
    TimeWindows,
    TopologyTestDriver,
    json,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.topologies.library.driver import Output
    from engine.topologies.library.windows import Windows

NOW = 1_000_000
HOUR = 3_600_000
TIMES = st.one_of(st.integers(0, 120_000), st.sampled_from([-1, -70_000, 0, 60_000]))


def numbers(builder: StreamsBuilder, topic: str = "in", field: str = "n", **options: Any) -> Stream:
    return builder.stream(topic, value=json(f"{field} int"), name=topic, **options)


def headers(letter: Output) -> dict[str, str]:
    return {name.removeprefix("jmsbridge."): str(data or b"", "utf-8") for name, data in letter.headers}


def counted(builder: StreamsBuilder, **options: Any) -> Table:
    windows = TimeWindows.of("1 minute")
    return numbers(builder, **options).group_by_key().windowed_by(windows).count("counts")


def test_a_record_ahead_of_the_clock_fails_and_moves_no_stream_time(spark: SparkSession) -> None:
    builder = StreamsBuilder("ahead", max_ahead="1 h")
    counted(builder).to("out")
    driver = TopologyTestDriver(builder.build(), spark, wall_clock_ms=NOW)
    for time in (NOW + HOUR + 1, NOW, NOW + HOUR):
        driver.pipe_input("in", "k", {"n": 1}, timestamp=time, headers=[("own", b"1")])
    (letter,) = driver.rejected()
    found = headers(letter)
    assert (found["reason"], found["node"], found["own"]) == ("future", "in", "1")
    assert (found["position"], found["timestamp"]) == ("in:0:0", str(NOW + HOUR + 1))
    assert found["error"] == (
        "the record's time, 1970-01-01T01:16:40.001Z, is later than the clock by more than 3600000 ms: "
        "correct the clock of its producer, or max_ahead"
    )
    assert len(driver.read_output("out")) == 2
    assert driver.counts() == {("in", "rejected_records"): 1}


def test_a_source_overrides_the_time_of_the_builder_and_the_default_takes_all(spark: SparkSession) -> None:
    builder = StreamsBuilder("ahead", max_ahead="1 h")
    numbers(builder).to("out")
    numbers(builder, "far", max_ahead="2 h").to("far-out")
    table = builder.table("table", value=json("t int"), max_ahead="0 s", name="table")
    table.to("table-out")
    free = StreamsBuilder("free")
    numbers(free).to("out")
    driver = TopologyTestDriver(builder.build(), spark, wall_clock_ms=NOW)
    for topic in ("in", "far", "table"):
        driver.pipe_input(topic, "k", {"n": 1, "t": 1}, timestamp=NOW + 2 * HOUR)
        driver.pipe_input(topic, "k", {"n": 1, "t": 1}, timestamp=NOW)
    assert [headers(each)["node"] for each in driver.rejected()] == ["in", "table-source"]
    assert [len(driver.read_output(topic)) for topic in ("out", "far-out", "table-out")] == [1, 2, 1]
    other = TopologyTestDriver(free.build(), spark, wall_clock_ms=NOW)
    other.pipe_input("in", "k", {"n": 1}, timestamp=1 << 60)
    assert len(other.read_output("out")) == 1


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5_000), st.integers(-1, 20_000)), max_size=30), st.integers(0, 30))
def test_a_repeated_record_is_judged_by_the_readings_of_the_first_run(
    spark: SparkSession, records: list[tuple[int, int]], committed: int
) -> None:
    builder = StreamsBuilder("ahead", max_ahead="1 s")
    numbers(builder).to("out")
    times = [time for _, time in records]
    first = TopologyTestDriver(builder.build(), spark, wall_clock_ms=0)
    run: Any = first._running()
    clock, ahead, readings = 0, [], ["" for _ in range(len(records) + 1)]
    for number, (passed, time) in enumerate(records):
        clock += passed
        # The clock goes on within an interval, whose readings stay.
        run.clock(clock)
        first.pipe_input("in", str(number), {"n": 1}, timestamp=time)
        rejected = bool(first.rejected())
        # A record that is near the bound may be let through a little early.
        assert rejected == (time > clock + 1_000) or (not rejected and time <= clock + 1_000 + clock // 8)
        if rejected:
            ahead.append(number)
        readings[number + 1] = run.readings("in")
    until = min(committed, len(records))
    again = TopologyTestDriver(builder.build(), spark, wall_clock_ms=1 << 40)
    again._running().repeat("in", until, readings[until])
    for number, time in enumerate(times):
        again.pipe_input("in", str(number), {"n": 1}, timestamp=time)
    assert [int(each.key) for each in again.rejected()] == [number for number in ahead if number < until]


def test_readings_fit_into_the_metadata_of_a_position(spark: SparkSession) -> None:
    """Kafka takes 4096 bytes; the records of a day are each as far ahead as they may be."""
    builder = StreamsBuilder("ahead", max_ahead="1 s")
    numbers(builder).to("out")
    driver = TopologyTestDriver(builder.build(), spark, wall_clock_ms=0)
    begun = 1_790_000_000_000
    run: Any = driver._running()
    steps = [*range(0, 2_000, 10), *range(2_000, 86_400_000, 200_000)]
    for step in steps:
        run.clock(begun + step)
        driver.pipe_input("in", "k", {"n": 1}, timestamp=begun + step + 1_000)
    assert driver.rejected() == []
    assert 100 < len(run.readings("in")) < 3_500


def window_of(windows: Windows, time: int) -> tuple[int, int]:
    """The window that would have taken a record longest."""
    match windows:
        case TimeWindows(size_ms, advance_ms):
            start = time - time % advance_ms
            return start, start + size_ms
        case SlidingWindows(size_ms):
            return time, time + size_ms
        case _:
            return time, time


KINDS: dict[str, Windows] = {
    "tumbling": TimeWindows.of("10 s", grace="5 s"),
    "hopping": TimeWindows.of("10 s", advance="3 s"),
    "sliding": SlidingWindows.of("7 s", grace="2 s"),
    "sessions": SessionWindows.of("4 s", grace="2 s"),
}
LAST: dict[str, int] = {"tumbling": 4_999, "hopping": -1, "sliding": 2_000, "sessions": 6_000}
"""Milliseconds of stream time behind the end of a window at which it still takes records."""


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.lists(TIMES, max_size=25))
@example("sliding", [2_001, 0])
def test_late_records_are_dead_letters_with_their_window(spark: SparkSession, kind: str, times: list[int]) -> None:
    builder = StreamsBuilder("late")
    windows = KINDS[kind]
    # Each record has a key of its own, so that no session has two.
    numbers(builder).group_by_key().windowed_by(windows, late="dead-letter").count("counts").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    latest, expected, without_window = -1, [], 0
    for number, time in enumerate(times):
        driver.pipe_input("in", str(number), {"n": 1}, timestamp=time)
        latest = max(latest, time)
        if time < 0:
            expected.append((str(number), "timestamp", None, None, None))
            continue
        start, end = window_of(windows, time)
        lateness = latest - (end + LAST[kind])
        if lateness > 0:
            expected.append((str(number), "late", str(start), str(end), str(lateness)))
        elif kind == "sliding" and latest > time + LAST[kind]:
            # The window that ends with the record is closed, and others may still come to have it.
            without_window += 1
    letters = driver.rejected()
    names = ("reason", "window-start", "window-end", "lateness")
    assert [(each.key, *map(headers(each).get, names)) for each in letters] == expected
    late = [each for each in expected if each[1] == "late"]
    assert driver.counts().get(("counts", "late_records"), 0) == len(late)
    assert len({each.key for each in driver.read_output("out")}) == len(times) - len(expected) - without_window


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.booleans(), TIMES), max_size=25))
def test_late_records_of_a_join_are_dead_letters_with_the_times_of_their_partners(
    spark: SparkSession, records: list[tuple[bool, int]]
) -> None:
    builder = StreamsBuilder("late")
    left, right = numbers(builder), numbers(builder, "other", "m")
    left.join(right, within=("3 s", "5 s"), grace="2 s", late="dead-letter", name="node").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    latest, expected = -1, []
    for is_left, time in records:
        driver.pipe_input(*(("in", "k", {"n": 1}) if is_left else ("other", "k", {"m": 1})), timestamp=time)
        latest = max(latest, time)
        before, after = (3_000, 5_000) if is_left else (5_000, 3_000)
        lateness = latest - (time + after + 2_000)
        if time >= 0 and lateness > 0:
            expected.append((str(time - before), str(time + after), str(lateness)))
    late = [headers(each) for each in driver.rejected() if headers(each)["reason"] == "late"]
    assert [(each["window-start"], each["window-end"], each["lateness"]) for each in late] == expected


def test_late_records_are_dropped_unless_they_are_asked_for_and_the_policy_treats_them(spark: SparkSession) -> None:
    for late, policy, letters in (
        ("drop", "dead-letter", 0),
        ("dead-letter", "dead-letter", 1),
        ("dead-letter", "skip", 0),
    ):
        builder = StreamsBuilder("late")
        windows = TimeWindows.of("10 s", advance="5 s")
        numbers(builder).group_by_key().windowed_by(windows, late=late).count("counts").to("out")  # type: ignore[arg-type]
        driver = TopologyTestDriver(builder.build(), spark, on_failure=policy)
        # The second is late for one of its windows, the third for both.
        for time in (18_000, 13_000, 9_000):
            driver.pipe_input("in", "k", {"n": 1}, timestamp=time)
        found = driver.rejected()
        assert len(found) == letters
        assert driver.counts()["counts", "late_records"] == 1
        for each in found:
            assert headers(each)["error"] == "the record is late by 3001 ms: a grace longer by that would take it"
            assert (each.key, each.value) == ("k", {"n": 1})
