"""Readings of the bridge's figures, some seconds apart, from which the status page has its rates.

So it needs no Prometheus. A reading costs what a scrape costs; pages cost none.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
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

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client.registry import CollectorRegistry

    from engine.telemetry.figures import Metric

__all__ = ["INTERVAL_SECONDS", "Reading", "Samples", "Traffic"]

INTERVAL_SECONDS = 5.0
_OVER_SECONDS = 15.0
"""Rates are those of this time: shorter ones flicker."""
_HISTORY = 60
_READ = frozenset(
    metric.name
    for metric in (
        *(CONNECTION_UP, DELIVERED, FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, LATENCY_AVERAGE, REJECTED, RESTARTS),
        *(ROUTED, SINK_LAG, SINK_REJECTED, UNROUTED),
    )
)


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures at one moment."""

    time: float
    """Seconds of a clock that only goes forward."""
    values: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)
    """By metric its series: labels and value."""

    def by(self, metric: Metric, label: str) -> dict[str, float]:
        """The values added up for each value of a label."""
        sums: dict[str, float] = {}
        for labels, value in self.values.get(metric.name, ()):
            sums[labels.get(label, "")] = sums.get(labels.get(label, ""), 0.0) + value
        return sums

    def total(self, metric: Metric) -> float | None:
        """All of a metric's values added up; None where there is none."""
        series = self.values.get(metric.name)
        return sum(value for _, value in series) if series else None


@dataclass(frozen=True, slots=True)
class Traffic:
    """Two readings, the second of which is the newest."""

    before: Reading
    now: Reading

    def rates(self, metric: Metric, label: str) -> dict[str, float]:
        """What a counter grew by in each second, for each value of a label; empty while there is one reading only."""
        seconds = self.now.time - self.before.time
        if seconds <= 0:
            return {}
        old = self.before.by(metric, label)
        # A process that was started again counts from 0.
        return {name: max(new - old.get(name, 0.0), 0.0) / seconds for name, new in self.now.by(metric, label).items()}

    def rate(self, metric: Metric) -> float | None:
        """The same of all series together; None where nothing is known."""
        seconds, new = self.now.time - self.before.time, self.now.total(metric)
        if seconds <= 0 or new is None:
            return None
        return max(new - (self.before.total(metric) or 0.0), 0.0) / seconds


class Samples:
    """Takes readings in a thread: `with Samples(registry) as samples:`. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._readings: deque[Reading] = deque([Reading(clock())], maxlen=int(_OVER_SECONDS / INTERVAL_SECONDS) + 1)
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
        """Messages a second into the journal and through routes, one pair for each reading, oldest first."""
        return tuple(self._history)

    @property
    def failed_at(self) -> Mapping[str, float]:
        """By route when it was last seen to fail, in seconds since 1970, as far as this process has seen it."""
        return dict(self._failed_at)

    def take(self) -> None:
        """One more reading."""
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in self._registry.collect():
            for sample in family.samples:
                if sample.name in _READ:
                    values.setdefault(sample.name, []).append((sample.labels, sample.value))
        before = self._readings[-1]
        reading = Reading(self._clock(), {name: tuple(series) for name, series in values.items()})
        step = Traffic(before, reading)
        if before.values:
            self._history.append((step.rate(JOURNALED) or 0.0, step.rate(ROUTED) or 0.0))
            self._failed_at |= {route: time.time() for route, rate in step.rates(FAILED, "route").items() if rate}
            self._readings.append(reading)
        else:
            # The first one: what was counted before it is no traffic.
            self._readings[-1] = reading

    def _run(self) -> None:
        while not self._stop.is_set():
            self.take()
            self._stop.wait(INTERVAL_SECONDS)
