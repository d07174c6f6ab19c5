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

__all__ = ["gone", "listening", "pause", "paused"]


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


def listening(pid: int) -> set[int]:
    """The TCP ports on which a process listens."""
    inodes = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii").splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and f"socket:[{rest[5]}]" in inodes:
                found.add(int(local.rpartition(":")[2], 16))
    return found
