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

from engine.connectors.dropbox.files import create, move

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from engine.connectors.dropbox.box import Box

__all__ = ["LOCK", "Slot"]

LOCK = ".lock"
"""The file in a slot that its lock is on."""


class Slot:
    """One such folder, locked. OSError from its methods is the file system's."""

    def __init__(self, box: Box, path: str, handle: int) -> None:
        self._box = box
        self._handle = handle
        self.path = path

    @staticmethod
    def only(box: Box, name: str) -> Slot | None:
        """The slot of that name; None while another process has it."""
        return _locked(box, f"{box.folder('processing')}/{name}")

    @staticmethod
    def any(box: Box, owner: str) -> Slot:
        """The first free slot of an owner that may have several processes: `owner.1`, `owner.2`, and so on."""
        number = 1
        while (slot := Slot.only(box, f"{owner}.{number}")) is None:
            number += 1
        return slot

    @staticmethod
    def abandoned(box: Box, owner: str) -> Iterator[Slot]:
        """The other slots of that owner whose processes have died; each is to be closed."""
        pattern = re.compile(rf"{re.escape(owner)}\.[0-9]+")
        names = sorted(entry.name for entry in os.scandir(box.folder("processing")) if pattern.fullmatch(entry.name))
        for name in names:
            if (slot := Slot.only(box, name)) is not None:
                yield slot

    def names(self) -> list[str]:
        """The files in it."""
        return sorted(entry.name for entry in os.scandir(self.path) if entry.name != LOCK)

    def give_back(self, names: Collection[str]) -> None:
        """Moves files to `target`, where anybody may take them; they stay where one of the same name is waiting."""
        target = self._box.folder("target")
        for name in names:
            if not os.path.lexists(f"{target}/{name}"):
                move(name, self.path, target)

    def close(self) -> None:
        """The folder goes if it is empty; else it stays for the next process. Never raises."""
        with suppress(OSError):
            if os.listdir(self.path) == [LOCK]:
                os.unlink(f"{self.path}/{LOCK}")
                os.rmdir(self.path)
        with suppress(OSError):
            os.close(self._handle)


def _locked(box: Box, path: str) -> Slot | None:
    while True:
        create(box.root, path)
        try:
            handle = os.open(f"{path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except FileNotFoundError:
            # Its last owner has removed it meanwhile.
            if not os.path.isdir(box.folder("processing")):
                raise
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.stat(f"{path}/{LOCK}").st_ino == os.fstat(handle).st_ino:
                return Slot(box, path, handle)
        except BlockingIOError:
            os.close(handle)
            return None
        except FileNotFoundError:
            # The same, between opening and locking.
            pass
        except OSError:
            os.close(handle)
            raise
        os.close(handle)
