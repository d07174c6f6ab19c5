"""Reader of one queue or one topic subscription, for one process of a dropbox source."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import structlog

from engine.connectors.base import Delivery
from engine.connectors.dropbox.box import OpenBox, Slot
from engine.connectors.dropbox.file_name import decode, rank
from engine.connectors.dropbox.long_names import LongNames
from engine.connectors.dropbox.message import to_message
from engine.connectors.dropbox.pending_files import PendingFiles
from engine.connectors.dropbox.topic import distribute
from engine.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.dropbox.box import Box
    from engine.connectors.dropbox.file_name import DropboxName
    from engine.connectors.dropbox.folder import Folder

__all__ = ["FolderReader", "ReaderSettings", "Token"]

_BEGINNING_BYTES = 64 * 1024
_UNREADABLE = (errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO)
"""Errors that concern a single file and not its disk."""
_GONE = "a file that was taken is gone"
_INCOMPLETE = "its long name, which has its other headers and properties, is missing"
_log = structlog.get_logger(__name__)


class Token(NamedTuple):
    """Acknowledgement token of a delivery."""

    reader: FolderReader
    filename: str
    is_consumed: bool
    """True if the file was read completely; otherwise the acknowledgement moves it to `error`."""


class ReaderSettings(NamedTuple):
    """Settings of a source that all of its readers share."""

    source: str
    owner: str
    """Prefix of the names of the slots of this source's processes."""
    interval_seconds: float
    deletes: bool
    """True if files whose messages are in the journal are deleted instead of moved to `processed`."""
    most_bytes: int
    """Maximum size of a body that is read completely."""


class FolderReader:
    """Reader of one queue or topic subscription, which takes files into a slot of its own.

    All methods except `close` raise OSError if the folders cannot be used.
    """

    def __init__(
        self, root: Folder, box: Box, topic: Box | None, reading: ReaderSettings, *, is_temporary: bool
    ) -> None:
        """Opens the dropbox, creating missing folders, and takes over files of processes that have died.

        `topic` is the topic to which `box` is a subscription; None for a queue. `close` deletes the whole dropbox if it
        `is_temporary`.
        """
        self._reading = reading
        self._is_temporary = is_temporary
        self._long_names = LongNames(root)
        # If the constructor fails, `close` is never called, so the stack closes what was opened.
        with ExitStack() as made:
            self._topic = None if topic is None else made.enter_context(OpenBox(root, topic))
            self._box = made.enter_context(OpenBox(root, box))
            self._slot = Slot.any(self._box, reading.owner)
            made.callback(self._slot.close)
            self._waiting = PendingFiles(self._box.folder("target"), reading.interval_seconds, self._may_look)
            self._left = self._names()
            self._taken = set(self._left)
            self._give_back()
            self._opened = made.pop_all()

    def _names(self) -> list[str]:
        """Returns the names of files that an earlier process left in this slot, the next one to take at the end."""
        return sorted(self._slot.names(), key=lambda name: rank(name, lambda: self._modified(name)), reverse=True)

    def _give_back(self) -> None:
        """Moves files of this source's other dead processes back to `target`."""
        for slot in Slot.abandoned(self._box, self._reading.owner):
            try:
                slot.give_back(slot.names())
            finally:
                slot.close()

    @property
    def folders(self) -> list[Folder]:
        """Folders in which new files appear."""
        boxes = [self._box] if self._topic is None else [self._box, self._topic]
        return [box.folder("target") for box in boxes]

    @property
    def due_seconds(self) -> float:
        """Seconds from now until the reader looks for files again."""
        return self._waiting.due_seconds

    def hint(self) -> None:
        """Notes that there may be new files."""
        self._waiting.hint()

    def next(self) -> Delivery | None:
        """Takes the next file and returns its delivery; None if no file is known to wait."""
        while True:
            # Files that an earlier, dead process had taken come first.
            redelivered = bool(self._left)
            filename = self._left.pop() if self._left else self._take()
            if filename is None:
                return None
            if (delivery := self._delivery(filename, redelivered=redelivered)) is not None:
                return delivery
            self._taken.discard(filename)

    def finish(self, filenames: Sequence[str], *, consumed: bool) -> None:
        """Moves files to `processed`, or deletes them, if `consumed`; else moves them to `error`.

        Returns when the changes are on disk. Files that have vanished are logged.
        """
        if not filenames:
            return
        slot = self._slot.folder
        if consumed and self._reading.deletes:
            self._box.check()
            gone = [filename for filename in filenames if not slot.remove(filename)]
        else:
            target = self._box.folder("processed" if consumed else "error")
            self._box.check()
            gone = [filename for filename in filenames if not slot.move(filename, target)]
            target.sync()
        slot.sync()
        for filename in gone:
            _log.warning(_GONE, file=f"{slot.path}/{filename}")
        self._taken.difference_update(filenames)

    def close(self) -> None:
        """Moves files that were taken and not finished back to `target`, and closes the folders. Never raises."""
        try:
            self._box.check()
            self._slot.give_back(self._taken)
        except OSError as error:
            where = self._slot.folder.path
            _log.warning("files wait in their folder for the next start", folder=where, why=str(error))
        if self._is_temporary:
            self._box.remove()
        self._opened.close()

    def _take(self) -> str | None:
        """Takes the next file that no other process has taken, and returns its name; None if none waits."""
        while (filename := self._waiting.next(self._taken)) is not None:
            if self._box.folder("target").move(filename, self._slot.folder):
                self._taken.add(filename)
                return filename
        return None

    def _delivery(self, filename: str, *, redelivered: bool) -> Delivery | None:
        """Returns the delivery of a file that was taken; None if the file has expired or vanished."""
        name = decode(filename)
        if 0 < name.expiration <= time.time() * 1000:
            self._slot.folder.move(filename, self._box.folder("expired"))
            return None
        try:
            body, size, modified_ms = _read(self._slot.folder, filename, self._reading.most_bytes)
        except FileNotFoundError:
            self._slot.folder.check()
            _log.warning(_GONE, file=f"{self._slot.folder.path}/{filename}")
            return None
        except OSError as error:
            if error.errno not in _UNREADABLE:
                raise
            fault = f"its file cannot be read: {error.strerror}"
            message = self._message(name, b"", time.time_ns() // 1_000_000, redelivered=redelivered)
            return Delivery(message, Token(self, filename, is_consumed=False), fault=fault)
        long_name = self._long_names.resolved(name)
        message = self._message(long_name or name, body, modified_ms, redelivered=redelivered)
        if long_name is None:
            return Delivery(message, Token(self, filename, is_consumed=False), fault=_INCOMPLETE)
        is_whole = len(body) == size
        return Delivery(message, Token(self, filename, is_whole), None if is_whole else size)

    def _message(self, name: DropboxName, body: bytes, modified_ms: int, *, redelivered: bool) -> Message:
        box, source = self._box.box, self._reading.source
        return to_message(name, body, box.destination, source, modified_ms, redelivered=redelivered)

    def _may_look(self) -> bool:
        self._box.check()
        if self._box.is_read_locked:
            return False
        if self._topic is not None:
            self._topic.check()
            distribute(self._topic)
        return True

    def _modified(self, filename: str) -> float:
        return self._slot.folder.status(filename).st_mtime


def _read(folder: Folder, filename: str, most_bytes: int) -> tuple[bytes, int, int]:
    """Returns body, size of the file in bytes, and modification time in milliseconds since 1970.

    Of a file larger than `most_bytes` only the first `_BEGINNING_BYTES` are read.
    """
    # The file was a regular one when it was listed, but another user may have replaced it since.
    handle = folder.open_file(filename, os.O_RDONLY)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "it is not a regular file", filename)
        left = status.st_size if status.st_size <= most_bytes else _BEGINNING_BYTES
        parts = []
        while left > 0 and (part := os.read(handle, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    return b"".join(parts), status.st_size, status.st_mtime_ns // 1_000_000
