"""Figures of a query: the time of its start, its completed batches, the age of its last commit, its JVMs' memory.

A query is ready when its tasks read the journal, and Spark has compiled the code that they run.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import psutil
import structlog

from engine.spark.cluster import executor_figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.router.row_counters import RowCounts
    from engine.telemetry.meters import SparkMetrics

__all__ = ["Readiness", "Vitals", "process_age"]

_log = structlog.get_logger(__name__)

_MILLISECONDS = 1000.0


class Vitals:
    """Figures of one query, from its start to its end; `measure` is to be called about every second.

    Spark reports batches in the form that its guide describes as StreamingQueryProgress.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: StreamingQuery,
        metrics: SparkMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._query: Any = query._jsq
        self._spark = spark
        self._jvm: Any = spark._jvm
        self._metrics = metrics
        self._clock = clock
        self._batch = -1
        self._commits = -1
        self._committed_at = clock()

    def measure(self, commits: int) -> None:
        """Publishes the present figures; `commits` is the number of the last committed batch in the checkpoint."""
        self._measure_batches()
        if commits != self._commits:
            self._commits, self._committed_at = commits, self._clock()
        self._metrics.committed(self._clock() - self._committed_at)
        used, _, maximum, collecting_ms = map(int, self._jvm.jmsbridge.figures.Vitals.read().split())
        self._metrics.memory(used, maximum, collecting_ms / _MILLISECONDS)
        self._metrics.executors(executor_figures(self._spark))

    def _measure_batches(self) -> None:
        last = self._query.lastProgress()
        if last is None or int(last.batchId()) <= self._batch:
            return
        # Several batches may have been completed since the last call: Spark keeps the last ten (see `session`).
        recent = [last] if int(last.batchId()) == self._batch + 1 else self._query.recentProgress()
        for each in recent:
            progress = json.loads(each.json())
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                phases = {phase: milliseconds / _MILLISECONDS for phase, milliseconds in progress["durationMs"].items()}
                self._metrics.batch(progress["numInputRows"], phases)


def process_age() -> float:
    """Age of this process in seconds."""
    return max(time.time() - psutil.Process().create_time(), 0.0)


class Readiness:
    """Observer of a query's start, up to the first message that it has routed; reports its duration."""

    def __init__(
        self,
        metrics: SparkMetrics,
        partitions: Iterable[int],
        began: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the observation; `partitions` are the journal's, `began` is the time of `clock` at which it began."""
        self._metrics = metrics
        self._partitions = frozenset(partitions)
        self._began = began
        self._clock = clock
        self.ready = False
        """True if the query would route a new message in the journal at once."""
        self._routed = False

    def update(self, reading: RowCounts) -> None:
        """Updates the readiness from the latest reading."""
        seconds = self._clock() - self._began
        if not self.ready and (reading.looked or self._partitions <= reading.reading):
            self.ready = True
            self._metrics.started("ready", seconds)
            _log.info("router reads the journal", seconds_since_start=round(seconds, 1))
        if not self._routed and reading.acknowledged:
            self._routed = True
            self._metrics.started("routed", seconds)
            _log.info("first message routed", seconds_since_start=round(seconds, 1))
