"""The bridge's figures at a moment, and what they grew by between two: what the status page and the CLI show.

So neither needs a Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family

    from engine.telemetry.figures import Metric

__all__ = ["Reading", "Traffic"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The figures at one moment."""

    time: float
    """Seconds of a clock that only goes forward."""
    values: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)
    """By metric its series: labels and value."""

    @classmethod
    def of(cls, time: float, families: Iterable[Family], names: frozenset[str]) -> Self:
        """Of those metrics among the families that are wanted."""
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                if sample.name in names:
                    values.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(time, {name: tuple(series) for name, series in values.items()})

    @classmethod
    def parse(cls, time: float, text: str, names: frozenset[str]) -> Self:
        """The same from Prometheus' text format. ValueError if it is none."""
        return cls.of(time, text_string_to_metric_families(text), names)

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
