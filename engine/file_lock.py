"""Exclusive locks of files, which the system frees when the last process with the open file has ended.

A child process that inherits the descriptor holds the lock as well. The JVM's locks are of another kind
(`engine.router.generation`).
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["held", "is_locked", "lock", "part_lock", "part_owner", "try_lock"]


def part_lock(data: Path, part: str) -> Path:
    """The file that a bridge locks for a part that works in the data folder `data`; it holds the supervisor's pid."""
    return data / "locks" / (quote(part, safe="") + ".lock")


def part_owner(data: Path, part: str) -> int | None:
    """The process id of the supervisor that locked a part last, which may have ended; None if none has."""
    try:
        return int(part_lock(data, part).read_text())
    except (OSError, ValueError):
        return None


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


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Locks a file as a JVM does, with its folder made if need be, as long as the context lasts; False if a JVM has."""
    make_folder(path.parent)
    with path.open("a") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
