"""What records of a batch give together: aggregates before internal topics, and the last change of each key."""

from __future__ import annotations

import struct
from collections import defaultdict
from itertools import groupby
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TimeWindows, Topology, TopologyError, TopologyTestDriver, json
from engine.topologies.library.dsl import Stream
from engine.topologies.library.nodes import Repartition
from engine.topologies.library.program import plan
from engine.topologies.library.windows import SlidingWindows, Windows
from engine.topologies.runtime.layout import fingerprints, internal_formats

SUMS = {
    "n": "count(1)",
    "total": "sum(amount)",
    "small": "count(1) FILTER (WHERE amount < 20)",
    "least": "min(amount)",
    "best": "max_by(struct(amount, id), amount)",
    "first": "first(id)",
    "last": "last(id)",
    "some": "collect_list(id, 3)",
    "largest": "top(amount, 2)",
    "mean": "avg(amount)",
}
DAYS = TimeWindows.of("1 day", zone="Europe/Berlin", grace="1 h")
Record = tuple[str, str, int]
"""Key, JSON and time of a record."""


def records(seed: int, count: int, *, jitter: int) -> list[Record]:
    """Records of a few customers, whose times grow but for some milliseconds."""
    random = Random(seed)  # noqa: S311 # test data
    return [
        (
            "k",
            f'{{"id": {at}, "customer": "{random.choice("abc")}", "amount": {random.randrange(50)}}}',
            at * 400 + random.randrange(jitter),
        )
        for at in range(count)
    ]


def run(driver: TopologyTestDriver, made: list[Record], batch: int) -> list[Any]:
    """The results of the records in batches of so many."""
    driver.read_output("out")
    for at in range(0, len(made), batch):
        for key, value, time in made[at : at + batch]:
            driver._run.hold("in", key.encode(), value.encode(), time)
        driver._run.processHeld()
    driver.advance_time(10_000_000_000)
    return [(each.key, each.value, each.timestamp) for each in driver.read_output("out")]


def started(name: str = "batches") -> tuple[StreamsBuilder, Stream]:
    builder = StreamsBuilder(name)
    return builder, builder.stream("in", value=json("id bigint, customer string, amount bigint"))


def windowed(windows: Windows) -> Topology:
    builder, stream = started()
    table = stream.group_by("customer").windowed_by(windows).aggregate("sums", **SUMS).suppress()
    table.to_stream().to("out")
    return builder.build()


def totals() -> Topology:
    builder, stream = started()
    stream.group_by("customer").aggregate("sums", **SUMS).suppress().to_stream().to("out")
    return builder.build()


@pytest.mark.parametrize(
    "windows",
    [
        TimeWindows.of("5 s", grace="2 s"),
        TimeWindows.of("6 s", advance="4 s", grace="2 s"),
        DAYS,
    ],
)
def test_windows_give_the_same_for_batches_of_any_size(spark: SparkSession, windows: Windows) -> None:
    topology, made = windowed(windows), records(3, 120, jitter=3_000)
    expected: list[Any] | None = None
    for batch in (1, 7, 50, 1000):
        with TopologyTestDriver(topology, spark) as driver:
            found = sorted(run(driver, made, batch), key=repr)
            late = driver.counts().get(("sums", "late_records"), 0)
            assert driver.rejected() == []
        expected = expected or found
        assert found == expected
        assert sum(each["n"] for _, each, _ in found) + late >= len(made)
    assert expected


def test_each_late_record_counts(spark: SparkSession) -> None:
    with TopologyTestDriver(windowed(TimeWindows.of("5 s")), spark) as driver:
        run(driver, [("k", '{"customer": "a", "amount": 1}', 100_000)], 1)
        run(driver, [("k", '{"customer": "a", "amount": 1}', time) for time in (1, 2, 3)], 3)
        assert driver.counts() == {("sums", "late_records"): 3}


def test_a_batch_gives_the_last_change_of_each_key(spark: SparkSession) -> None:
    made = records(4, 90, jitter=1)
    with TopologyTestDriver(totals(), spark) as driver:
        each_change = run(driver, made, 1)
    assert len(each_change) == len(made)
    for batch in (7, 1000):
        with TopologyTestDriver(totals(), spark) as driver:
            found = run(driver, made, batch)
        expected = []
        for _, part in groupby(enumerate(each_change), key=lambda each: each[0] // batch):
            expected += {change[0]: change for _, change in part}.values()
        assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_tables_behind_it_follow_its_changes(spark: SparkSession) -> None:
    builder, stream = started()
    sums = stream.group_by("customer").aggregate("sums", total="sum(amount)").suppress()
    sums.group_by("total % 2").aggregate("groups", total="sum(total)", n="count(1)").to_stream().to("out")
    topology, made = builder.build(), records(5, 60, jitter=1)
    wanted: dict[str, int] = defaultdict(int)
    with TopologyTestDriver(topology, spark) as driver:
        for key, value, time in made:
            driver.pipe_input("in", key, value, time)
        wanted = {each.key: each.value for each in driver.read_output("out") if isinstance(each.key, str)}
    for batch in (4, 25):
        with TopologyTestDriver(topology, spark) as driver:
            assert {key: value for key, value, _ in run(driver, made, batch)} == wanted


def test_a_join_finds_what_is_not_forwarded_yet(spark: SparkSession) -> None:
    builder, stream = started()
    keyed = stream.select_key("customer").repartition(name="keyed")
    sums = keyed.group_by_key().aggregate("sums", total="sum(amount)").suppress()
    sums.to_stream().to("sums")
    keyed.join(sums).map_values(id="id", total="total").to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        made = [("k", f'{{"id": {at}, "customer": "a", "amount": 1}}', at) for at in range(3)]
        assert [value for _, value, _ in run(driver, made, 3)] == [{"id": at, "total": at + 1} for at in range(3)]


def test_a_record_that_fails_is_set_aside_alone(spark: SparkSession) -> None:
    builder, stream = started()
    sums = stream.group_by("customer").aggregate("sums", total="sum(60 div amount)").suppress()
    sums.to_stream().to("out")
    made = [("k", f'{{"id": 1, "customer": "a", "amount": {amount}}}', 0) for amount in (1, 0, 2)]
    with TopologyTestDriver(builder.build(), spark) as driver:
        assert [value for _, value, _ in run(driver, made, 3)] == [{"total": 90}]
        (letter,) = driver.rejected()
        assert letter.key == "k"
        assert driver.counts() == {("sums", "rejected_records"): 1}


def test_a_result_that_fails_is_set_aside_and_its_records_count(spark: SparkSession) -> None:
    builder, stream = started()
    stream.group_by("customer").aggregate("sums", rate="60 div sum(amount)").suppress().to_stream().to("out")
    with TopologyTestDriver(builder.build(), spark) as driver:
        found = [run(driver, [("k", f'{{"customer": "a", "amount": {amount}}}', 0)], 1) for amount in (5, -5, 20)]
        assert [[value for _, value, _ in each] for each in found] == [[{"rate": 12}], [None], [{"rate": 3}]]
        assert driver.counts() == {("sums", "rejected_records"): 1}


def test_it_is_for_an_aggregate_right_behind_it() -> None:
    builder, stream = started()
    grouped = stream.group_by_key()
    grouped.count("early").suppress(until="count > 1")
    grouped.count("clock").suppress(close="clock")
    grouped.count("expiring").expire_after("1 h").suppress()
    grouped.count("last").suppress().expire_after("1 h")
    stream.to_table(name="table").suppress().to("out")
    with pytest.raises(TopologyError) as raised:
        builder.build()
    names = ["early", "clock", "expiring", "last", "table"]
    assert [fault.split(":")[0] for fault in raised.value.faults] == [f"'{name}'" for name in names]


def test_records_are_combined_only_where_each_does_not_count() -> None:
    windows = TimeWindows.of("1 s")
    builder, stream = started()
    grouped = stream.group_by("customer")
    grouped.count("each").to("out")
    grouped.windowed_by(windows).count("changes").to("out")
    grouped.windowed_by(windows).count("early").suppress(until="count > 1").to("out")
    grouped.windowed_by(windows, late="dead-letter").count("late").suppress().to("out")
    grouped.windowed_by(SlidingWindows.of("1 s")).count("sliding").suppress().to("out")
    grouped.windowed_by(windows).count("final").suppress().to("out")
    grouped.count("last").suppress().to("out")
    shared = stream.select_key("customer").repartition()
    shared.group_by_key().count("shared").suppress().to("out")
    shared.to("shared")
    topology = builder.build()
    found = [topology.aggregate_behind(node) for node in topology.nodes if isinstance(node, Repartition)]
    assert [each.name for each in found if each and each.is_combined] == ["final", "last"]


def test_an_internal_topic_may_have_records_and_what_they_give_together(spark: SparkSession) -> None:
    builder, stream = started()
    stream.group_by("customer").aggregate("sums", total="sum(amount)").suppress().to("out")
    topic = "batches-repartition-1-repartition"
    # A row of Spark: bits of nulls, the id, offset and length of the customer, the amount, and the customer.
    row = struct.pack("<qqqq", 0, 1, 32 << 32 | 1, 5) + b"a".ljust(8, b"\0")
    with TopologyTestDriver(builder.build(), spark) as driver:
        driver.pipe_input("in", "k", '{"customer": "a", "amount": 2}')
        driver._run.hold(topic, b"a", row, 0)
        # Twelve bytes before a row are the number of records, and the aggregates that they were for.
        driver._run.hold(topic, b"a", bytes(12) + bytes(16), 0)
        driver._run.processHeld()
        assert [each.value for each in driver.read_output("out")] == [{"total": 2}, {"total": 7}]
        (letter,) = driver.rejected()
        assert b"not of the present aggregates" in dict(letter.headers)["jmsbridge.error"]


def test_a_topology_goes_on_with_its_state_when_only_last_changes_count(spark: SparkSession) -> None:
    found = []
    for is_last in (False, True):
        builder, stream = started()
        table = stream.group_by("customer").count("sums")
        (table.suppress() if is_last else table).to("out")
        planned = plan(builder.build(), spark)
        found.append((fingerprints(planned), internal_formats(planned)))
    assert found[0] == found[1]
