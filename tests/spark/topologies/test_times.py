"""Records without a time or without a key, and removals: each has one meaning in all nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
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


def numbers(builder: StreamsBuilder, topic: str = "in", field: str = "n") -> Stream:
    return builder.stream(topic, value=json(f"{field} int"), name=topic)


def now() -> int:
    return int(time.time() * 1000)


NEEDS_TIMES: dict[str, Callable[[StreamsBuilder, Stream], Any]] = {
    "hopping": lambda b, s: s.group_by_key().windowed_by(TimeWindows.of("10 s", advance="5 s")).count(name="node"),
    "sessions": lambda b, s: s.group_by_key().windowed_by(SessionWindows.of("1 minute")).count(name="node"),
    "sliding": lambda b, s: s.group_by_key().windowed_by(SlidingWindows.of("1 minute")).count(name="node"),
    "an internal topic": lambda b, s: s.group_by("n").windowed_by(TimeWindows.of("1 minute")).count(name="node"),
    "a join": lambda b, s: s.left_join(numbers(b, "other", "m"), within="1 s", name="node"),
    "deduplicate": lambda b, s: s.deduplicate(within="1 minute", name="node"),
}


@pytest.mark.parametrize("timestamp", [-1, -5_000])
@pytest.mark.parametrize("name", NEEDS_TIMES)
def test_a_node_that_needs_times_sets_a_record_without_one_aside(
    spark: SparkSession, name: str, timestamp: int
) -> None:
    builder = StreamsBuilder("times")
    result = NEEDS_TIMES[name](builder, numbers(builder))
    result.to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    begun = now()
    for at in (70_000, timestamp, 70_000):
        driver.pipe_input("in", "k", {"n": 1}, timestamp=at, headers=[("own", b"1")])
    (letter,) = driver.rejected()
    headers = dict(letter.headers)
    assert headers["jmsbridge.reason"] == b"timestamp"
    assert headers["jmsbridge.node"] == b"node"
    assert headers["jmsbridge.error"] == (
        b"the record has no time: its timestamp in Kafka is less than 0, and the node needs one"
    )
    assert headers["own"] == b"1"
    assert begun <= letter.timestamp <= now()
    counts = driver.counts()
    assert counts.pop(("node", "repeated_records"), 1) == 1
    assert counts == {("node", "rejected_records"): 1}


def test_other_nodes_pass_a_record_without_a_time_on_and_its_result_has_the_time_of_its_publication(
    spark: SparkSession,
) -> None:
    builder = StreamsBuilder("times")
    found = numbers(builder).filter("n > 0").map_values(n="n", has_time="timestamp IS NOT NULL", at="timestamp")
    found.to("out")
    numbers(builder, "counted").group_by("n").count(name="counts").to("counts-out")
    driver = TopologyTestDriver(builder.build(), spark)
    begun = now()
    for at in (-1, -5_000, 0, 7):
        driver.pipe_input("in", "k", {"n": 1}, timestamp=at)
        driver.pipe_input("counted", "k", {"n": 1}, timestamp=at)
    assert driver.rejected() == []
    outputs = driver.read_output("out")
    assert [each.value["has_time"] for each in outputs] == [False, False, True, True]
    assert "at" not in outputs[0].value
    assert all(begun <= each.timestamp <= now() for each in outputs[:2])
    assert [each.timestamp for each in outputs[2:]] == [0, 7]
    counted = driver.read_output("counts-out")
    assert [each.value["count"] for each in counted] == [1, 2, 3, 4]
    assert [each.timestamp for each in counted[2:]] == [0, 7]


def test_hopping_windows_begin_with_1970(spark: SparkSession) -> None:
    builder = StreamsBuilder("times")
    windows = TimeWindows.of("10 s", advance="5 s")
    numbers(builder).group_by_key().windowed_by(windows).count(name="counts").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"n": 1}, timestamp=1_000)
    assert [each.value["window_start"] for each in driver.read_output("out")] == ["1970-01-01T00:00:00.000Z"]


KEEPS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "join": lambda left, right: left.join(right, within="1 s", name="node"),
    "left_join": lambda left, right: left.left_join(right, within="1 s", name="node"),
    "outer_join": lambda left, right: left.outer_join(right, within="1 s", name="node"),
}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("join", []), ("left_join", [{"n": 1}]), ("outer_join", [{"n": 1}, {"m": 2}])],
)
@pytest.mark.parametrize("is_moved", [False, True])
def test_a_join_of_streams_gives_the_result_of_a_record_without_a_key_at_once(
    spark: SparkSession, kind: str, expected: list[dict[str, int]], is_moved: bool
) -> None:
    builder = StreamsBuilder("keys")
    left, right = numbers(builder), numbers(builder, "other", "m")
    if is_moved:
        left, right = left.select_key("nullif(1, n)"), right.select_key("nullif(2, m)")
    KEEPS[kind](left, right).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", None, {"n": 1}, timestamp=1_000)
    driver.pipe_input("other", None, {"m": 2}, timestamp=1_000)
    outputs = driver.read_output("out")
    assert [(each.key, each.value) for each in outputs] == [(None, each) for each in expected]
    assert {each.timestamp for each in outputs} <= {1_000}
    assert driver.rejected() == []
    # What no join keeps is dropped before it would go through an internal topic.
    assert sum(driver.counts().values()) == 2
    assert {reason for _, reason in driver.counts()} == {"null_keys"}


def test_a_left_join_with_a_table_keeps_a_record_whose_new_key_is_null(spark: SparkSession) -> None:
    builder = StreamsBuilder("keys")
    table = builder.table("table", value=json("t int"))
    numbers(builder).left_join(table, on="nullif(1, n)", name="node").to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"n": 1})
    assert [(each.key, each.value) for each in driver.read_output("out")] == [(None, {"n": 1})]
    assert driver.counts() == {("node", "null_keys"): 1}


@pytest.mark.parametrize("field", ["a + 1", "1"])
def test_a_removal_stays_one_behind_map_values(spark: SparkSession, field: str) -> None:
    builder = StreamsBuilder("removals")
    builder.stream("in", value=json("a int")).map_values(b=field).to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", None)
    assert [(each.key, each.value) for each in driver.read_output("out")] == [("k", None)]
