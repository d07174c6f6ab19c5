"""Readiness of a query: its tasks read the journal, and Spark has compiled the code that they run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.spark.row_counters import RowCounts
    from engine.telemetry.meters import SparkMetrics

__all__ = ["Readiness", "process_age"]

_log = structlog.get_logger(__name__)


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
