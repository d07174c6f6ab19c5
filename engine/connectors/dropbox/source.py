"""Source for dropboxes: takes files from `target`, and moves them to `processed` when the journal has their messages.

To take a file, a process moves it to its own folder inside `processing` (`box.Slot`). Of several consumers, bridges
or others, one succeeds in moving the file, and the others go on to the next. `folder_reader` reads one queue or
subscription, `pending_files` has the order of files, `folder` notices new files, and `message` converts them. The
journal, reconnecting and stopping are in `source_loop`.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from engine.connectors.base import Redelivery
from engine.connectors.dropbox.box import locate, subscription
from engine.connectors.dropbox.file_name import escape
from engine.connectors.dropbox.folder import FileWatcher, open_root, translated_errors
from engine.connectors.dropbox.folder_reader import FolderReader, ReaderSettings
from engine.connectors.dropbox.settings import FileWatch, Processed
from engine.private import make_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.connectors.base import Delivery
    from engine.connectors.dropbox.box import Box
    from engine.connectors.dropbox.folder import Folder
    from engine.connectors.dropbox.folder_reader import Token
    from engine.connectors.dropbox.settings import DropboxSourceConfig
    from engine.connectors.endpoint import SystemEndpoint

__all__ = ["DropboxSource", "boxes_of", "owner_of"]

_REDELIVERY = Redelivery(returns_seconds=0.0, doubt_seconds=0.0, is_marked=False)
"""Redelivery of a dropbox: files left by an earlier process are available at once, an acknowledgement is on disk when
it returns, and a file that goes back to `target` is not marked as redelivered."""

_REPLIES = "queue:jms-bridge.reply."
"""Prefix of temporary queues, each of which `jms-bridge request` names for the replies to one request."""


def owner_of(endpoint: SystemEndpoint[DropboxSourceConfig]) -> str:
    """Returns the prefix of the names of the slots of a source's processes."""
    return f"jms-bridge.{escape(endpoint.bridge_id)}.{escape(endpoint.settings.name)}"


def boxes_of(endpoint: SystemEndpoint[DropboxSourceConfig]) -> Iterator[tuple[Box, Box | None]]:
    """Yields the dropbox that a source reads for each destination, with its topic if it is a subscription of one."""
    source = endpoint.settings
    client_id = source.client_id or endpoint.bridge_id
    for destination in source.destinations:
        box = locate(endpoint.root, destination)
        yield (subscription(box, source.subscription or client_id, client_id), box) if box.is_topic else (box, None)


class DropboxSource:
    """Source of one worker, which reads all dropboxes of the source."""

    def __init__(self, endpoint: SystemEndpoint[DropboxSourceConfig], worker: int) -> None:
        """Creates the source without touching the file system. `worker` is ignored, since all workers do the same."""
        source = endpoint.settings
        self._source = source
        self._endpoint = endpoint
        self._root = endpoint.root
        self._is_own_root = source.root is None
        self._reading = ReaderSettings(
            source.name,
            owner_of(endpoint),
            source.scan_interval_seconds,
            source.processed is Processed.DELETE,
            endpoint.max_message_bytes,
        )
        self._open_root: Folder | None = None
        self._readers: list[FolderReader] = []
        self._watcher: FileWatcher | None = None

    @property
    def address(self) -> str:
        """Root and destinations, such as `dropbox:///root (queue:orders, …)`."""
        return f"dropbox://{self._root} ({', '.join(self._source.destinations)})"

    @property
    def redelivery(self) -> Redelivery:
        """Redelivery of files, see `Source`; the same for each connection."""
        return _REDELIVERY

    def connect(self) -> None:
        """Opens the root and the dropboxes, creating missing folders below the root.

        Raises:
            NotConnectedError: the root or a folder cannot be used.
        """
        self.close()
        with translated_errors():
            if self._is_own_root:
                make_folder(self._root)
            root = self._open_root = open_root(str(self._root))
            for destination, (box, topic) in zip(self._source.destinations, boxes_of(self._endpoint), strict=True):
                self._readers.append(self._reader(root, destination, box, topic))
            folders = [folder for reader in self._readers for folder in reader.folders]
            self._watcher = FileWatcher(folders, inotify=self._source.watch is FileWatch.INOTIFY)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """Returns the delivery of the next file that this process takes; None if none came in time."""
        deadline = time.monotonic() + timeout_seconds
        while (found := self._next()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self._watcher is None:
                return None
            with translated_errors():
                if self._watcher.wait(min(left, *(reader.due_seconds for reader in self._readers))):
                    for reader in self._readers:
                        reader.hint()
        return found

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Moves the files of deliveries to `processed` or deletes them; unreadable ones go to `error`.

        Returns when the changes are on disk.
        """
        groups: dict[FolderReader, list[Token]] = {}
        for token in cast("Sequence[Token]", tokens):
            groups.setdefault(token.reader, []).append(token)
        with translated_errors():
            for reader, own in groups.items():
                reader.finish([each.filename for each in own if each.is_consumed], consumed=True)
                reader.finish([each.filename for each in own if not each.is_consumed], consumed=False)

    def tend(self) -> None:
        """Does nothing; a file system needs no heart-beats."""

    def close(self) -> None:
        """Moves files that are not acknowledged back to `target`, and closes all folders."""
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.close()
        if self._watcher is not None:
            with suppress(OSError):
                self._watcher.close()
            self._watcher = None
        if self._open_root is not None:
            self._open_root.close()
            self._open_root = None

    def _next(self) -> Delivery | None:
        """Returns the next delivery of the readers, which are asked in turns; None if none has a file."""
        with translated_errors():
            for _ in self._readers:
                reader = self._readers.pop(0)
                self._readers.append(reader)
                if (delivery := reader.next()) is not None:
                    return delivery
        return None

    def _reader(self, root: Folder, destination: str, box: Box, topic: Box | None) -> FolderReader:
        # A queue that was created for the reply to one request has no other users, and a subscription without a
        # configured name is not durable, so `close` deletes these.
        is_temporary = destination.startswith(_REPLIES) if topic is None else not self._source.subscription
        return FolderReader(root, box, topic, self._reading, is_temporary=is_temporary)
