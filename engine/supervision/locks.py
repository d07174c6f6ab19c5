"""Locks that keep two bridges from running the same part on the same data folder, where no election does (`election`).

Each part holds a locked file for as long as one of its processes lives. Child processes inherit the lock, so a part
whose supervisor was killed is not started a second time while the first is still ending. The lock goes with its
processes; the file stays, and contains the process id of the supervisor.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from engine.errors import SetupError
from engine.file_lock import part_lock, try_lock
from engine.private import make_folder
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["hold"]

_ENDING_SECONDS = 120.0
"""Time that the parts of a killed bridge may take to notice and end: several times `worker.STOP_SECONDS`, since a
machine on which a bridge was killed is often a busy one."""
_SILENT_SECONDS = 2.0
"""Time after which the log says what is waited for."""

_log = structlog.get_logger(__name__)


@contextmanager
def hold(folder: Path, parts: Iterable[str]) -> Iterator[dict[str, int]]:
    """Holds the locks of the parts; yields a file descriptor for each, to be inherited by its process.

    If a lock belongs to a bridge that was killed, waits for its parts to end.

    Raises:
        SetupError: another bridge runs one of the parts, or the folder cannot be written.
        BridgeError: a part of a bridge that was killed has not ended; a later start may find that it has.
    """
    held: dict[str, int] = {}
    try:
        make_folder(folder / "locks")
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        for part in parts:
            held[part] = _lock(folder, part)
        yield held
    finally:
        for descriptor in held.values():
            os.close(descriptor)


def _lock(folder: Path, part: str) -> int:
    file = part_lock(folder, part)
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        _wait(descriptor, file, part)
    except BridgeError:
        os.close(descriptor)
        raise
    os.truncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _wait(descriptor: int, file: Path, part: str) -> None:
    """Locks a file, once the parts of a killed bridge have ended; raises BridgeError as `hold`."""
    began, is_told = time.monotonic(), False
    folder = file.parent.parent.absolute()
    while not try_lock(descriptor):
        owner = file.read_text().strip() or "unknown"
        if _alive(owner):
            message = (
                f"another bridge (process {owner}) runs {part} on {folder}; "
                "stop it, or set embedded.data to another folder"
            )
            raise SetupError(message)
        waited = time.monotonic() - began
        if waited > _ENDING_SECONDS:
            message = (
                f"{part} of a bridge that was killed (process {owner}) still runs on {folder} after "
                f"{_ENDING_SECONDS:.0f} s: start again when it has ended, or end it (`fuser {file}` shows it)"
            )
            raise BridgeError(message)
        if waited > _SILENT_SECONDS and not is_told:
            _log.info("waiting for a part of a killed bridge to end", part=part, killed=owner)
            is_told = True
        time.sleep(0.1)


def _unwritable(folder: Path, error: OSError) -> SetupError:
    return SetupError(f"embedded.data={folder} cannot be written: {error.strerror}; make it writable or choose another")


def _alive(owner: str) -> bool:
    try:
        os.kill(int(owner), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True
