"""Topologies that the benchmarks measure; the names of their topics begin with the text in BENCH_PREFIX.

`peer/…/Streams.java` has the same as Kafka Streams programs, but for Python functions and sums by minute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from engine.streams import (
    InputRecord,
    ProcessorContext,
    Stream,
    StreamsBuilder,
    TimeWindows,
    Topology,
    json,
    python,
    text,
)

__all__ = ["column", "count", "hopping", "join", "once", "process", "table", "total", "tumbling"]

PREFIX = os.environ.get("BENCH_PREFIX", "")
OUTPUT = os.environ.get("BENCH_OUTPUT", "out")


def _started(name: str) -> tuple[StreamsBuilder, Stream]:
    # The output's name is another one in each run, and so is the name of the topology, under which its state is kept.
    builder = StreamsBuilder(f"{name}-{OUTPUT}")
    return builder, builder.stream(f"{PREFIX}events", value=json("n bigint, amount bigint"))


def count() -> Topology:
    """Counts by key and minute, each change published."""
    builder, events = _started("count")
    counts = events.group_by_key().windowed_by(TimeWindows.of("1 minute", grace="1 minute")).count(name="counts")
    counts.to_stream().map_values(start="unix_millis(window_start)", count="count").to(OUTPUT)
    return builder.build()


def _by_minute(name: str, advance: str) -> Topology:
    """Sums by key over minutes that begin so far apart, each published when its window is closed."""
    builder = StreamsBuilder(f"{name}-{OUTPUT}")
    few = builder.stream(f"{PREFIX}few", value=json("n bigint, amount bigint"))
    windows = few.group_by_key().windowed_by(TimeWindows.of("1 minute", advance=advance))
    sums = windows.aggregate("sums", count="count(1)", total="sum(amount)", most="max(amount)")
    sums.suppress().to_stream().to(OUTPUT)
    return builder.build()


def tumbling() -> Topology:
    """Sums by key over minutes that follow one another."""
    return _by_minute("tumbling", "1 minute")


def hopping() -> Topology:
    """Sums by key over minutes, one of which begins each second."""
    return _by_minute("hopping", "1 s")


def total() -> Topology:
    """Counts by key, each change published."""
    builder, events = _started("total")
    events.group_by_key().count(name="totals").to_stream().to(OUTPUT)
    return builder.build()


def table() -> Topology:
    """Events with the name of their key."""
    builder, events = _started("table")
    events.join(builder.table(f"{PREFIX}names", value=json("name string"))).to(OUTPUT)
    return builder.build()


def join() -> Topology:
    """Records of two streams with one key whose times are within ten seconds."""
    builder = StreamsBuilder(f"join-{OUTPUT}")
    left = builder.stream(f"{PREFIX}left", value=json("l bigint"))
    right = builder.stream(f"{PREFIX}right", value=json("r bigint"))
    left.join(right, within="10 seconds", grace="1 minute", name="joined").to(OUTPUT)
    return builder.build()


def once() -> Topology:
    """The first event of each key within fifteen seconds; values stay text, as no node reads their fields."""
    builder = StreamsBuilder(f"once-{OUTPUT}")
    events = builder.stream(f"{PREFIX}events", value=text())
    events.deduplicate(within="15 seconds", name="once").to(OUTPUT)
    return builder.build()


def _doubled(batch: Any) -> Any:
    return batch["amount"].to_numpy() * 2


def column() -> Topology:
    """A field that a Python function computes over Arrow batches."""
    builder, events = _started("column")
    events.map_values(n="n", doubled=python(_doubled, "bigint")).to(OUTPUT)
    return builder.build()


def _added(event: InputRecord, key: ProcessorContext) -> Iterator[dict[str, int]]:
    assert event.value is not None
    total = (key.state or {"total": 0})["total"] + event.value["amount"]
    key.state = {"total": total}
    yield {"n": event.value["n"], "total": total}


def process() -> Topology:
    """Sums by key, by a Python function that is called for each record."""
    builder, events = _started("process")
    events.process(_added, fields="n bigint, total bigint", state="total bigint", name="sums").to(OUTPUT)
    return builder.build()
