"""Metrics of CPU, memory, open files and threads of the bridge's processes, looked up at each scrape."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from prometheus_client.registry import Collector

from engine.telemetry.metrics import PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_START, PROCESS_THREADS
from engine.telemetry.registered_values import Figures

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["SUPERVISOR", "ProcessMetrics"]

SUPERVISOR = "supervisor"
"""Value of the label `component` for the supervisor's own process."""


class ProcessMetrics(Collector):
    """Collector of each component's resource use: that of its own process and all descendants, added up."""

    def __init__(self, registry: CollectorRegistry, leaders: Callable[[], Mapping[str, int]]) -> None:
        """`leaders` returns the process id of each running component, by component."""
        self._leaders = leaders
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, measured now."""
        figures = Figures()
        names = {os.getpid(): SUPERVISOR} | {leader: name for name, leader in self._leaders().items()}
        parents = _parents()
        for pid in parents:
            if (leader := _leader(pid, parents, names)) is not None:
                # The process may end while it is measured.
                with suppress(psutil.NoSuchProcess):
                    _add(figures, names[leader], psutil.Process(pid), leads=pid == leader)
        return figures.collect()


def _parents() -> Mapping[int, int]:
    """Parent process ids, by process id, of all processes of this machine."""
    found = {}
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = process.ppid()
    return found


def _leader(pid: int, parents: Mapping[int, int], leaders: Container[int]) -> int | None:
    """The process id of the component that a process descends from or is itself; None if it belongs to none."""
    seen: set[int] = set()
    while pid not in leaders:
        if pid not in parents or pid in seen:
            return None
        # A process id that was reused while the table was read might lead in a circle.
        seen.add(pid)
        pid = parents[pid]
    return pid


def _add(figures: Figures, name: str, process: psutil.Process, *, leads: bool) -> None:
    with process.oneshot():
        if process.status() == psutil.STATUS_ZOMBIE:
            return  # It has ended, but its parent has not waited for it yet.
        times = process.cpu_times()
        memory, files, threads = process.memory_info().rss, process.num_fds(), process.num_threads()
    # User and system time, its own and that of ended children, which count at the parent that waited for them.
    figures.add(PROCESS_CPU, sum(times[:4]), name)
    figures.add(PROCESS_MEMORY, memory, name)
    figures.add(PROCESS_FILES, files, name)
    figures.add(PROCESS_THREADS, threads, name)
    if leads:
        figures.set(PROCESS_START, process.create_time(), name)
