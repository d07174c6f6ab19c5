"""Cost of the router's own bookkeeping, apart from the records: it grows with partitions, topics and routes.

The router's own classes work on made-up answers of Kafka and figures of the JVM, so that sizes can be measured for
which one machine has no room. Seconds are those of CPU, on one core.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psutil
from prometheus_client import CollectorRegistry

from bench.report import Check, Report, table
from engine.kafka.clients import KafkaClients
from engine.router import RoutingOutcome
from engine.router.generation import Generations, Start
from engine.router.lag import LagSampler
from engine.router.meter import Meter
from engine.router.past_routes import routes_text
from engine.router.published import slices
from engine.router.row_counters import BUCKETS, RowCounts
from engine.telemetry.families import text_of
from engine.telemetry.meters import RouterMetrics
from engine.telemetry.metrics import FAILURE_REASONS, UNROUTED_REASONS
from routes.config import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.options import Options
    from engine.kafka.offsets import KafkaOffsets, Topics
    from routes.model import Config

__all__ = ["measure"]

T = TypeVar("T")

TARGET_CORES = 1.0
"""Greatest share of a core that bookkeeping takes at the largest size; the lag is sampled every two seconds."""
TARGET_MB = 256.0
"""Greatest memory of the samples of the lag at the largest size."""
_FAR = 10**12
"""Offsets have thirteen digits: those of a partition with a thousand records a second after thirty years."""
_PARTITIONS_OF_TOPIC = 10
_SAMPLES = 600
_MEGABYTE = 1 << 20
_OUTCOMES = (
    RoutingOutcome("routed"),
    *(RoutingOutcome("unrouted", reason) for reason in UNROUTED_REASONS),
    *(RoutingOutcome(policy, reason) for policy in ("skip", "dead-letter") for reason in FAILURE_REASONS),
    RoutingOutcome("dead-letter", "unmatched"),
)


@dataclass(frozen=True, slots=True)
class Size:
    """Size of an installation; each route has a topic of its own."""

    partitions: int
    topics: int
    executors: int


@dataclass(slots=True)
class Figures:
    """Cost of an installation's bookkeeping."""

    start_kb: float
    """File `start.json`; the note in Kafka is about as large."""
    start_seconds: float
    samples_mb: float
    """Samples of the lag after twenty minutes."""
    sample_seconds: float
    """One sample, without the questions to Kafka."""
    read_kb: float
    """Figures of all executors."""
    read_seconds: float
    update_seconds: float
    """Update of the metrics and the lag."""
    series: int
    page_kb: float
    page_seconds: float
    slice_seconds: float
    """Cut of one slice of the outputs in a recovery."""


_SIZES = (Size(16, 5, 1), Size(1_000, 200, 10), Size(10_000, 1_000, 100))


def measure(options: Options) -> Report:
    """Measures each size once."""
    found = {size: _figures(size) for size in _SIZES}
    largest = found[_SIZES[-1]]
    each_second = largest.read_seconds + largest.update_seconds + largest.page_seconds + largest.sample_seconds / 2
    names = list(asdict(largest))
    rows = [[name.replace("_", " "), *(f"{asdict(each)[name]:,.4g}" for each in found.values())] for name in names]
    columns = ["partitions / topics / executors", *(f"{s.partitions:,} / {s.topics:,} / {s.executors}" for s in _SIZES)]
    checks = [
        Check("growth: share of a core at the largest size", each_second, TARGET_CORES),
        Check("growth: samples of the lag at the largest size, MB", largest.samples_mb, TARGET_MB),
    ]
    return Report("growth", [table("Bookkeeping", columns, rows)], checks, [asdict(each) for each in found.values()])


def _figures(size: Size) -> Figures:
    config = _config(size)
    offsets = {partition: _FAR + partition for partition in range(size.partitions)}
    outputs = {
        f"department-{number}.orders": {each: _FAR + each for each in range(_PARTITIONS_OF_TOPIC)}
        for number in range(size.topics)
    }
    start = Start(config.journal.topic, "id", offsets, outputs, config.bridge_id, routes_text(config.text))
    with tempfile.TemporaryDirectory() as folder:
        start_seconds, generation = _timed(lambda: Generations(Path(folder)).create(start))
        start_kb = len((generation.folder / "start.json").read_text(encoding="utf-8")) / 1000
    samples_mb, sample_seconds, sampler = _sampled(config, size, outputs)
    text = json.dumps([_reading(size, executor) for executor in range(size.executors)])
    read_seconds, reading = _timed(lambda: RowCounts.of(json.loads(text)))
    registry = CollectorRegistry()
    meter = Meter(RouterMetrics(registry, config))
    meter.begin(config.publications, config.journal.topic, _OUTCOMES)

    def update() -> None:
        meter.update(reading)
        meter.lag(sampler.lag(offsets, reading.times_ms))

    update_seconds, _ = _timed(update)
    page_seconds, page = _timed(lambda: text_of(registry))
    ends = {topic: {each: at + 600_000 for each, at in parts.items()} for topic, parts in outputs.items()}
    slice_seconds, _ = _timed(lambda: next(slices(outputs, ends, 1_000_000, 10_000)))
    sampler.close()
    return Figures(
        start_kb,
        start_seconds,
        samples_mb,
        sample_seconds,
        len(text) / 1000,
        read_seconds,
        update_seconds,
        sum(not line.startswith("#") for line in page.splitlines()),
        len(page) / 1000,
        page_seconds,
        slice_seconds,
    )


class _Kafka:
    """Kafka whose journal grows by a thousand records between two samples."""

    def __init__(self, partitions: int) -> None:
        self._end = _FAR
        self._partitions = range(partitions)

    def ends(self, topics: Iterable[str], *, committed: bool = False) -> Topics:
        self._end += 500
        return {topic: {each: self._end + each for each in self._partitions} for topic in topics}

    def partitions(self, topics: Iterable[str]) -> dict[str, int]:
        return dict.fromkeys(topics, _PARTITIONS_OF_TOPIC)


def _sampled(config: Config, size: Size, outputs: Topics) -> tuple[float, float, LagSampler]:
    """Memory of the samples in MB, CPU seconds of one, and the sampler."""
    kafka = cast("KafkaOffsets", _Kafka(size.partitions))
    sampler = LagSampler(
        kafka, KafkaClients(config.kafka_access), config.journal.topic, list(outputs), {}, interval_seconds=3600
    )
    sampler.sample()
    before, begun = psutil.Process().memory_info().rss, process_time()
    for _ in range(_SAMPLES):
        sampler.sample()
    seconds = (process_time() - begun) / _SAMPLES
    return (psutil.Process().memory_info().rss - before) / _MEGABYTE, seconds, sampler


def _config(size: Size) -> Config:
    routes = "".join(
        f"routes.department-{number}.in.include=msg.address==queue-{number} AND region = 'emea'\n"
        f"routes.department-{number}.out.topic=department-{number}.orders\n"
        for number in range(size.topics)
    )
    return loads(f"bridge.id=bench\nsource.s.type=stomp\nsource.s.destinations=queue:a\n{routes}")


def _reading(size: Size, executor: int) -> dict[str, Any]:
    """Figures of one executor, which has its share of the partitions and has had a message for each route."""
    share = range(executor, size.partitions, size.executors)
    return {
        "outcomes": len(_OUTCOMES),
        "width": size.topics + 1,
        "counts": [value for cell in range(1, size.topics + 1) for value in (cell, _FAR)],
        "marks": [value for partition in share for value in (partition, _FAR, _FAR)],
        "emitted": _FAR,
        "sent": _FAR,
        "acknowledged": _FAR,
        "failed": 0,
        "failure": "",
        "buckets": [_FAR] * BUCKETS,
        "latency_ms": _FAR,
        "examples": [None] * BUCKETS,
        "notes": [],
        "unnoted": 0,
        "reading": list(share),
        "looked": True,
    }


def _timed(call: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds and result of a call."""
    begun = process_time()
    result = call()
    return process_time() - begun, result
