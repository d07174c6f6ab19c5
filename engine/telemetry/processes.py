"""What the processes of the bridge take from their machine, looked up at each scrape."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from prometheus_client.registry import Collector

from engine.telemetry.figures import Figures
from engine.telemetry.metrics import PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_START, PROCESS_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["SUPERVISOR", "ProcessMetrics"]

SUPERVISOR = "supervisor"
"""Label `component` of the process that looks after the others."""


class ProcessMetrics(Collector):
    """Figures of each component: those of its own process and of all that came from it, added up."""

    def __init__(self, registry: CollectorRegistry, leaders: Callable[[], Mapping[str, int]]) -> None:
        """`leaders` tells the process id of each component that runs."""
        self._leaders = leaders
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, as of now."""
        figures = Figures()
        names = {os.getpid(): SUPERVISOR} | {leader: name for name, leader in self._leaders().items()}
        parents = _parents()
        for pid in parents:
            if (leader := _leader(pid, parents, names)) is not None:
                # It may end while it is looked at.
                with suppress(psutil.NoSuchProcess):
                    _add(figures, names[leader], psutil.Process(pid), leads=pid == leader)
        return figures.collect()


def _parents() -> Mapping[int, int]:
    """The parent of each process of this machine."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = process.ppid()
    return found


def _leader(pid: int, parents: Mapping[int, int], leaders: Container[int]) -> int | None:
    """The nearest process of a component that a process came from, itself included."""
    seen: set[int] = set()
    while pid not in leaders:
        if pid not in parents or pid in seen:
            return None
        # A number that was given away again while the table was read might lead in a circle.
        seen.add(pid)
        pid = parents[pid]
    return pid


def _add(figures: Figures, name: str, process: psutil.Process, *, leads: bool) -> None:
    with process.oneshot():
        if process.status() == psutil.STATUS_ZOMBIE:
            return  # It has ended, and whoever should take note of that has not.
        times = process.cpu_times()
        memory, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
    # Those of children that have ended are counted by who has waited for them.
    figures.add(PROCESS_CPU, sum(times[:4]), name)
    figures.add(PROCESS_MEMORY, memory, name)
    figures.add(PROCESS_FILES, files, name)
    figures.add(PROCESS_THREADS, threads, name)
    if leads:
        figures.set(PROCESS_START, process.create_time(), name)
