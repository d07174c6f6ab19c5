"""Figures of Spark itself: its completed batches, the age of its last commit, and the memory of its JVM."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.telemetry.meters import SparkMetrics

__all__ = ["Vitals"]

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
        used, most, collecting_ms = map(int, self._jvm.jmsbridge.Vitals.read().split())
        self._metrics.memory(used, most, collecting_ms / _MILLISECONDS)

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
