"""Figures of Spark itself: batches as it completes them, the age of its checkpoint, and the memory of its JVM."""

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
    """Of one query, from its start to its end. `measure` is to be called about every second.

    Spark tells of batches in the form that its guide describes as StreamingQueryProgress.
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
        """`commits` is the number of the last batch that is committed, as the checkpoint has it."""
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
        # Spark keeps the last hundred, for when several were completed since the last call.
        recent = [last] if int(last.batchId()) == self._batch + 1 else self._query.recentProgress()
        for each in recent:
            progress = json.loads(each.json())
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                phases = {phase: milliseconds / _MILLISECONDS for phase, milliseconds in progress["durationMs"].items()}
                self._metrics.batch(progress["numInputRows"], phases)
