"""When a query routes what comes: its tasks read the journal, with the code compiled that they run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import psutil
import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.spark.tally import Reading
    from engine.telemetry.meters import SparkMetrics

__all__ = ["Readiness", "process_age"]

_log = structlog.get_logger(__name__)


def process_age() -> float:
    """Seconds since this process was started."""
    return max(time.time() - psutil.Process().create_time(), 0.0)


class Readiness:
    """The start of one query, up to the first message that it has routed."""

    def __init__(
        self,
        metrics: SparkMetrics,
        partitions: Iterable[int],
        began: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`partitions` are those of the journal; `began` is the moment of `clock` from which the start is timed."""
        self._metrics = metrics
        self._partitions = frozenset(partitions)
        self._began = began
        self._clock = clock
        self.ready = False
        """Whether a message that comes into the journal now is routed at once."""
        self._routed = False

    def update(self, reading: Reading) -> None:
        """Takes the figures of this moment."""
        seconds = self._clock() - self._began
        if not self.ready and (reading.looked or self._partitions <= reading.reading):
            self.ready = True
            self._metrics.started("ready", seconds)
            _log.info("router reads the journal", seconds_since_start=round(seconds, 1))
        if not self._routed and reading.acknowledged:
            self._routed = True
            self._metrics.started("routed", seconds)
            _log.info("first message routed", seconds_since_start=round(seconds, 1))
