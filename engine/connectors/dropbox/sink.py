"""Messages into dropboxes: each is written to a file in `working`, and moved to `target` when it is on disk.

Files of a batch are brought to disk together (`disk`) and moved in the order of the messages. A message that comes
again has the same file name, and is left out where a file of that name is in the dropbox already, whatever consumers
have done with it but delete or rename it.
"""

from __future__ import annotations

import errno
import time
import uuid
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, NamedTuple

from engine.codecs.dropbox_name import escape
from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.dropbox.box import OpenBox, locate
from engine.connectors.dropbox.disk import Disk
from engine.connectors.dropbox.folder import open_root, told
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
    from routes.model import Config, SinkConfig

__all__ = ["DropboxSink"]

_MOST_BOXES = 10_000
_MOST_OPEN = 32
"""Dropboxes whose folders are held open, seven descriptors each."""
_UNUSABLE = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP)
"""What is wrong with the name of a dropbox and not with the disk: it would be so for ever."""
_LOST = "a file was taken away while it was written"
_ABANDONED_SECONDS = 3600.0
"""A file that was being written so long ago belongs to a process that has died."""


class _File(NamedTuple):
    """One message on its way into a dropbox."""

    number: int
    name: Filename
    body: bytes
    working: str
    """Its name while it is written."""


class DropboxSink:
    """The dropboxes below one root, as one process gives to them."""

    most_under_way = 500
    """As many files may be open at a time."""
    settle_seconds = 0.0

    def __init__(self, config: Config, sink: SinkConfig, worker: int) -> None:
        """All workers are alike, so `worker` says nothing."""
        self._root = config.root(sink)
        self._is_own_root = sink.root is None
        self._owner = f"jms-bridge.{escape(config.bridge_id)}.{escape(sink.name)}."
        self._run = uuid.uuid4().hex
        self._count = 0
        self._open_root: Folder | None = None
        self._boxes: dict[str, Box] = {}
        self._open: dict[Box, OpenBox] = {}
        """The one used last at the end."""
        self._known: list[Outcome] = []

    @property
    def address(self) -> str:
        """`dropbox:///root`."""
        return f"dropbox://{self._root}"

    def connect(self) -> None:
        """The root is there and can be written to."""
        self.close()
        with told():
            if self._is_own_root:
                make_folder(self._root)
            self._open_root = open_root(str(self._root))

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Returns when all are in their dropboxes, and on disk; dropboxes that are missing are made."""
        groups: dict[Box, list[_File]] = {}
        with told():
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
        """All that is known; nothing is ever waited for."""
        known, self._known = self._known, []
        if not known:
            time.sleep(timeout_seconds)
        return known

    def close(self) -> None:
        """Nothing is under way."""
        self._known.clear()
        self._boxes.clear()
        while self._open:
            self._open.popitem()[1].close()
        if self._open_root is not None:
            self._open_root.close()
            self._open_root = None

    def _box(self, address: str) -> Box:
        """The dropbox of an address, made where it is missing."""
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
        """The folders of a dropbox, the same as before; of those that are held open it is the one used last."""
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
        """Deletes what processes of this sink that have died were writing."""
        for entry in working.entries():
            if entry.name.startswith(self._owner):
                modified = entry.stat(follow_symlinks=False).st_mtime
                if modified < time.time() - _ABANDONED_SECONDS:
                    _forget(working, entry.name)


def _folders(box: OpenBox, slots: ExitStack) -> list[Folder]:
    """Where a message can be that was given before. `target` comes again for what goes back while it is looked for."""
    target, processing = box.folder("target"), box.folder("processing")
    inner = []
    for name in processing.folders():
        # A consumer may remove its own, or keep it to itself.
        with suppress(FileNotFoundError, PermissionError):
            folder = slots.enter_context(processing.enter(name))
            folder.status(".")
            inner.append(folder)
    return [target, processing, *inner, *(box.folder(name) for name in ("processed", "expired", "error")), target]


def _write(folder: Folder, files: Sequence[_File]) -> None:
    """Returns when all are on disk; what could not be written leaves nothing behind."""
    try:
        with Disk(folder) as disk:
            for file in files:
                disk.write(file.working, file.body)
            disk.sync()
    except BaseException:
        for file in files:
            _forget(folder, file.working)
        raise


def _forget(folder: Folder, name: str) -> None:
    # It may never have been made; and if its disk is gone, that is told already.
    with suppress(OSError):
        folder.remove(name)
