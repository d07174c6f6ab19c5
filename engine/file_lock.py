"""Exclusive locks of files, which the system frees when the last process with the open file has ended.

A child process that inherits the descriptor holds the lock as well. The JVM's locks are of another kind
(`engine.spark.generation`).
"""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["is_locked", "lock", "try_lock"]


def lock(descriptor: int) -> None:
    """Locks an open file; waits while it is locked through another descriptor."""
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int) -> bool:
    """Locks an open file; False if it is locked through another descriptor. OSError if the file cannot be locked."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(path: Path) -> bool:
    """True if a JVM has locked a file; False if the file is missing. Java's locks are those of `lockf`."""
    try:
        with path.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
