"""Readings of the bridge's metrics, and the rates between two of them.

The status page and the CLI show these, so that neither needs a Prometheus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family

    from engine.telemetry.registered_values import Metric

__all__ = ["MetricSample", "Traffic"]


@dataclass(frozen=True, slots=True)
class MetricSample:
    """The values of selected metrics at one moment."""

    time: float
    """Seconds of a monotonic clock."""
    values: Mapping[str, tuple[tuple[Mapping[str, str], float], ...]] = field(default_factory=dict)
    """By name of the metric, its series: labels and value."""

    @classmethod
    def of(cls, time: float, families: Iterable[Family], names: frozenset[str]) -> Self:
        """Makes a reading of the samples whose names are in `names`."""
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in families:
            for sample in family.samples:
                if sample.name in names:
                    values.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(time, {name: tuple(series) for name, series in values.items()})

    @classmethod
    def parse(cls, time: float, text: str, names: frozenset[str]) -> Self:
        """Makes a reading from Prometheus' text format; ValueError if the text is not in that format."""
        return cls.of(time, text_string_to_metric_families(text), names)

    def by(self, metric: Metric, label: str) -> dict[str, float]:
        """The values of a metric, added up for each value of a label."""
        sums: dict[str, float] = {}
        for labels, value in self.values.get(metric.name, ()):
            sums[labels.get(label, "")] = sums.get(labels.get(label, ""), 0.0) + value
        return sums

    def total(self, metric: Metric) -> float | None:
        """The sum of all values of a metric; None if it has none."""
        series = self.values.get(metric.name)
        return sum(value for _, value in series) if series else None


@dataclass(frozen=True, slots=True)
class Traffic:
    """An earlier and the latest reading, for rates between them."""

    before: MetricSample
    now: MetricSample

    def rates(self, metric: Metric, label: str) -> dict[str, float]:
        """Growth of a counter per second, for each value of a label; empty if both readings are of the same moment."""
        seconds = self.now.time - self.before.time
        if seconds <= 0:
            return {}
        old = self.before.by(metric, label)
        # A process that was restarted counts from 0.
        return {name: max(new - old.get(name, 0.0), 0.0) / seconds for name, new in self.now.by(metric, label).items()}

    def rate(self, metric: Metric) -> float | None:
        """Growth of a counter per second over all series; None without a value or with readings of one time."""
        seconds, new = self.now.time - self.before.time, self.now.total(metric)
        if seconds <= 0 or new is None:
            return None
        return max(new - (self.before.total(metric) or 0.0), 0.0) / seconds
