"""Changelogs of tables: what compaction leaves of them is the table."""

from __future__ import annotations

import json as json_text
import random
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    Grouped,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Table,
    TimeWindows,
    TopologyTestDriver,
    json,
)

AGGREGATES: dict[str, Callable[[Grouped], Table]] = {
    "of all records": lambda grouped: grouped.aggregate("kept", n="sum(n)"),
    "of tumbling windows": lambda grouped: grouped.windowed_by(TimeWindows.of("1 s")).count(name="kept"),
    "of sliding windows": lambda grouped: grouped.windowed_by(SlidingWindows.of("1 s")).count(name="kept"),
    "of sessions": lambda grouped: grouped.windowed_by(SessionWindows.of("1 s", grace="1 h")).count(name="kept"),
}


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("key", ["text", "long"])
def test_the_changelog_of_an_aggregate_has_what_its_state_has(spark: SparkSession, aggregate: str, key: str) -> None:
    source = random.Random(aggregate)  # noqa: S311 # test data
    builder = StreamsBuilder("logged")
    grouped = builder.stream("in", value=json("n int"), key=key).group_by_key()
    AGGREGATES[aggregate](grouped).changelog("log", name="log")
    driver = TopologyTestDriver(builder.build(), spark)
    for at in range(200):
        time = at * 200 + source.randrange(-1_500, 1_500)
        driver.pipe_input("in", source.choice([b"\0" * 7 + b"1", b"\0" * 7 + b"2"]), {"n": at}, timestamp=max(time, 0))
    kept: dict[str | None, Any] = {}
    for each in driver.read_output("log"):
        assert each.value is not None or each.key in kept
        kept.pop(each.key) if each.value is None else kept.update({each.key: each.value})
    rows = {
        _key(row): {name: value for name, value in row.items() if name != "key"}
        for row in driver.get_store("kept").all()
    }
    assert rows
    # A window that is closed leaves the state, and stays in the topic.
    assert {each: kept[each] for each in rows} == rows
    assert aggregate == "of tumbling windows" or aggregate == "of sliding windows" or kept == rows
    assert driver.rejected() == []


def _key(row: dict[str, Any]) -> str:
    if "window_start" not in row:
        return str(row["key"]) if isinstance(row["key"], str) else row["key"].to_bytes(8, "big").decode()
    return json_text.dumps({name: row[name] for name in ("key", "window_start")}, separators=(",", ":"))


def test_rows_that_are_removed_are_records_without_values(spark: SparkSession) -> None:
    builder = StreamsBuilder("logged")
    people = builder.table("people", value=json("age int")).changelog("people-log")
    people.filter("age >= 18").map_values(years="age").changelog("adults-log", name="adults")
    topology = builder.build()
    assert "    Sink: adults (topic: adults-log, compacted)\n      <-- adults-changes\n" in topology.describe()
    driver = TopologyTestDriver(topology, spark)
    for key, value in (("ann", {"age": 20}), ("bob", {"age": 5}), ("ann", {"age": 3}), ("bob", None), ("cid", None)):
        driver.pipe_input("people", key, value)
    logged = [(each.key, each.value) for each in driver.read_output("people-log")]
    assert logged == [("ann", {"age": 20}), ("bob", {"age": 5}), ("ann", {"age": 3}), ("bob", None)]
    assert [(each.key, each.value) for each in driver.read_output("adults-log")] == [
        ("ann", {"years": 20}),
        ("ann", None),
    ]


def test_the_form_of_the_keys_of_windows(spark: SparkSession) -> None:
    builder = StreamsBuilder("logged")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    grouped.windowed_by(TimeWindows.of("1 s")).count().suppress().changelog("log")
    driver = TopologyTestDriver(builder.build(), spark)
    for time in (1_500, 1_600, 5_000):
        driver.pipe_input("in", 'a"b', {"n": 1}, timestamp=time)
    (window,) = driver.read_output("log")
    assert window.key == r'{"key":"a\"b","window_start":"1970-01-01T00:00:01.000Z"}'
    assert window.value == {
        "window_start": "1970-01-01T00:00:01.000Z",
        "window_end": "1970-01-01T00:00:02.000Z",
        "count": 2,
    }
