"""Cost of executors: the router in one JVM, and on a standalone Spark cluster of one, two and four executors.

All processes are on one machine, so that the figures show what the division costs, not what more machines bring. The
CPU of driver, executors, master and workers counts. Latency is that of a plain `bench latency`, for a minute.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from bench.contestants import Bridge
from bench.latency import latency_of
from bench.report import Check, Report, table
from bench.scale import Case, Figures, figures, loaded, place_of, samples_of
from tests.spark_cluster import SparkCluster, spark_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure"]

TARGET_CPU = 1.15
"""Greatest CPU for a record with executors, to that in a single JVM."""
_EXECUTORS = (1, 2, 4)
_PARTITIONS = (4, 64)
_RECORDS = 10_000_000
_TOPICS = 5
_LATENCY_SECONDS = 60
_MEMORY = "2g"
"""Heap of an executor, the same as that of the router in a single JVM."""

Run = tuple[str, int, int]
"""Mode, number of executors (0: a single JVM) and partitions of the journal."""


def measure(broker: Broker, options: Options) -> Report:
    """Every number of executors and partitions in each mode; all contestants of a case read the same journal."""
    found: dict[Run, list[Figures]] = {}
    latencies: dict[int, dict[str, Any]] = {}
    for _ in range(options.rounds):
        for partitions in _PARTITIONS:
            case = Case(400, partitions, _TOPICS, min(_RECORDS, options.scale_records))
            journal = loaded(broker, case, options)
            for executors in (0, *_EXECUTORS):
                for run, each in _runs(broker, case, journal, executors, options):
                    found.setdefault(run, []).append(each)
            broker.delete(journal)
    if "realtime" in options.modes:
        short = replace(options, latency_seconds=_LATENCY_SECONDS)
        latencies[0] = latency_of(broker, Bridge("realtime", options.settings, options.router), short)
        with _cluster(options, 2, _PARTITIONS[0]) as cluster:
            latencies[2] = latency_of(broker, _bridge(cluster, "realtime", options), short)
    return _report(found, latencies)


def _runs(broker: Broker, case: Case, journal: str, executors: int, options: Options) -> Iterator[tuple[Run, Figures]]:
    for mode in options.modes:
        place = place_of(broker, case, journal, options)
        if executors == 0:
            samples = samples_of(broker, case, Bridge(mode, options.settings, options.router), place)
        else:
            with _cluster(options, executors, case.partitions) as cluster:
                beside = [process.pid for process in (cluster.master, *cluster.workers.values()) if process]
                samples = samples_of(broker, case, _bridge(cluster, mode, options), place, beside)
        each = figures(samples)
        print(
            f"{mode}, {executors or 'no'} executors, {case.partitions} partitions: {each.rate:,.0f} records/s, "
            f"{each.cpu_per_million:.1f} CPU-s per million",
            flush=True,
        )
        yield (mode, executors, case.partitions), each


def _cluster(options: Options, executors: int, partitions: int) -> Any:
    cores = -(-partitions // executors)
    return spark_cluster(options.folder / "cluster", executors, cores, memory=_MEMORY)


def _bridge(cluster: SparkCluster, mode: str, options: Options) -> Bridge:
    settings = {"spark.master": cluster.url, "spark.executor.memory": _MEMORY, **options.settings}
    return Bridge(mode, settings, options.router, f"{len(cluster.workers)} executors")


def _report(found: dict[Run, list[Figures]], latencies: dict[int, dict[str, Any]]) -> Report:
    def cpu(run: Run) -> float:
        return sorted(each.cpu_per_million for each in found[run])[len(found[run]) // 2]

    rows, checks = [], []
    for (mode, executors, partitions), rounds in found.items():
        alone = cpu((mode, 0, partitions))
        ratio = cpu((mode, executors, partitions)) / alone
        rate = sorted(each.rate for each in rounds)[len(rounds) // 2]
        rows.append(
            [mode, str(executors or "none"), str(partitions), f"{rate:,.0f}", f"{ratio * alone:.1f}", f"{ratio:.2f}"]
        )
        if executors:
            name = f"executors, {mode}, {executors} of them, {partitions} partitions: CPU to a single JVM's"
            checks.append(Check(name, ratio, TARGET_CPU))
    columns = ["", "executors", "partitions", "records/s", "CPU-s per million", "to a single JVM's"]
    tables = [table("Executors, steady state", columns, rows)]
    if latencies:
        names = ("p50", "p99", "p99.9", "max")
        lines = [
            [str(executors or "none"), *(f"{run['milliseconds'][name]:.2f}" for name in names)]
            for executors, run in latencies.items()
        ]
        tables.append(table("Latency in real-time mode, milliseconds", ["executors", *names], lines))
    details = [
        {"mode": mode, "executors": executors, "partitions": partitions, **asdict(each)}
        for (mode, executors, partitions), rounds in found.items()
        for each in rounds
    ]
    return Report("executors", tables, checks, [*details, *latencies.values()])
