"""Plain Python models of windows that overlap, which keep the records of each window."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

from engine.streams import Output, SlidingWindows, StreamsBuilder, TimeWindows, Topology, TopologyTestDriver, json
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


OUTPUTS = "out", "log", "closed", "soon"
"""Topics to which `build` publishes changes, a changelog of some of them, final results, and those with early ones."""


class Sample(NamedTuple):
    key: str | None
    number: int | None
    time: int
    is_removal: bool


def build(windows: TimeWindows | SlidingWindows) -> Topology:
    """Aggregates of the same windows that give results in each way."""
    builder = StreamsBuilder("overlapping")
    grouped = builder.stream("in", value=json("n int")).group_by_key().windowed_by(windows)
    changes = grouped.aggregate("changes", **AGGREGATES)
    changes.to("out")
    changes.filter("times % 2 = 0").changelog("log")
    grouped.aggregate("final", **AGGREGATES).suppress().to("closed")
    grouped.aggregate("early", **AGGREGATES).suppress(until=f"total > {MOST}").to("soon")
    return builder.build()


class OverlappingModel(ABC):
    """All records of each window that is open, and what has been published of it."""

    def __init__(self, grace: int) -> None:
        self.grace = grace
        self.open: dict[tuple[str, int], list[Sample]] = defaultdict(list)
        self.early: set[tuple[str, int]] = set()
        self.now = -1
        self.counts = {"late_records": 0, "null_keys": 0, "null_values": 0}
        self.outputs: dict[str, list[tuple[str, int, dict[str, Any] | None]]] = defaultdict(list)

    @abstractmethod
    def slice_of(self, record: Sample) -> int:
        """Beginning of the slice that has a record."""

    @abstractmethod
    def behind(self, start: int) -> int:
        """The first time behind a window."""

    @abstractmethod
    def last(self, record: Sample) -> int:
        """Beginning of the last window that can have a record."""

    @abstractmethod
    def changed(self, record: Sample) -> dict[int, list[Sample]]:
        """The records of each window of a key that changes with a record, closed ones among them."""

    def is_closed(self, start: int) -> bool:
        return self.behind(start) + self.grace <= self.now

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
        if self.is_closed(self.last(record)):
            self.counts["late_records"] += 1
        else:
            for start, records in sorted(self.changed(record).items()):
                if not self.is_closed(start):
                    self.change((record.key, start), records)
        self.close()

    def change(self, window: tuple[str, int], records: list[Sample]) -> None:
        before = window in self.open
        self.open[window] = records
        value = self.result(records)
        self.put("out", window, value)
        if value["times"] % 2 == 0:
            self.put("log", window, value)
        elif before:
            self.put("log", window, None)
        if value.get("total", 0) > MOST and window not in self.early:
            self.early.add(window)
            self.put("soon", window, value)

    def close(self) -> None:
        for window in sorted(self.open, key=lambda each: (each[1], each[0])):
            if self.is_closed(window[1]):
                value = self.result(self.open.pop(window))
                self.put("closed", window, value)
                self.put("soon", window, value)

    def end(self) -> None:
        """Closes all windows."""
        self.now = 10**9
        self.close()

    def check_outputs(self, outputs: Mapping[str, list[Output]]) -> None:
        """Compares what was published, by topic, with what should have been."""
        for topic in OUTPUTS:
            assert published(topic, outputs[topic]) == self.outputs[topic], topic

    def check_nothing_is_left(self, driver: TopologyTestDriver) -> None:
        """Compares the counts of a driver whose windows are closed, whose state says how far each node has come."""
        for name, count in self.counts.items():
            assert driver.counts().get(("final", name), 0) == count
        assert list(driver.get_store("final").all()) == []
        assert driver._run.entries() <= 3

    def check_open(self, driver: TopologyTestDriver) -> None:
        """Compares the windows that are open with what questions for the state say."""
        expected = [(key, start, self.result(self.open[key, start])) for key, start in sorted(self.open)]
        for node in ("changes", "final", "early"):
            assert rows(driver, node) == expected
            key, some = "a", [each for each in expected if each[0] == "a"]
            middle = some[len(some) // 2][1] if some else 0
            assert rows(driver, node, key=key, since=middle) == [each for each in some if each[1] >= middle]


class HopModel(OverlappingModel):
    """Windows that begin at multiples of a time."""

    def __init__(self, windows: TimeWindows) -> None:
        super().__init__(windows.grace_ms)
        self.size, self.advance = windows.size_ms, windows.advance_ms

    def slice_of(self, record: Sample) -> int:
        start = record.time // self.advance * self.advance
        cut = start + self.size % self.advance
        return start if record.time < cut else cut

    def behind(self, start: int) -> int:
        return start + self.size

    def last(self, record: Sample) -> int:
        return record.time // self.advance * self.advance

    def changed(self, record: Sample) -> dict[int, list[Sample]]:
        assert record.key is not None
        first = max(0, (record.time - self.size) // self.advance * self.advance + self.advance)
        starts = range(first, record.time + 1, self.advance)
        return {start: [*self.open.get((record.key, start), []), record] for start in starts}


class SlideModel(OverlappingModel):
    """Windows that end with a record, and those that begin right behind one that another one follows."""

    def __init__(self, windows: SlidingWindows) -> None:
        super().__init__(windows.grace_ms)
        self.size = windows.size_ms
        self.records: dict[str, list[Sample]] = defaultdict(list)

    def slice_of(self, record: Sample) -> int:
        return record.time

    def behind(self, start: int) -> int:
        return start + self.size + 1

    def last(self, record: Sample) -> int:
        return record.time

    def windows(self, records: list[Sample]) -> dict[int, list[Sample]]:
        times = {each.time for each in records}
        starts = {time - self.size for time in times}
        starts |= {time + 1 for time in times if any(time < other <= time + 1 + self.size for other in times)}
        return {start: [each for each in records if start <= each.time < self.behind(start)] for start in starts}

    def changed(self, record: Sample) -> dict[int, list[Sample]]:
        assert record.key is not None
        before = self.windows(self.records[record.key])
        self.records[record.key].append(record)
        return {
            start: records
            for start, records in self.windows(self.records[record.key]).items()
            if before.get(start) != records
        }


def model_of(windows: TimeWindows | SlidingWindows) -> OverlappingModel:
    return HopModel(windows) if isinstance(windows, TimeWindows) else SlideModel(windows)


def pipe(driver: TopologyTestDriver, record: Sample) -> None:
    driver.pipe_input("in", record.key, None if record.is_removal else {"n": record.number}, timestamp=record.time)


def published(topic: str, outputs: list[Output]) -> list[tuple[str, int, dict[str, Any] | None]]:
    found = []
    for each in outputs:
        if topic == "log":
            key = str(each.key)
            name, start = key.split('"')[3], key.split('"')[-2]
        else:
            name, start = each.key, each.value["window_start"]
        value = None if each.value is None else {at: each.value[at] for at in AGGREGATES if at in each.value}
        found.append((name, milliseconds(start), value))
    return found


def rows(driver: TopologyTestDriver, node: str, **asked: Any) -> list[tuple[str, int, dict[str, Any]]]:
    return [
        (row["key"], milliseconds(row["window_start"]), {name: row[name] for name in AGGREGATES if name in row})
        for row in driver.get_store(node).rows(**asked)
    ]
