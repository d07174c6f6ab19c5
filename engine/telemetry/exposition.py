"""Merges the metrics of several processes into one set of metric families.

Each process writes OpenMetrics; parsing it keeps type, help, labels and exemplars. This module knows neither which
metrics exist (`engine.telemetry.metrics`) nor how the texts arrive (`engine.telemetry.status`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from engine.telemetry.families import ADDED_UP, joined
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client.metrics_core import Metric

    from engine.telemetry.status import Status, StatusBoard

__all__ = ["Merged", "merge"]

_NOTHING = "# EOF\n"


class Merged(Collector):
    """Collector of the metrics of all components on a status board, read anew for each scrape."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """The merged families, in the order in which the components name them."""
        return merge(self._board.all())


def merge(statuses: Iterable[Status]) -> list[Metric]:
    """Merges families of the same name.

    Counters and histograms with equal labels are added up; of gauges the last value counts.

    Counters and histograms of a component that is down are kept, because they stay true until it counts again; its
    gauges are dropped, because their measurements are out of date.
    """
    return joined(
        family
        for status in statuses
        for family in _families(status.metrics or _NOTHING)
        if family.type in ADDED_UP or status.state is not State.DOWN
    )


def _families(text: str) -> Iterable[Metric]:
    families: Iterable[Metric] = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return families
