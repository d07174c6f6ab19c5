"""Early results of windows: one for each window, when a condition on it first becomes true, and the final one."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import SessionWindows, StreamsBuilder, TimeWindows, TopologyError, TopologyTestDriver, json, plan
from tests.spark.topologies.test_operators import windows

SIZE, ADVANCE, GRACE = 1_000, 500, 300
LIMIT = 12


def test_a_hopping_window_gives_an_early_result_once_and_its_final_one(spark: SparkSession) -> None:
    builder = StreamsBuilder("early")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    hopping = TimeWindows.of(f"{SIZE} ms", advance=f"{ADVANCE} ms", grace=f"{GRACE} ms")
    early = grouped.windowed_by(hopping).aggregate("t", total="sum(n)")
    early.suppress(until=f"total > {LIMIT} AND key <> 'c'").to("out")
    source = random.Random(1)  # noqa: S311 # test data
    state: dict[tuple[str, int], list[int]] = {}
    given, expected, now = set(), [], -1
    with TopologyTestDriver(builder.build(), spark) as driver:
        for at in range(20, 180):
            key, number = source.choice("abc"), source.choice((None, *range(-6, 10)))
            time = source.choice((at * 25, at * 25 - source.randrange(900), -1))
            driver.pipe_input("in", key, {"n": number}, timestamp=time)
            if time < 0:
                continue
            now = max(now, time)
            first = max(0, (time - SIZE) // ADVANCE * ADVANCE + ADVANCE)
            for start in range(first, time + 1, ADVANCE):
                if start + SIZE + GRACE > now:
                    inside = state.setdefault((key, start), [])
                    inside += [number] if number is not None else []
                    if sum(inside) > LIMIT and key != "c" and (key, start) not in given:
                        given.add((key, start))
                        expected.append((key, start, start + SIZE, sum(inside)))
            for own, start in sorted(state, key=lambda each: (each[1], each[0])):
                if start + SIZE + GRACE <= now:
                    inside = state.pop((own, start))
                    expected.append((own, start, start + SIZE, *([sum(inside)] if inside else [])))
        assert windows(driver.read_output("out")) == expected
        assert len(given) > 5


def test_sessions_that_are_joined_give_one_early_result(spark: SparkSession) -> None:
    builder = StreamsBuilder("sessions")
    grouped = (
        builder.stream("in", value=json("n int")).group_by_key().windowed_by(SessionWindows.of("100 ms", grace="1 s"))
    )
    table = grouped.aggregate("t", total="sum(n)").suppress(until=f"total > {LIMIT}")
    table.changelog("log")
    table.to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        for time, number in ((1_000, 20), (1_150, 5), (1_150, 10), (1_080, 1), (1_090, 1)):
            driver.pipe_input("in", "a", {"n": number}, timestamp=time)
        driver.pipe_input("in", "b", {"n": 1}, timestamp=5_000)
        assert windows(driver.read_output("out")) == [
            ("a", 1_000, 1_000, 20),
            ("a", 1_150, 1_150, 15),
            ("a", 1_000, 1_150, 37),
        ]
        log = [(each.key, each.value and each.value["total"]) for each in driver.read_output("log")]
        first, second = (f'{{"key":"a","window_start":"1970-01-01T00:00:01.{part}Z"}}' for part in ("000", "150"))
        assert log == [(first, 20), (second, 15), (second, None), (first, 37)]


def test_rows_that_a_filter_takes_no_longer_are_removed(spark: SparkSession) -> None:
    builder = StreamsBuilder("filtered")
    grouped = builder.stream("in", value=json("n int")).group_by_key().windowed_by(TimeWindows.of("1 s"))
    table = grouped.aggregate("t", total="sum(n)").suppress(until=f"total > {LIMIT}")
    table.filter(f"total > {LIMIT}").changelog("log")
    with TopologyTestDriver(builder.build(), spark) as driver:
        for number in (20, -15):
            driver.pipe_input("in", "a", {"n": number}, timestamp=100)
        driver.advance_time(1_000)
        assert [each.value and each.value["total"] for each in driver.read_output("log")] == [20, None]
        assert driver.rejected() == []


@pytest.mark.parametrize(("until", "message"), [("missing > 1", "missing"), (5, "'t': this is 5, and not a Column")])
def test_a_condition_that_cannot_be_computed_is_refused(spark: SparkSession, until: Any, message: str) -> None:
    builder = StreamsBuilder("refused")
    grouped = builder.stream("in", value=json("n int")).group_by_key().windowed_by(TimeWindows.of("1 s"))
    grouped.aggregate("t", total="sum(n)").suppress(until=until).to("out")
    with pytest.raises(TopologyError, match=message):
        plan(builder.build(), spark)
