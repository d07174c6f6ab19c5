"""What the processes of the bridge take from their machine, looked up at each scrape."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
from prometheus_client.registry import Collector

from engine.telemetry.figures import Figures
from engine.telemetry.metrics import PROCESS_CPU, PROCESS_FILES, PROCESS_MEMORY, PROCESS_START, PROCESS_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

__all__ = ["SUPERVISOR", "ProcessMetrics"]

SUPERVISOR = "supervisor"
"""Label `component` of the process that looks after the others."""


class ProcessMetrics(Collector):
    """Figures of each component: those of all processes in the session that its own process leads, added up."""

    def __init__(self, registry: CollectorRegistry, leaders: Callable[[], Mapping[str, int]]) -> None:
        """`leaders` tells the process id of each component that runs."""
        self._leaders = leaders
        registry.register(self)

    def collect(self) -> Iterable[Family]:
        """The families, as of now."""
        figures = Figures()
        sessions = _sessions()
        groups = {name: (leader, sessions[leader]) for name, leader in self._leaders().items()}
        groups[SUPERVISOR] = os.getpid(), [psutil.Process()]
        for name, (leader, processes) in groups.items():
            for process in processes:
                # It may end while it is looked at.
                with suppress(psutil.NoSuchProcess):
                    _add(figures, name, process, leads=process.pid == leader)
        return figures.collect()


def _sessions() -> Mapping[int, list[psutil.Process]]:
    """All processes of this machine by who leads their session."""
    found: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(ProcessLookupError, PermissionError):
            found[os.getsid(process.pid)].append(process)
    return found


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
