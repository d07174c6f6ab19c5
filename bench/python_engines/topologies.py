"""The workloads as topologies, which read and write the topics that BENCH_PREFIX and BENCH_OUTPUT name."""

from __future__ import annotations

import os
from typing import Any

from bench.python_engines.rule import FIELDS, scored
from engine.streams import StreamsBuilder, TimeWindows, Topology, json, python, text

__all__ = ["function", "windows", "words"]

EVENTS = f"{os.environ.get('BENCH_PREFIX', '')}events"
OUTPUT = os.environ.get("BENCH_OUTPUT", "out")


def words() -> Topology:
    """Counts of words in lines."""
    builder = StreamsBuilder(f"words-{OUTPUT}")
    found = builder.stream(EVENTS, value=text()).flat_map("split(value, ' ')", name="split")
    counts = found.group_by("value").count(name="counts").suppress()
    counts.to_stream().map_values(word="key", count="count").to(OUTPUT)
    return builder.build()


def windows() -> Topology:
    """Counts by key and ten seconds, when a window is closed."""
    builder = StreamsBuilder(f"windows-{OUTPUT}")
    keyed = builder.stream(EVENTS, value=text()).group_by_key()
    counts = keyed.windowed_by(TimeWindows.of("10 s", grace="10 s")).count(name="counts").suppress()
    counts.to_stream().map_values(key="key", start="unix_millis(window_start)", count="count").to(OUTPUT)
    return builder.build()


def _scored(batch: Any) -> list[dict[str, Any]]:
    columns = (batch[name].to_pylist() for name in ("user", "url", "cents"))
    return [dict(zip(FIELDS, scored(*row), strict=True)) for row in zip(*columns, strict=True)]


def function() -> Topology:
    """What the Python function makes of each event."""
    builder = StreamsBuilder(f"function-{OUTPUT}")
    events = builder.stream(EVENTS, value=json("user string, url string, cents bigint"))
    made = events.map_values(made=python(_scored, "struct<user string, host string, cents bigint, level string>"))
    made.map_values(**{name: f"made.{name}" for name in FIELDS}).to(OUTPUT)
    return builder.build()
