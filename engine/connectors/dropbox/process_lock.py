"""Slot: a folder inside `processing` that belongs to one process and holds the files it has taken and not finished.

The process holds a lock (`flock`) on a file in the slot for as long as it runs; the system releases the lock when the
process dies. So a process that gets the lock of an existing slot knows that its owner is dead, and may take over the
files. This needs no clock, and never touches the files of a running consumer.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from engine.file_lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.connectors.dropbox.box import OpenBox
    from engine.connectors.dropbox.folder import Folder

__all__ = ["LOCK", "Slot"]

LOCK = ".lock"
"""Name of the file in a slot that carries the lock."""


class Slot:
    """Locked slot of this process. All methods except `close` raise OSError for errors of the file system."""

    def __init__(self, box: OpenBox, folder: Folder, name: str, lock: int) -> None:
        self._box = box
        self._name = name
        self._lock = lock
        self.folder = folder

    @staticmethod
    def only(box: OpenBox, name: str) -> Slot | None:
        """Locks the slot of that name, creating it if it is missing; None if another process has it."""
        processing = box.folder("processing")
        while True:
            folder = processing.make(name)
            try:
                lock = _locked(folder)
            except BlockingIOError:
                folder.close()
                return None
            except OSError:
                folder.close()
                raise
            if lock is not None:
                return Slot(box, folder, name, lock)
            folder.close()

    @staticmethod
    def any(box: OpenBox, owner: str) -> Slot:
        """Locks the first free slot among `owner.1`, `owner.2` and so on; an owner may have several processes."""
        number = 1
        while (slot := Slot.only(box, f"{owner}.{number}")) is None:
            number += 1
        return slot

    @staticmethod
    def abandoned(box: OpenBox, owner: str) -> Iterator[Slot]:
        """Yields the slots of that owner whose processes have died, locked; the caller closes each.

        Slots that this process holds are not among them.
        """
        pattern = re.compile(rf"{re.escape(owner)}\.[0-9]+")
        for name in box.folder("processing").folders():
            if pattern.fullmatch(name) and (slot := Slot.only(box, name)) is not None:
                yield slot

    def names(self) -> list[str]:
        """Returns the sorted names of the files in the slot, without the lock."""
        return sorted(entry.name for entry in self.folder.entries() if entry.name != LOCK)

    def give_back(self, names: Collection[str]) -> None:
        """Moves files to `target`, where any consumer may take them.

        A file stays in the slot if a file of the same name waits in `target`.
        """
        target = self._box.folder("target")
        for name in names:
            if not target.has(name):
                self.folder.move(name, target)

    def close(self) -> None:
        """Releases the lock. An empty slot is deleted; another stays for the next process. Never raises."""
        with suppress(OSError):
            if os.listdir(self.folder.handle) == [LOCK]:
                self.folder.remove(LOCK)
                os.rmdir(self._name, dir_fd=self._box.folder("processing").handle)
        self.folder.close()
        os.close(self._lock)


def _locked(folder: Folder) -> int | None:
    """Locks a slot and returns the descriptor of its lock; None if its last owner has just deleted the slot.

    Raises:
        BlockingIOError: another process has the lock.
    """
    try:
        lock = folder.open_file(LOCK, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        return None
    try:
        if not try_lock(lock):
            raise BlockingIOError(LOCK)
        if folder.status(LOCK).st_ino == os.fstat(lock).st_ino:
            return lock
    except FileNotFoundError:
        # The last owner deleted the lock file between opening and locking.
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None
