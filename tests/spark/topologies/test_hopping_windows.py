"""Hopping windows, of which the state has slices, beside a plain Python model that keeps the records of each window."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from engine.streams import StreamsBuilder, TimeWindows, Topology, TopologyTestDriver, json, plan
from engine.topologies.runtime.kept import KeptState
from engine.topologies.runtime.layout import SLICED
from tests.spark.topologies.test_operators import milliseconds

MOST = 15
"""Total above which a window gives an early result."""
AGGREGATES = {
    "total": "sum(n)",
    "times": "count(1)",
    "least": "min(n)",
    "middle": "avg(n)",
    "best": "top(n, 2)",
    "first_n": "first(n)",
    "last_n": "last(n)",
    "list": "collect_list(n, 1000)",
    "different": "approx_count_distinct(n)",
}


class Sample(NamedTuple):
    key: str | None
    number: int | None
    time: int
    is_removal: bool


def samples(seed: int, size: int) -> list[Sample]:
    """Records whose times advance, stand still and jump; some are late or have no time, no key or no value."""
    source = random.Random(seed)  # noqa: S311 # test data
    found, now = [], size // 2
    for _ in range(150):
        now += source.choice((0, 0, size // 20, size // 5, size // 3, size // 2))
        now += 3 * size if source.random() < 0.02 else 0
        time = source.choice((now, now, max(0, now - source.randrange(2 * size)), -1))
        key = source.choice(("a", "a", "b", "c", None))
        found.append(Sample(key, source.choice((None, *range(-4, 10))), time, source.random() < 0.05))
    return found


def build(windows: TimeWindows) -> Topology:
    builder = StreamsBuilder("hopping")
    grouped = builder.stream("in", value=json("n int")).group_by_key().windowed_by(windows)
    changes = grouped.aggregate("changes", **AGGREGATES)
    changes.to("out")
    changes.filter("times % 2 = 0").changelog("log")
    grouped.aggregate("final", **AGGREGATES).suppress().to("closed")
    grouped.aggregate("early", **AGGREGATES).suppress(until=f"total > {MOST}").to("soon")
    return builder.build()


class Model:
    """All records of each window that is open, and what has been published of it."""

    def __init__(self, windows: TimeWindows) -> None:
        self.size, self.advance, self.grace = windows.size_ms, windows.advance_ms, windows.grace_ms
        self.open: dict[tuple[str, int], list[Sample]] = defaultdict(list)
        self.early: set[tuple[str, int]] = set()
        self.now = -1
        self.counts = {"late_records": 0, "null_keys": 0, "null_values": 0}
        self.outputs: dict[str, list[tuple[str, int, dict[str, Any] | None]]] = defaultdict(list)

    def slice_of(self, record: Sample) -> int:
        start = record.time // self.advance * self.advance
        cut = start + self.size % self.advance
        return start if record.time < cut else cut

    def result(self, records: list[Sample]) -> dict[str, Any]:
        # Slice after slice, those of each in the order in which they came.
        ordered = sorted(records, key=self.slice_of)
        present = [each.number for each in ordered if each.number is not None]
        value = {
            "total": sum(present) if present else None,
            "times": len(ordered),
            "least": min(present, default=None),
            "middle": sum(present) / len(present) if present else None,
            "best": sorted(present, reverse=True)[:2],
            "first_n": ordered[0].number,
            "last_n": ordered[-1].number,
            "list": present,
            "different": len(set(present)),
        }
        return {name: each for name, each in value.items() if each is not None}

    def put(self, topic: str, window: tuple[str, int], value: dict[str, Any] | None) -> None:
        self.outputs[topic].append((*window, value))

    def take(self, record: Sample) -> None:
        if record.key is None or record.is_removal:
            self.counts["null_keys" if record.key is None else "null_values"] += 1
            return
        if record.time < 0:
            return
        self.now = max(self.now, record.time)
        first = max(0, (record.time - self.size) // self.advance * self.advance + self.advance)
        starts = range(first, record.time + 1, self.advance)
        taking = [start for start in starts if start + self.size + self.grace > self.now]
        self.counts["late_records"] += not taking
        for start in taking:
            window, before = (record.key, start), self.open.get((record.key, start), [])[:]
            self.open[window].append(record)
            value = self.result(self.open[window])
            self.put("out", window, value)
            if value["times"] % 2 == 0:
                self.put("log", window, value)
            elif before:
                self.put("log", window, None)
            if value.get("total", 0) > MOST and window not in self.early:
                self.early.add(window)
                self.put("soon", window, value)
        self.close()

    def close(self) -> None:
        for window in sorted(self.open, key=lambda each: (each[1], each[0])):
            if window[1] + self.size + self.grace <= self.now:
                value = self.result(self.open.pop(window))
                self.put("closed", window, value)
                self.put("soon", window, value)


def published(driver: TopologyTestDriver, topic: str) -> list[tuple[str, int, dict[str, Any] | None]]:
    found = []
    for each in driver.read_output(topic):
        if topic == "log":
            key = str(each.key)
            name, start = key.split('"')[3], key.split('"')[-2]
        else:
            name, start = each.key, each.value["window_start"]
        value = None if each.value is None else {at: each.value[at] for at in AGGREGATES if at in each.value}
        found.append((name, milliseconds(start), value))
    return found


WINDOWS = [
    TimeWindows.of("1 s", advance="100 ms", grace="300 ms"),
    TimeWindows.of("1 s", advance="300 ms"),
    TimeWindows.of("700 ms", advance="699 ms", grace="2 s"),
    TimeWindows.of("100 ms", advance="1 ms", grace="50 ms"),
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("windows", WINDOWS, ids=lambda each: f"{each.size_ms} by {each.advance_ms}")
def test_a_window_has_its_records_whatever_their_order(spark: SparkSession, windows: TimeWindows, seed: int) -> None:
    model, records = Model(windows), samples(seed, windows.size_ms)
    driver = TopologyTestDriver(build(windows), spark)
    for at, each in enumerate(records):
        driver.pipe_input("in", each.key, None if each.is_removal else {"n": each.number}, timestamp=each.time)
        model.take(each)
        if at % 30 == 0:
            expected = [(key, start, model.result(model.open[key, start])) for key, start in sorted(model.open)]
            for node in ("changes", "final", "early"):
                assert rows(driver, node) == expected
                key, some = "a", [each for each in expected if each[0] == "a"]
                middle = some[len(some) // 2][1] if some else 0
                assert rows(driver, node, key=key, since=middle) == [each for each in some if each[1] >= middle]
    driver.advance_time(10**9)
    model.now = 10**9
    model.close()
    for topic in ("out", "log", "closed", "soon"):
        assert published(driver, topic) == model.outputs[topic], topic
    assert len(model.outputs["closed"]) > 20
    assert len(driver.rejected()) == 3 * sum(
        each.time < 0 and each.key is not None and not each.is_removal for each in records
    )
    for name, count in model.counts.items():
        assert driver.counts().get(("final", name), 0) == count
    assert list(driver.get_store("final").all()) == []
    # Neither slices nor ends are left: what is there says how far each node has come.
    assert driver._run.entries() <= 3


def rows(driver: TopologyTestDriver, node: str, **asked: Any) -> list[tuple[str, int, dict[str, Any]]]:
    return [
        (row["key"], milliseconds(row["window_start"]), {name: row[name] for name in AGGREGATES if name in row})
        for row in driver.get_store(node).rows(**asked)
    ]


def test_a_record_writes_one_slice_however_many_windows_have_it(spark: SparkSession) -> None:
    builder = StreamsBuilder("written")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    windows = TimeWindows.of("1 minute", advance="1 s")
    grouped.windowed_by(windows).aggregate("final", total="sum(n)").suppress().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    for time in range(120_000, 180_000, 100):
        driver.pipe_input("in", "a", {"n": 1}, timestamp=time)
    # A slice for each second, the end of each window, and the time of the node.
    assert driver._run.entries() <= 60 + 119 + 1
    assert [each.value["total"] for each in driver.read_output("out")][:3] == [10, 20, 30]


def test_a_window_that_cannot_be_computed_is_a_letter_and_the_others_have_the_record(spark: SparkSession) -> None:
    builder = StreamsBuilder("overflow")
    windows = TimeWindows.of("2 s", advance="1 s")
    grouped = builder.stream("in", value=json("a bigint")).group_by_key().windowed_by(windows)
    grouped.aggregate("t", s="sum(a)").suppress().to("out")
    driver = TopologyTestDriver(builder.build(), spark)
    driver.pipe_input("in", "k", {"a": 2**63 - 1}, timestamp=1_500)
    driver.pipe_input("in", "k", {"a": 7}, timestamp=2_500)
    assert [row["s"] for row in driver.get_store("t").all()] == [7]
    driver.advance_time(10_000)
    assert [each.value["s"] for each in driver.read_output("out")] == [2**63 - 1, 7]
    (letter,) = driver.rejected()
    headers = dict(letter.headers)
    assert (letter.key, headers["jmsbridge.window-start"], headers["jmsbridge.node"]) == ("k", b"1000", b"t")


def test_state_of_an_earlier_release_is_refused_with_the_node(spark: SparkSession) -> None:
    builder = StreamsBuilder("former")
    grouped = builder.stream("in", value=json("n int")).group_by_key()
    grouped.windowed_by(WINDOWS[0]).count("hopping").to("out")
    grouped.windowed_by(TimeWindows.of("1 s")).count("tumbling").to("out")
    now = KeptState.of(plan(builder.build(), spark), {"in": 1}, None)
    former = {name: each.removesuffix(SLICED) for name, each in now.nodes.items()}
    assert {name for name in former if former[name] != now.nodes[name]} == {"hopping"}
    before = KeptState(former, now.partitions, now.topics, now.inputs, now.stores, now.dropped)
    assert before.misfits(now) == ["kept in another form by an earlier release: hopping"]
    assert now.misfits(now) == []
