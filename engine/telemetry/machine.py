"""Metrics of resources that a bridge's machine may run out of: space on its disks, and the time of its certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.registry import Collector

from engine.background import BackgroundTask
from engine.telemetry import metrics
from engine.telemetry.meters import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["MachineMetrics"]

_LOOK_SECONDS = 30.0
"""Time between two looks."""


class MachineMetrics(BackgroundTask, Collector):
    """Collector of resources that a machine may run out of: time of certificates, and space on disks.

    It looks in a thread of its own, `with MachineMetrics(…):`, since a disk may not answer.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        certificates: Callable[[], Mapping[str, float]],
        free_bytes: Callable[[], Mapping[str, int]],
    ) -> None:
        """`certificates` returns times of expiry in seconds since 1970 by file, `free_bytes` free space by folder."""
        super().__init__("machine metrics", join_seconds=0)
        self._certificates = certificates
        self._free_bytes = free_bytes
        self._figures = Figures()
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, as of the last look."""
        return self._figures.collect()

    def look(self) -> None:
        """Measures, and replaces the figures."""
        figures = Figures()
        for file, seconds in self._certificates().items():
            figures.set(metrics.CERTIFICATE_END, seconds, file)
        for folder, free in self._free_bytes().items():
            figures.set(metrics.DISK_FREE, free, folder)
        self._figures = figures

    def run(self) -> None:
        """Measures at each interval."""
        while not self._stop.is_set():
            self.look()
            self._stop.wait(_LOOK_SECONDS)
