"""One queue, or one subscription of a topic, as one process of a source takes from it."""

from __future__ import annotations

import errno
import os
import stat
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import structlog

from engine.codecs.dropbox_name import decode, rank
from engine.connectors.base import Delivery
from engine.connectors.dropbox.box import OpenBox
from engine.connectors.dropbox.long_names import LongNames
from engine.connectors.dropbox.message import to_message
from engine.connectors.dropbox.slot import Slot
from engine.connectors.dropbox.topic import distribute
from engine.connectors.dropbox.waiting import Waiting
from engine.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.codecs.dropbox_name import DropboxName
    from engine.connectors.dropbox.box import Box
    from engine.connectors.dropbox.folder import Folder

__all__ = ["Lane", "Reading", "Token"]

_BEGINNING_BYTES = 64 * 1024
_UNREADABLE = (errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO)
"""What is wrong with one file and not with its disk."""
_GONE = "a file that was taken is gone"
_INCOMPLETE = "its long name, which has its other headers and properties, is missing"
_log = structlog.get_logger(__name__)


class Token(NamedTuple):
    """What a delivery is acknowledged by."""

    lane: Lane
    filename: str
    is_consumed: bool
    """Whether it was read whole; else its file goes to `error`."""


class Reading(NamedTuple):
    """How a source reads, the same for all of its lanes."""

    source: str
    owner: str
    """Begins the names of the slots of its processes."""
    interval_seconds: float
    deletes: bool
    """Whether files that the journal has are deleted."""
    most_bytes: int
    """Of a body that is read whole."""


class Lane:
    """Methods raise the file system's OSError where its folders cannot be used, apart from `close`."""

    def __init__(self, root: Folder, box: Box, topic: Box | None, reading: Reading, *, is_temporary: bool) -> None:
        """Makes the dropbox. `topic` is what `box` is a subscription of; one that is temporary goes in the end."""
        self._reading = reading
        self._is_temporary = is_temporary
        self._long_names = LongNames(root)
        # A lane that is not made is not closed.
        with ExitStack() as made:
            self._topic = None if topic is None else made.enter_context(OpenBox(root, topic))
            self._box = made.enter_context(OpenBox(root, box))
            self._slot = Slot.any(self._box, reading.owner)
            made.callback(self._slot.close)
            self._waiting = Waiting(self._box.folder("target"), reading.interval_seconds, self._may_look)
            self._left = self._names()
            self._taken = set(self._left)
            self._give_back()
            self._opened = made.pop_all()

    def _names(self) -> list[str]:
        """Of the files that a process of this slot has left, the next one at the end."""
        return sorted(self._slot.names(), key=lambda name: rank(name, lambda: self._modified(name)), reverse=True)

    def _give_back(self) -> None:
        """What processes have left that nobody follows."""
        for slot in Slot.abandoned(self._box, self._reading.owner):
            try:
                slot.give_back(slot.names())
            finally:
                slot.close()

    @property
    def folders(self) -> list[Folder]:
        """Where new files come."""
        boxes = [self._box] if self._topic is None else [self._box, self._topic]
        return [box.folder("target") for box in boxes]

    @property
    def due_seconds(self) -> float:
        """When it wants to look for files again, from now on."""
        return self._waiting.due_seconds

    def hint(self) -> None:
        """There may be new files."""
        self._waiting.hint()

    def next(self) -> Delivery | None:
        """The next message; None if none is known to wait."""
        while True:
            # What a process that died had taken comes first.
            redelivered = bool(self._left)
            filename = self._left.pop() if self._left else self._take()
            if filename is None:
                return None
            if (delivery := self._delivery(filename, redelivered=redelivered)) is not None:
                return delivery
            self._taken.discard(filename)

    def finish(self, filenames: Sequence[str], *, consumed: bool) -> None:
        """Files that the journal has are moved or deleted, others moved to `error`; returns when that is on disk."""
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
        """What was taken and not finished goes back to `target`. Never raises."""
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
        """The next file that nobody else was faster to take."""
        while (filename := self._waiting.next(self._taken)) is not None:
            if self._box.folder("target").move(filename, self._slot.folder):
                self._taken.add(filename)
                return filename
        return None

    def _delivery(self, filename: str, *, redelivered: bool) -> Delivery | None:
        """What is in a file that was taken; None for one that has expired or is gone."""
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
    """The body or its beginning, its size, and when the file was written, in milliseconds since 1970."""
    # It was a regular file when it was seen, but may have been exchanged since.
    handle = folder.open_file(filename, os.O_RDONLY)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(errno.EPERM, "it is no regular file", filename)
        left = status.st_size if status.st_size <= most_bytes else _BEGINNING_BYTES
        parts = []
        while left > 0 and (part := os.read(handle, left)):
            parts.append(part)
            left -= len(part)
    finally:
        os.close(handle)
    return b"".join(parts), status.st_size, status.st_mtime_ns // 1_000_000
