"""Memory, file handles and threads of each process of a bridge over time, and the size of its checkpoint (Linux)."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from threading import Event, Thread
from typing import TYPE_CHECKING

from tests.integration.bridge_process import descendants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
            now = time.monotonic() - self._began
            supervisor = self._supervisor()
            for pid in {supervisor} | descendants(supervisor):
                # It may end while it is looked at.
                with suppress(OSError, ValueError, IndexError):
                    if _age_seconds(pid) > _SETTLED_SECONDS:
                        self._note(_name(pid), Sample(now, *_usage(pid)))
            files = [each for each in self._checkpoint.rglob("*") if each.is_file()]
            self._note("checkpoint", Sample(now, sum(map(_kilobytes, files)), len(files)))

    def _note(self, part: str, sample: Sample) -> None:
        self.samples.setdefault(part, []).append(sample)


def _trend(samples: Sequence[Sample], figure: str) -> Trend:
    values = [getattr(sample, figure) for sample in samples]
    third = max(len(values) // 3, 1)
    return Trend(median(values[:third]), median(values[-third:]), max(values))


def _name(pid: int) -> str:
    """`sink:nats`, `router`, `router java`, `supervisor`."""
    own = _part(pid)
    if own is not None:
        return own
    program = Path(f"/proc/{pid}/comm").read_text().strip()
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return f"{_part(parent) or _name(parent)} {program}"


def _part(pid: int) -> str | None:
    """The part that a process was started as; None: it is not one of the bridge's own."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    if "engine" not in words:
        return None
    return words[words.index("--only") + 1] if "--only" in words else "supervisor"


def _age_seconds(pid: int) -> float:
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


def _usage(pid: int) -> tuple[float, float, float]:
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    memory = int(status["VmRSS"].split()[0]) * 1024 / _MEGABYTE
    return memory, len(list((folder / "fd").iterdir())), int(status["Threads"])


def _kilobytes(file: Path) -> float:
    with suppress(FileNotFoundError):
        return file.stat().st_size / 1024
    return 0.0
