"""State behind a cache of any size is the state that a run in memory has, through commits and rolled back batches."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    SessionWindows,
    SlidingWindows,
    Stream,
    StreamsBuilder,
    TimeWindows,
    TopologyTestDriver,
    json,
)


def hopping(left: Stream, right: Stream) -> Stream:
    windows = TimeWindows.of("5 seconds", advance="2 seconds", grace="1 second")
    return left.merge(right).group_by_key().windowed_by(windows).aggregate("a", n="sum(n)").to_stream()


def sessions(left: Stream, right: Stream) -> Stream:
    return left.group_by_key().windowed_by(SessionWindows.of("1 second")).aggregate("a", n="sum(n)").to_stream()


def sliding(left: Stream, right: Stream) -> Stream:
    return right.group_by_key().windowed_by(SlidingWindows.of("2 seconds")).aggregate("a", n="sum(n)").to_stream()


def joined(left: Stream, right: Stream) -> Stream:
    return left.join(right, within="1 second", grace="1 second", prefix="r_", name="j")


def outer_joined(left: Stream, right: Stream) -> Stream:
    return left.outer_join(right, within="1 second", grace="1 second", prefix="r_", name="j")


def once(left: Stream, right: Stream) -> Stream:
    return left.deduplicate(within="3 seconds", name="once")


def expiring(left: Stream, right: Stream) -> Stream:
    return left.to_table(name="t").expire_after("1 second").to_stream()


def versioned(left: Stream, right: Stream) -> Stream:
    return right.left_join(left.to_table(name="t").keep_history("2 seconds"), prefix="l_", name="j")


@pytest.mark.parametrize("cache_bytes", [0, 3_000, 1 << 20])
@pytest.mark.parametrize(
    "build",
    [hopping, sessions, sliding, joined, outer_joined, once, expiring, versioned],
    ids=lambda each: each.__name__,
)
def test_state_is_the_same_behind_a_cache(
    spark: SparkSession, tmp_path: Path, build: Callable[[Stream, Stream], Stream], cache_bytes: int
) -> None:
    builder = StreamsBuilder("cached")
    left, right = (builder.stream(topic, value=json("n int"), name=topic) for topic in ("left", "right"))
    build(left, right).to("out")
    topology = builder.build()
    expected, driver = (TopologyTestDriver(topology, spark) for _ in range(2))
    run = run_in(driver, spark, tmp_path, cache_bytes)
    source = random.Random(cache_bytes)  # noqa: S311 # test data
    at, outputs = 0, []
    for _ in range(12):
        records = []
        for _ in range(source.randrange(30)):
            at += source.randrange(400)
            time = max(0, at - source.randrange(3_000))
            records.append((source.choice(("left", "right")), source.choice("abc"), {"n": source.randrange(5)}, time))
        if source.random() < 0.4:
            pipe(driver, records)
            driver.read_output("out")
            run.rollBack()
        pipe(driver, records)
        pipe(expected, records)
        run.commit()
        if source.random() < 0.3:
            run.rollBack()
        outputs.append(expected.read_output("out"))
        assert driver.read_output("out") == outputs[-1]
    assert len([each for some in outputs for each in some]) > 10


@pytest.mark.parametrize(("build", "limit"), [(joined, 6_000), (once, 10_000)])
def test_entries_that_are_past_go_some_at_a_time(
    spark: SparkSession, build: Callable[[Stream, Stream], Stream], limit: int
) -> None:
    builder = StreamsBuilder("past")
    left, right = (builder.stream(topic, value=json("n int"), name=topic) for topic in ("left", "right"))
    build(left, right).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for number in range(1_500):
        driver.pipe_input("left", f"k{number}", {"n": number}, 1_000)
    sizes = []
    for number in range(1_000):
        driver.pipe_input("left", "again", {"n": number}, limit + number)
        sizes.append(driver._run.entries())
    steps = [before - after for before, after in pairwise(sizes) if after < before]
    # A record waits for some hundreds, not for all; and more go than come.
    assert max(steps) <= 512
    assert sizes[0] >= 1_500
    assert sizes[-1] <= 1_010


def run_in(
    driver: TopologyTestDriver, spark: SparkSession, folder: Path, cache_bytes: int, tables: Path | None = None
) -> Any:
    """A run of the driver's topology whose state is in a folder, in place of its own.

    Copies of its tables are kept in `tables`, if that is given.
    """
    driver._running()
    assert driver._program is not None
    jvm: Any = spark._jvm
    driver._run = jvm.jmsbridge.streams.TestRun(
        driver._program.java, folder.as_uri(), cache_bytes, tables and str(tables)
    )
    return driver._run


def pipe(driver: TopologyTestDriver, records: list[tuple[str, str, dict[str, int], int]]) -> None:
    for topic, key, value, time in records:
        driver.pipe_input(topic, key, value, time)
