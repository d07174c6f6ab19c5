"""Counters, gauges and histograms whose values are set from outside and read by a registry at each scrape.

The client library's own metric objects can only count by themselves; these also take totals that were counted
elsewhere, in the router's JVM. `engine.telemetry.metrics` holds the table of all metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.samples import Exemplar

__all__ = ["Buckets", "Figures", "Metric", "MetricType"]


_Series: TypeAlias = "list[tuple[str, float] | tuple[str, float, Exemplar]]"


class MetricType(StrEnum):
    """Prometheus' type of a metric."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of the bridge: one row of the table in `engine.telemetry.metrics`."""

    name: str
    """The name as scraped, with unit and `_total`; a histogram adds `_bucket`, `_sum` and `_count`."""
    kind: MetricType
    labels: tuple[str, ...]
    help: str


@dataclass(frozen=True, slots=True)
class Buckets:
    """The state of a histogram: upper bounds of its buckets and counts of values."""

    bounds: Sequence[float]
    cumulative: Sequence[int]
    """Number of values up to each upper bound."""
    count: int
    """Number of all values, those above the last bound included."""
    exemplars: Sequence[Exemplar | None] = ()
    """A value of each bucket, the one without a bound included; only OpenMetrics has exemplars."""

    def series(self) -> _Series:
        """The buckets in the form that the client library takes."""
        found = zip((*map(str, self.bounds), "+Inf"), map(float, (*self.cumulative, self.count)), strict=True)
        with_exemplars = zip_longest(found, self.exemplars)
        return [(name, count, exemplar) if exemplar else (name, count) for (name, count), exemplar in with_exemplars]


class Figures(Collector):
    """Collector of the current values of metrics, read by a registry at each scrape. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[Metric, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[Metric, tuple[_Series, float]] = {}

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Sets the value of one series."""
        with self._lock:
            self._values.setdefault(metric, {})[labels] = value

    def add(self, metric: Metric, value: float, *labels: str) -> None:
        """Adds to the value of one series, which starts at 0."""
        with self._lock:
            series = self._values.setdefault(metric, {})
            series[labels] = series.get(labels, 0) + value

    def forget(self, metric: Metric, *labels: str) -> None:
        """Removes a series; without labels, all series of the metric."""
        with self._lock:
            series = self._values.get(metric, {})
            for known in [labels] if labels else list(series):
                series.pop(known, None)

    def set_histogram(self, metric: Metric, buckets: Buckets, total: float) -> None:
        """Sets the state of a histogram without labels; `total` is the sum of its values."""
        series = buckets.series()
        with self._lock:
            self._histograms[metric] = (series, total)

    def collect(self) -> Iterator[Family]:
        """All families, with the values of one moment."""
        with self._lock:
            values = {metric: dict(series) for metric, series in self._values.items()}
            histograms = dict(self._histograms)
        for metric, (counts, total) in histograms.items():
            histogram = HistogramMetricFamily(metric.name, metric.help)
            histogram.add_metric((), counts, total)
            yield histogram
        for metric, series in values.items():
            make = CounterMetricFamily if metric.kind is MetricType.COUNTER else GaugeMetricFamily
            family = make(metric.name, metric.help, labels=metric.labels)
            for labels, value in series.items():
                family.add_metric(labels, value)
            yield family
