"""Memory, file handles and threads of each process of a bridge over time, and the size of its checkpoint."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from threading import Event, Thread
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["FIGURES", "Resources", "Sample", "Trend"]

FIGURES = ("memory", "files", "threads")
"""Megabytes, open file handles, threads; of the checkpoint kilobytes and files."""

_PERIOD_SECONDS = 10.0
_SETTLED_SECONDS = 60.0
"""A process that was just started says nothing about growth."""
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one part at one moment; one that does not apply is 0."""

    at: float
    """Seconds since the run began."""
    memory: float
    files: float
    threads: float = 0.0


@dataclass(frozen=True, slots=True)
class Trend:
    """How a figure was in the first third of a run and in the last one."""

    first: float
    last: float
    peak: float

    @property
    def growth(self) -> float:
        """As a share of the first."""
        return self.last / self.first - 1 if self.first else 0.0


class Resources:
    """Samples of everything a process has started, from `start` to `stop`."""

    def __init__(self, supervisor: Callable[[], int], checkpoint: Path) -> None:
        """`supervisor` tells its process id, which changes when it is killed."""
        self.samples: dict[str, list[Sample]] = {}
        """By part."""
        self._supervisor = supervisor
        self._checkpoint = checkpoint
        self._began = time.monotonic()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="resources", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def trends(self, figure: str) -> Mapping[str, Trend]:
        """By part, over the whole run."""
        return {part: _trend(found, figure) for part, found in self.samples.items()}

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD_SECONDS):
            self._look(time.monotonic() - self._began)

    def _look(self, now: float) -> None:
        # Processes end and files go while they are looked at.
        with suppress(psutil.NoSuchProcess):
            supervisor = psutil.Process(self._supervisor())
            for process in (supervisor, *supervisor.children(recursive=True)):
                with suppress(psutil.NoSuchProcess):
                    if time.time() - process.create_time() > _SETTLED_SECONDS:
                        self._note(_name(process), Sample(now, *_usage(process)))
        with suppress(FileNotFoundError):
            sizes = [each.stat().st_size / 1024 for each in self._checkpoint.rglob("*") if each.is_file()]
            self._note("checkpoint", Sample(now, sum(sizes), len(sizes)))

    def _note(self, part: str, sample: Sample) -> None:
        self.samples.setdefault(part, []).append(sample)


def _trend(samples: Sequence[Sample], figure: str) -> Trend:
    values = [getattr(sample, figure) for sample in samples]
    third = max(len(values) // 3, 1)
    return Trend(median(values[:third]), median(values[-third:]), max(values))


def _name(process: psutil.Process) -> str:
    """`sink:nats`, `router`, `router java`, `supervisor`."""
    own = _part(process)
    if own is not None:
        return own
    parent = process.parent()
    if parent is None:
        raise psutil.NoSuchProcess(process.pid)
    return f"{_name(parent)} {process.name()}"


def _part(process: psutil.Process) -> str | None:
    """The part that a process was started as; None: it is not one of the bridge's own."""
    words = process.cmdline()
    if "engine" not in words:
        return None
    return words[words.index("--only") + 1] if "--only" in words else "supervisor"


def _usage(process: psutil.Process) -> tuple[float, int, int]:
    with process.oneshot():
        return process.memory_info().rss / _MEGABYTE, process.num_fds(), process.num_threads()
