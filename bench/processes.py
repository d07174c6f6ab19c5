"""A process with all it starts: CPU and memory of the tree over time, and an end that leaves nothing behind (Linux)."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from bisect import bisect_left
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["ProcessTree", "running"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SAMPLE_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _Stat:
    """Fields used of /proc/PID/stat, see proc(5)."""

    parent: int
    cpu_seconds: float
    """Processor time, with that of children that have ended."""
    begun: int
    rss_bytes: int
    name: str


class ProcessTree:
    """A running program and its descendants."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        beside: Sequence[int] = (),
    ) -> None:
        """Starts it in `folder`, with more variables in its environment; what it writes goes to `log`.

        Python may keep its bytecode, as it does for users. The processes `beside` it and their descendants are measured
        as well, and never ended.
        """
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self.started = time.time()
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**kept, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.log = log
        self._beside = beside
        self._cpu: list[tuple[float, float]] = []
        self._done = Event()
        self._sampler = Thread(target=self._sample, name="cpu-sampler", daemon=True)
        self._sampler.start()

    def check(self) -> None:
        """RuntimeError if it has ended."""
        if (code := self._process.poll()) is not None:
            last = "\n".join(self.log.read_text(errors="replace").splitlines()[-5:])
            msg = f"ended with exit status {code}, see {self.log}:\n{last}"
            raise RuntimeError(msg)

    def cpu_seconds(self, start: float, end: float) -> float:
        """CPU time that the tree used between two moments (seconds since 1970), from samples twice a second."""
        return self._cpu_at(end) - self._cpu_at(start)

    def memory(self) -> dict[str, tuple[int, int]]:
        """Process id and resident bytes of the biggest process of each program, such as `java`."""
        found: dict[str, tuple[int, int]] = {}
        for pid, stat in self._measured().items():
            if stat.rss_bytes > found.get(stat.name, (0, -1))[1]:
                found[stat.name] = pid, stat.rss_bytes
        return found

    def hang_up(self) -> None:
        """Sends it SIGHUP, which makes a bridge read its configuration again."""
        self._process.send_signal(signal.SIGHUP)

    def kill_router(self, program: str) -> None:
        """Ends one process of a bridge's router at once: its JVM for "java", else the Python process above the JVM."""
        tree = self._tree(self._process.pid)
        jvm = min((pid for pid, stat in tree.items() if stat.name == "java"), key=lambda pid: tree[pid].begun)
        os.kill(jvm if program == "java" else tree[jvm].parent, signal.SIGKILL)

    def kill(self) -> None:
        """Ends all of it at once, as a crash of the machine does."""
        for pid in self._tree(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Asks it to end, kills what is left, returns when all of it is gone."""
        self._done.set()
        self._sampler.join()
        tree = self._tree(self._process.pid)
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pid, stat in tree.items():
            left = _stat(pid)
            if left is not None and left.begun == stat.begun:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _sample(self) -> None:
        while True:
            self._cpu.append((time.time(), sum(stat.cpu_seconds for stat in self._measured().values())))
            if self._done.wait(_SAMPLE_SECONDS):
                return

    def _cpu_at(self, moment: float) -> float:
        samples = self._cpu
        after = bisect_left(samples, (moment, 0.0))
        if after == 0 or after == len(samples):
            return samples[min(after, len(samples) - 1)][1]
        (time0, cpu0), (time1, cpu1) = samples[after - 1], samples[after]
        return cpu0 + (cpu1 - cpu0) * (moment - time0) / (time1 - time0)

    def _measured(self) -> dict[int, _Stat]:
        return self._tree(self._process.pid, *self._beside)

    def _tree(self, *roots: int) -> dict[int, _Stat]:
        everything = {pid: stat for pid in _pids() if (stat := _stat(pid)) is not None}
        found: dict[int, _Stat] = {}
        wanted = set(roots)
        while wanted:
            found |= {pid: everything[pid] for pid in wanted if pid in everything}
            wanted = {pid for pid, stat in everything.items() if stat.parent in wanted}
        return found


@contextmanager
def running(
    command: Sequence[str],
    log: Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
    beside: Sequence[int] = (),
) -> Iterator[ProcessTree]:
    """A program for the time of the block."""
    tree = ProcessTree(command, log, folder, environment, beside)
    try:
        yield tree
    finally:
        tree.stop()


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> _Stat | None:
    """None once the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    if fields[0] == "Z":
        return None
    ticks = sum(int(fields[column]) for column in (11, 12, 13, 14))
    return _Stat(int(fields[1]), ticks / _TICKS, int(fields[19]), int(fields[21]) * _PAGE, name)
