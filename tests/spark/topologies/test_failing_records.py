"""A record that fails in a node with state changes nothing; in a table, a value that fails counts as no row."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from engine.streams import (
    Output,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
    TopologyTestDriver,
    json,
)

SEEDS = (1, 2, 3)
BAD = 0
"""The number by which the expressions of these topologies divide, and so fail."""


class Sample(NamedTuple):
    key: str
    number: int | None
    time: int


def samples(seed: int, *, removals: bool = False) -> list[Sample]:
    """Random records, a fourth of which fail: some of them with times far ahead of all others."""
    source = random.Random(seed)  # noqa: S311 # test data
    made = []
    for at in range(60):
        number = source.choice((BAD, 1, 2, 3))
        ahead = 3_600_000 if number == BAD and source.random() < 0.3 else 0
        is_removal = removals and source.random() < 0.2
        made.append(
            Sample(source.choice("abc"), None if is_removal else number, at * 300 + source.randrange(2_000) + ahead)
        )
    return made


def run(topology: Topology, spark: SparkSession, records: list[Sample]) -> tuple[list[Output], list[Output]]:
    """The records published to the topic `out`, and those to the dead letters."""
    driver = TopologyTestDriver(topology, spark)
    if "others" in {source.topic for source in topology.sources}:
        for quotient in ("60.0", "30.0"):
            driver.pipe_input("others", quotient, {"name": f"of {quotient}"})
    for each in records:
        value = None if each.number is None else {"a": each.number, "region": "xyz"[(each.number or 0) % 2]}
        driver.pipe_input("in", each.key, value, timestamp=each.time)
    return driver.read_output("out"), driver.rejected()


def header(letter: Output, name: str) -> str | None:
    found = dict(letter.headers).get(f"jmsbridge.{name}")
    return None if found is None else found.decode()


def failed_offsets(letters: list[Output]) -> list[int]:
    return [int((header(each, "position") or "").rpartition(":")[2]) for each in letters]


def windowed(windows: SessionWindows | SlidingWindows | TimeWindows, *, is_final: bool) -> Callable[[], Topology]:
    def build() -> Topology:
        builder = StreamsBuilder("windows")
        counted = builder.stream("in", value=json("a int")).group_by_key().windowed_by(windows)
        table = counted.aggregate("t", n="count(1)", s="sum(60 / a)")
        (table.suppress() if is_final else table).to_stream().to("out")
        return builder.build()

    return build


def total() -> Topology:
    builder = StreamsBuilder("total")
    grouped = builder.stream("in", value=json("a int")).group_by_key()
    grouped.aggregate("t", n="count(1)", s="sum(60 / a)").to_stream().to("out")
    return builder.build()


def once() -> Topology:
    builder = StreamsBuilder("once")
    builder.stream("in", value=json("a int")).deduplicate(by="cast(60 / a as string)", within="2 s").to("out")
    return builder.build()


STREAMS: dict[str, Callable[[], Topology]] = {
    "total": total,
    "once": once,
    "tumbling": windowed(TimeWindows.of("1 s", grace="10 s"), is_final=False),
    "hopping": windowed(TimeWindows.of("3 s", advance="1 s", grace="10 s"), is_final=False),
    "hopping, final": windowed(TimeWindows.of("3 s", advance="1 s", grace="10 s"), is_final=True),
    "session": windowed(SessionWindows.of("700 ms", grace="10 s"), is_final=False),
    "session, final": windowed(SessionWindows.of("700 ms", grace="10 s"), is_final=True),
    "sliding": windowed(SlidingWindows.of("2 s", grace="10 s"), is_final=False),
    "sliding, final": windowed(SlidingWindows.of("2 s", grace="10 s"), is_final=True),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("build", STREAMS.values(), ids=STREAMS)
def test_a_record_that_fails_changes_nothing(spark: SparkSession, seed: int, build: Callable[[], Topology]) -> None:
    records = samples(seed)
    outputs, letters = run(build(), spark, records)
    assert outputs == run(build(), spark, [each for each in records if each.number != BAD])[0]
    assert failed_offsets(letters) == [at for at, each in enumerate(records) if each.number == BAD]
    assert outputs


PATIENT: dict[str, Callable[[], Topology]] = {
    "total": total,
    "hopping": windowed(TimeWindows.of("3 s", advance="1 s", grace="1 hour"), is_final=False),
    "session": windowed(SessionWindows.of("700 ms", grace="1 hour"), is_final=False),
    "sliding": windowed(SlidingWindows.of("2 s", grace="1 hour"), is_final=False),
}
"""Topologies that take records of any time."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("build", PATIENT.values(), ids=PATIENT)
def test_a_letter_that_is_mended_and_sent_again_counts_once(
    spark: SparkSession, seed: int, build: Callable[[], Topology]
) -> None:
    records = [each for each in samples(seed) if each.time < 3_600_000]
    mended = [each._replace(number=5) for each in records if each.number == BAD]
    good = [each for each in records if each.number != BAD]
    assert last(run(build(), spark, [*records, *mended])[0]) == last(run(build(), spark, [*good, *mended])[0])


def last(outputs: list[Output]) -> dict[tuple[str, str | None], object]:
    """The last result of each key and window; one that was removed is left out."""
    found: dict[tuple[str, str | None], object] = {}
    for each in outputs:
        if each.value is None:
            continue
        values = {name: round(value, 6) if isinstance(value, float) else value for name, value in each.value.items()}
        found[each.key, values.get("window_start")] = values
    return found


def mapped() -> Topology:
    builder = StreamsBuilder("mapped")
    builder.table("in", value=json("a int, region string")).map_values(q="60 / a").changelog("out")
    return builder.build()


def filtered() -> Topology:
    builder = StreamsBuilder("filtered")
    builder.table("in", value=json("a int, region string")).filter("60 / a > 15").changelog("out")
    return builder.build()


def grouped_by_what_fails() -> Topology:
    builder = StreamsBuilder("grouped")
    table = builder.table("in", value=json("a int, region string"))
    table.group_by("cast(60 / a as string)").aggregate("g", c="count(1)").changelog("out")
    return builder.build()


def group_of_what_fails() -> Topology:
    builder = StreamsBuilder("group")
    table = builder.table("in", value=json("a int, region string"))
    table.group_by("region").aggregate("g", c="count(1)", s="sum(60 / a)").changelog("out")
    return builder.build()


def joined_by_what_fails(kind: str) -> Callable[[], Topology]:
    def build() -> Topology:
        builder = StreamsBuilder("joined")
        table = builder.table("in", value=json("a int, region string"))
        others = builder.table("others", value=json("name string"))
        getattr(table, kind)(others, on="cast(60 / a as string)").changelog("out")
        return builder.build()

    return build


TABLES: dict[str, Callable[[], Topology]] = {
    "mapped": mapped,
    "filtered": filtered,
    "grouped by what fails": grouped_by_what_fails,
    "group of what fails": group_of_what_fails,
    "foreign key": joined_by_what_fails("join"),
    "foreign key, left": joined_by_what_fails("left_join"),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("build", TABLES.values(), ids=TABLES)
def test_a_value_that_fails_counts_as_no_row(spark: SparkSession, seed: int, build: Callable[[], Topology]) -> None:
    records = [each._replace(time=at) for at, each in enumerate(samples(seed, removals=True))]
    without = [replaced._replace(number=None) if replaced.number == BAD else replaced for replaced in records]

    def rows(outputs: list[Output]) -> dict[str, object]:
        found: dict[str, object] = {}
        for each in outputs:
            found[each.key] = each.value
            if each.value is None:
                del found[each.key]
        return found

    outputs, letters = run(build(), spark, records)
    expected = run(build(), spark, without)[0]
    assert rows(outputs) == rows(expected)
    assert len(letters) == sum(each.number == BAD for each in records)
    assert outputs


def test_a_window_that_fails_when_it_closes_is_a_letter_about_it_alone(spark: SparkSession) -> None:
    builder = StreamsBuilder("closing")
    counted = builder.stream("in", value=json("a int")).group_by_key().windowed_by(TimeWindows.of("1 minute"))
    counted.aggregate("t", n="count(1)", r="sum(60) / sum(a)").suppress().to_stream().to("out")
    records = [Sample("a", 1, 1_000), Sample("b", 0, 1_000), Sample("c", 2, 1_000), Sample("z", 5, 61_000),
               Sample("z", 5, 121_000)]  # fmt: skip
    outputs, letters = run(builder.build(), spark, records)
    assert [(each.key, each.value["r"]) for each in outputs] == [("a", 60.0), ("c", 30.0), ("z", 12.0)]
    assert [(each.key, each.value, each.timestamp) for each in letters] == [("b", None, 1_000)]
    about = [header(letters[0], name) for name in ("window-start", "window-end", "position", "timestamp")]
    assert about == ["0", "60000", None, "1000"]


def test_a_window_that_fails_alone_keeps_the_record_in_the_others(spark: SparkSession) -> None:
    builder = StreamsBuilder("overflow")
    windows = TimeWindows.of("2 s", advance="1 s", grace="1 hour")
    counted = builder.stream("in", value=json("a bigint")).group_by_key().windowed_by(windows)
    counted.aggregate("t", s="sum(a)").to_stream().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"a": 2**63 - 1}, timestamp=1_500)
    driver.pipe_input("in", "k", {"a": 7}, timestamp=2_500)
    found = last(driver.read_output("out"))
    assert {window: values["s"] for (_, window), values in found.items() if isinstance(values, dict)} == {
        "1970-01-01T00:00:00.000Z": 2**63 - 1,
        "1970-01-01T00:00:01.000Z": 2**63 - 1,
        "1970-01-01T00:00:02.000Z": 7,
    }
    letters = driver.rejected()
    assert [(header(each, "window-start"), header(each, "position")) for each in letters] == [("1000", "in:0:1")]


def test_a_failure_behind_a_closed_window_blames_no_other_record(spark: SparkSession) -> None:
    builder = StreamsBuilder("behind")
    counted = builder.stream("in", value=json("a int")).group_by_key().windowed_by(TimeWindows.of("1 s"))
    closed = counted.aggregate("t", s="sum(a)").suppress().to_stream()
    closed.map_values("quotient", q="60 / s").to("out")
    outputs, letters = run(builder.build(), spark, [Sample("b", 0, 0), Sample("z", 5, 5_000)])
    assert outputs == []
    assert [(each.key, header(each, "node"), header(each, "position")) for each in letters] == [("b", "quotient", None)]
