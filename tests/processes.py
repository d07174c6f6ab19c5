"""What tests ask about processes that others started, and do to them."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["gone", "pause", "paused"]


def gone(pid: int) -> bool:
    """Whether a process has ended; where nobody collects orphans, one that has ended keeps its number."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


def pause(pid: int) -> None:
    """Stops all threads of a process; SIGSTOP alone returns before, and a server may answer once more."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    while any("\nState:\tT" not in (thread / "status").read_text() for thread in threads.iterdir()):
        time.sleep(0.001)


@contextmanager
def paused(pid: int | None) -> Iterator[None]:
    """A process that stands still meanwhile."""
    assert pid is not None
    pause(pid)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
