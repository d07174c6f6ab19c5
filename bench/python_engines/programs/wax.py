"""The workloads in Bytewax, with recovery, by which state is exactly once and outputs are at least once.

`bytewax.run` takes the flow from this module. Two processes with one worker each share the partitions.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.operators import StatefulBatchLogic

from bench.python_engines.rule import FIELDS, scored

if TYPE_CHECKING:
    from bytewax.connectors.kafka import KafkaSourceMessage
    from bytewax.operators import Stream

_BATCH = 10_000
_ALIGN = datetime(2026, 1, 1, tzinfo=UTC)
_LENGTH = timedelta(seconds=10)


class _Count(StatefulBatchLogic[int, int, int]):
    """Count of a key, which gives one result for each batch."""

    def __init__(self, count: int | None) -> None:
        self._count = count or 0

    def on_batch(self, values: list[int]) -> tuple[list[int], bool]:
        self._count += len(values)
        return [self._count], StatefulBatchLogic.RETAIN

    def snapshot(self) -> int:
        return self._count


def _message(key: str, fields: dict[str, Any]) -> KafkaSinkMessage:
    return KafkaSinkMessage(key.encode(), json.dumps(fields).encode())


def _words(lines: Stream[KafkaSourceMessage]) -> Stream[KafkaSinkMessage]:
    def split(batch: list[KafkaSourceMessage]) -> list[tuple[str, int]]:
        return [(word, 1) for line in batch for word in line.value.decode().split(" ")]

    counts = op.stateful_batch("count", op.flat_map_batch("split", lines, split), _Count)
    return op.map("message", counts, lambda pair: _message(pair[0], {"word": pair[0], "count": pair[1]}))


def _time(event: KafkaSourceMessage) -> datetime:
    return datetime.fromtimestamp(event.timestamp[1] / 1000, UTC)


def _windowed(result: tuple[str, tuple[int, int]]) -> KafkaSinkMessage:
    key, (window, count) = result
    start = int((_ALIGN + window * _LENGTH).timestamp() * 1000)
    return _message(key, {"key": key, "start": start, "count": count})


def _windows(events: Stream[KafkaSourceMessage]) -> Stream[KafkaSinkMessage]:
    clock = win.EventClock(_time, wait_for_system_duration=_LENGTH)
    windower = win.TumblingWindower(length=_LENGTH, align_to=_ALIGN)
    counts = win.count_window("count", events, clock, windower, lambda event: event.key.decode())
    return op.map("message", counts.down, _windowed)


def _scored(event: KafkaSourceMessage) -> KafkaSinkMessage:
    value = json.loads(event.value)
    made = scored(value["user"], value["url"], value["cents"])
    return KafkaSinkMessage(event.key, json.dumps(dict(zip(FIELDS, made, strict=True))).encode())


def _function(events: Stream[KafkaSourceMessage]) -> Stream[KafkaSinkMessage]:
    return op.flat_map_batch("scored", events, lambda batch: [_scored(event) for event in batch])


def flow() -> Dataflow:
    """The flow of the workload that the environment names."""
    given: dict[str, str] = json.loads(os.environ["BENCH_ARGUMENTS"])
    made = Dataflow(given["workload"])
    brokers = [given["bootstrap"]]
    records = op.input("in", made, KafkaSource(brokers, [given["input"]], batch_size=_BATCH))
    steps = {"words": _words, "windows": _windows, "function": _function}
    results = steps[given["workload"]](records)
    sink = KafkaSink(brokers, given["output"], {"linger.ms": "5", "batch.size": str(1 << 18)})
    op.output("out", results, sink)
    return made
