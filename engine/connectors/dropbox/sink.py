"""Sink that writes each message to a file in the folder `working` of a dropbox, and then moves it to `target`.

The files of a batch are synced to disk together (`folder.FileBatch`), then moved in the order of the messages. A
message that is sent again has the same file name, and is skipped if the dropbox has a file of that name already. So it
is there once unless a consumer has deleted or renamed the file.
"""

from __future__ import annotations

import errno
import time
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.dropbox.box import OpenBox, locate
from engine.connectors.dropbox.file_name import escape
from engine.connectors.dropbox.folder import FileBatch, open_root, translated_errors
from engine.connectors.dropbox.long_names import LongNames
from engine.connectors.dropbox.message import to_filename
from engine.connectors.dropbox.topic import distribute_now
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.dropbox.box import Box
    from engine.connectors.dropbox.folder import Folder
    from engine.connectors.dropbox.message import Filename
    from engine.connectors.dropbox.settings import DropboxSinkConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["DropboxSink"]

_MOST_BOXES = 10_000
_MOST_OPEN = 32
"""Maximum number of dropboxes whose folders are held open, with seven descriptors each."""
_UNUSABLE = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP)
"""Errors that concern the name of a dropbox and not the disk, and would recur for ever."""
_LOST = "a file was taken away while it was written"
_ABANDONED_SECONDS = 3600.0
"""Age after which a file in `working` belongs to a process that has died."""


class _File(NamedTuple):
    """File of one message while it is written to a dropbox."""

    number: int
    name: Filename
    body: bytes
    working: str
    """Name of the file in `working`."""


class DropboxSink:
    """Sink of one worker for the dropboxes below one root."""

    most_under_way = 500
    """Maximum number of messages in a batch, and so of new files open at a time."""
    settle_seconds = 0.0

    def __init__(self, endpoint: SystemEndpoint[DropboxSinkConfig], worker: int) -> None:
        """Creates the sink without touching the file system. `worker` is ignored, since all workers do the same."""
        sink = endpoint.settings
        self._root = endpoint.root
        self._is_own_root = sink.root is None
        self._owner = f"jms-bridge.{escape(endpoint.bridge_id)}.{escape(sink.name)}."
        self._run = uuid.uuid4().hex
        self._count = 0
        self._open_root: Folder | None = None
        self._boxes: dict[str, Box] = {}
        self._open: dict[Box, OpenBox] = {}
        """Open dropboxes, the most recently used at the end."""
        self._known: list[Outcome] = []

    @property
    def address(self) -> str:
        """URL of the root, `dropbox:///root`."""
        return f"dropbox://{self._root}"

    def connect(self) -> None:
        """Opens the root; creates it only if it is the default root, which is not configured.

        Raises:
            NotConnectedError: the root does not exist, is a link, or is not writable.
        """
        self.close()
        with translated_errors():
            if self._is_own_root:
                make_folder(self._root)
            self._open_root = open_root(str(self._root))

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Writes the messages to their dropboxes, creating missing ones; returns when all files are on disk."""
        groups: dict[Box, list[_File]] = {}
        with translated_errors():
            for each in messages:
                try:
                    box, name = self._box(each.address), to_filename(each)
                except RefusedError as error:
                    self._known.append(Outcome(each.number, str(error)))
                    continue
                self._count += 1
                working = f"{self._owner}{self._run}.{self._count}"
                groups.setdefault(box, []).append(_File(each.number, name, each.message.body, working))
            for box, files in groups.items():
                self._put(self._opened(box), files)
                self._known += [Outcome(file.number) for file in files]

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns the outcomes of `send`; sleeps for the timeout if there are none, since none can arrive later."""
        known, self._known = self._known, []
        if not known:
            time.sleep(timeout_seconds)
        return known

    def close(self) -> None:
        """Closes all folders and drops the outcomes not yet returned."""
        self._known.clear()
        self._boxes.clear()
        while self._open:
            self._open.popitem()[1].close()
        if self._open_root is not None:
            self._open_root.close()
            self._open_root = None

    def _box(self, address: str) -> Box:
        """Returns the dropbox of an address, creating it if it is missing.

        Raises:
            RefusedError: the address cannot be a dropbox.
        """
        box = self._boxes.get(address)
        if box is None:
            if len(self._boxes) >= _MOST_BOXES:
                self._boxes.clear()
            box = locate(self._root, address)
            try:
                self._clear(self._opened(box).folder("working"))
            except OSError as error:
                if error.errno not in _UNUSABLE:
                    raise
                raise RefusedError(f"{address[:100]!r} cannot be a dropbox: {error.strerror}") from error
            self._boxes[address] = box
        return box

    def _opened(self, box: Box) -> OpenBox:
        """Returns the open folders of a dropbox, marked as most recently used.

        Raises:
            NotConnectedError: the sink is not connected.
            OSError: the folders cannot be opened, or were replaced while open.
        """
        if self._open_root is None:
            raise NotConnectedError("the sink is not connected")
        opened = self._open.pop(box, None)
        if opened is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            opened = OpenBox(self._open_root, box)
        self._open[box] = opened
        opened.check()
        return opened

    def _put(self, box: OpenBox, files: Sequence[_File]) -> None:
        working, target = box.folder("working"), box.folder("target")
        with ExitStack() as slots:
            folders = _folders(box, slots)
            new = [file for file in files if not any(folder.has(file.name.text) for folder in folders)]
        _write(working, new)
        long_names = {file.name.message_id: file.name.long for file in new if file.name.long is not None}
        LongNames(box.root).write(long_names, working, f"{self._owner}{self._run}.")
        for file in new:
            if not working.move(file.working, target, file.name.text):
                raise FileNotFoundError(errno.ENOENT, _LOST, f"{working.path}/{file.working}")
        target.sync()
        if box.box.is_topic:
            distribute_now(box)

    def _clear(self, working: Folder) -> None:
        """Deletes unfinished files of this sink's dead processes from `working`."""
        for entry in working.entries():
            if entry.name.startswith(self._owner):
                modified = entry.stat(follow_symlinks=False).st_mtime
                if modified < time.time() - _ABANDONED_SECONDS:
                    _forget(working, entry.name)


def _folders(box: OpenBox, slots: ExitStack) -> list[Folder]:
    """Returns the folders in which a message sent before can be.

    `target` is listed twice, first and last, for a file that moves back to it while the others are searched.
    """
    target, processing = box.folder("target"), box.folder("processing")
    inner = []
    for name in processing.folders():
        # A consumer may remove its folder at any moment, or deny access to it.
        with suppress(FileNotFoundError, PermissionError):
            folder = slots.enter_context(processing.enter(name))
            folder.status(".")
            inner.append(folder)
    return [target, processing, *inner, *(box.folder(name) for name in ("processed", "expired", "error")), target]


def _write(folder: Folder, files: Sequence[_File]) -> None:
    """Writes the files to a folder and syncs them to disk; deletes all of them if one fails."""
    try:
        with FileBatch(folder) as batch:
            for file in files:
                batch.write(file.working, file.body)
            batch.sync()
    except BaseException:
        for file in files:
            _forget(folder, file.working)
        raise


def _forget(folder: Folder, name: str) -> None:
    # The file may never have been created; and an error of the disk has been raised already.
    with suppress(OSError):
        folder.remove(name)
