"""Joins metric families of the same name, since OpenMetrics allows each name once and several collectors may share one.

This module does not know which metrics exist; see `engine.telemetry.metrics`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.exposition import generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.registry import Collector
    from prometheus_client.samples import Exemplar

__all__ = ["ADDED_UP", "joined", "text_of"]

ADDED_UP = ("counter", "histogram")
"""Metric types whose samples with equal labels are added up. Of all other types the last sample counts."""


def joined(families: Iterable[Family]) -> list[Family]:
    """Joins families of the same name; the result is in the order in which the names first appear."""
    sums: dict[str, _Sum] = {}
    for family in families:
        sums.setdefault(family.name, _Sum(family)).add(family)
    return [total.family() for total in sums.values()]


def text_of(collector: Collector) -> str:
    """The current metrics of a collector, or of a registry of several, in OpenMetrics' text format."""
    return bytes(generate_latest(_Joined(collector))).decode()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class _Joined:
    """The part of a registry's interface that the client library needs to write the text."""

    collector: Collector

    def collect(self) -> list[Family]:
        return joined(self.collector.collect())


class _Sum:
    def __init__(self, like: Family) -> None:
        self._like = like
        self._samples: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[float, Exemplar | None]] = {}

    def add(self, family: Family) -> None:
        for sample in family.samples:
            key = (sample.name, tuple(sample.labels.items()))
            before = self._samples.get(key, (0.0, None)) if family.type in ADDED_UP else (0.0, None)
            self._samples[key] = before[0] + sample.value, sample.exemplar or before[1]

    def family(self) -> Family:
        merged = Family(self._like.name, self._like.documentation, self._like.type)
        for (name, labels), (value, exemplar) in self._samples.items():
            merged.add_sample(name, dict(labels), value, exemplar=exemplar)
        return merged
