"""Readings of the bridge's metrics, some seconds apart, from which the status page computes rates.

The page thus needs no Prometheus. A reading costs as much as a scrape; showing a page costs none.
"""

from __future__ import annotations

import time
from collections import deque
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from engine.telemetry.metrics import (
    CONNECTION_UP,
    DELIVERED,
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    REJECTED,
    RESTARTS,
    ROUTED,
    SINK_LAG,
    SINK_REJECTED,
    UNROUTED,
)
from engine.telemetry.report import MetricSample, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client.registry import CollectorRegistry

__all__ = ["INTERVAL_SECONDS", "Samples"]

INTERVAL_SECONDS = 5.0
_OVER_SECONDS = 15.0
"""Time over which rates are computed: over shorter times they flicker."""
_HISTORY = 60
_READ = frozenset(
    metric.name
    for metric in (
        *(CONNECTION_UP, DELIVERED, FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, LATENCY_AVERAGE, REJECTED, RESTARTS),
        *(ROUTED, SINK_LAG, SINK_REJECTED, UNROUTED),
    )
)


class Samples:
    """Takes readings in a thread of its own: `with Samples(registry) as samples:`. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._readings: deque[MetricSample] = deque(
            [MetricSample(clock())], maxlen=int(_OVER_SECONDS / INTERVAL_SECONDS) + 1
        )
        self._history: deque[tuple[float, float]] = deque(maxlen=_HISTORY)
        self._failed_at: dict[str, float] = {}
        self._stop = Event()
        self._thread = Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(INTERVAL_SECONDS)

    @property
    def traffic(self) -> Traffic:
        """The newest reading, and the one to compare it with."""
        readings = tuple(self._readings)
        return Traffic(readings[0], readings[-1])

    @property
    def history(self) -> tuple[tuple[float, float], ...]:
        """Messages per second into the journal and through routes, one pair for each reading, oldest first."""
        return tuple(self._history)

    @property
    def failed_at(self) -> Mapping[str, float]:
        """By route, the time of the last failure that this process has seen, in seconds since 1970."""
        return dict(self._failed_at)

    def take(self) -> None:
        """Takes a reading."""
        before = self._readings[-1]
        reading = MetricSample.of(self._clock(), self._registry.collect(), _READ)
        step = Traffic(before, reading)
        if before.values:
            self._history.append((step.rate(JOURNALED) or 0.0, step.rate(ROUTED) or 0.0))
            self._failed_at |= {route: time.time() for route, rate in step.rates(FAILED, "route").items() if rate}
            self._readings.append(reading)
        else:
            # The first reading only starts the comparison: values counted before it are no traffic.
            self._readings[-1] = reading

    def _run(self) -> None:
        while not self._stop.is_set():
            self.take()
            self._stop.wait(INTERVAL_SECONDS)
