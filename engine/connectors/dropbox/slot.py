"""A folder inside `processing` that belongs to one process: what it has taken and is not done with.

A process holds a lock on the folder for as long as it lives; the system takes the lock from whoever dies. So whoever
gets the lock of a folder knows that its owner is gone, and may take over what is in it. Nobody needs a clock for this,
and no file of a consumer that lives is ever touched.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.connectors.dropbox.box import OpenBox
    from engine.connectors.dropbox.folder import Folder

__all__ = ["LOCK", "Slot"]

LOCK = ".lock"
"""The file in a slot that its lock is on."""


class Slot:
    """One such folder, locked. OSError from its methods is the file system's."""

    def __init__(self, box: OpenBox, folder: Folder, name: str, lock: int) -> None:
        self._box = box
        self._name = name
        self._lock = lock
        self.folder = folder

    @staticmethod
    def only(box: OpenBox, name: str) -> Slot | None:
        """The slot of that name; None while another process has it."""
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
        """The first free slot of an owner that may have several processes: `owner.1`, `owner.2`, and so on."""
        number = 1
        while (slot := Slot.only(box, f"{owner}.{number}")) is None:
            number += 1
        return slot

    @staticmethod
    def abandoned(box: OpenBox, owner: str) -> Iterator[Slot]:
        """The other slots of that owner whose processes have died; each is to be closed."""
        pattern = re.compile(rf"{re.escape(owner)}\.[0-9]+")
        for name in box.folder("processing").folders():
            if pattern.fullmatch(name) and (slot := Slot.only(box, name)) is not None:
                yield slot

    def names(self) -> list[str]:
        """The files in it."""
        return sorted(entry.name for entry in self.folder.entries() if entry.name != LOCK)

    def give_back(self, names: Collection[str]) -> None:
        """Moves files to `target`, where anybody may take them; they stay where one of the same name is waiting."""
        target = self._box.folder("target")
        for name in names:
            if not target.has(name):
                self.folder.move(name, target)

    def close(self) -> None:
        """The folder goes if it is empty; else it stays for the next process. Never raises."""
        with suppress(OSError):
            if os.listdir(self.folder.handle) == [LOCK]:
                self.folder.remove(LOCK)
                os.rmdir(self._name, dir_fd=self._box.folder("processing").handle)
        self.folder.close()
        os.close(self._lock)


def _locked(folder: Folder) -> int | None:
    """The descriptor of a slot's lock; None where its last owner has removed the slot meanwhile.

    Raises:
        BlockingIOError: another process has it.
    """
    try:
        lock = folder.open_file(LOCK, os.O_RDWR | os.O_CREAT)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if folder.status(LOCK).st_ino == os.fstat(lock).st_ino:
            return lock
    except FileNotFoundError:
        # Between opening and locking.
        pass
    except OSError:
        os.close(lock)
        raise
    os.close(lock)
    return None
