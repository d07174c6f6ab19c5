"""Messages from dropboxes: files are taken from `target`, and moved to `processed` when the journal has them.

A file that is taken lies in a folder of the process's own inside `processing` (`slot`). Of several consumers, bridges
or not, one succeeds in moving it there, and the others go on to the next. What waits and in which order is in
`waiting`, how new files are noticed in `watch`, names become messages in `message`; `source_loop` does the rest.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from engine.codecs.dropbox_name import escape
from engine.connectors.base import Redelivery
from engine.connectors.dropbox.box import locate, subscription
from engine.connectors.dropbox.folder import open_root, told
from engine.connectors.dropbox.lane import Lane, Reading
from engine.connectors.dropbox.watch import watcher
from engine.private import make_folder
from routes.model import Processed, Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Delivery
    from engine.connectors.dropbox.folder import Folder
    from engine.connectors.dropbox.lane import Token
    from engine.connectors.dropbox.watch import Watcher
    from routes.model import Config, SourceConfig

__all__ = ["DropboxSource"]

_REDELIVERY = Redelivery(returns_seconds=0.0, doubt_seconds=0.0, is_marked=False)
"""What was left is there at once, what is acknowledged is on disk, what goes back to `target` looks like any file."""

_REPLIES = "queue:jms-bridge.reply."
"""How the queues begin in which the reply to one request is awaited."""


class DropboxSource:
    """The dropboxes of one source, for one process of several."""

    def __init__(self, config: Config, source: SourceConfig, worker: int) -> None:
        """All workers are alike, so `worker` says nothing."""
        self._source = source
        self._root = config.root(source)
        self._is_own_root = source.root is None
        self._client_id = source.client_id or config.bridge_id
        self._reading = Reading(
            source.name,
            f"jms-bridge.{escape(config.bridge_id)}.{escape(source.name)}",
            source.scan_interval_seconds,
            source.processed is Processed.DELETE,
            config.journal.max_message_bytes,
        )
        self._open_root: Folder | None = None
        self._lanes: list[Lane] = []
        self._watcher: Watcher | None = None

    @property
    def address(self) -> str:
        """`dropbox:///root (queue:orders, …)`."""
        return f"dropbox://{self._root} ({', '.join(self._source.destinations)})"

    @property
    def redelivery(self) -> Redelivery:
        """See `Source`."""
        return _REDELIVERY

    def connect(self) -> None:
        """Makes what is missing of the dropboxes, below the root."""
        self.close()
        with told():
            if self._is_own_root:
                make_folder(self._root)
            root = self._open_root = open_root(str(self._root))
            for destination in self._source.destinations:
                self._lanes.append(self._lane(root, destination))
            folders = [folder for lane in self._lanes for folder in lane.folders]
            self._watcher = watcher(folders, inotify=self._source.watch is Watch.INOTIFY)

    def receive(self, timeout_seconds: float) -> Delivery | None:
        """The next file that this process succeeds in taking."""
        deadline = time.monotonic() + timeout_seconds
        while (found := self._next()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or self._watcher is None:
                return None
            with told():
                if self._watcher.wait(min(left, *(lane.due_seconds for lane in self._lanes))):
                    for lane in self._lanes:
                        lane.hint()
        return found

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Moves their files to `processed`, or deletes them; returns when that is on disk."""
        groups: dict[Lane, list[Token]] = {}
        for token in cast("Sequence[Token]", tokens):
            groups.setdefault(token.lane, []).append(token)
        with told():
            for lane, own in groups.items():
                lane.finish([each.filename for each in own if each.is_consumed], consumed=True)
                lane.finish([each.filename for each in own if not each.is_consumed], consumed=False)

    def tend(self) -> None:
        """Nobody asks whether it is still there."""

    def close(self) -> None:
        """What is not acknowledged goes back to `target`."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.close()
        if self._watcher is not None:
            with suppress(OSError):
                self._watcher.close()
            self._watcher = None
        if self._open_root is not None:
            self._open_root.close()
            self._open_root = None

    def _next(self) -> Delivery | None:
        """From the lanes in turns."""
        with told():
            for _ in self._lanes:
                lane = self._lanes.pop(0)
                self._lanes.append(lane)
                if (delivery := lane.next()) is not None:
                    return delivery
        return None

    def _lane(self, root: Folder, destination: str) -> Lane:
        box = locate(self._root, destination)
        if not box.is_topic:
            # Nobody else knows a queue that was made for one reply.
            return Lane(root, box, None, self._reading, is_temporary=destination.startswith(_REPLIES))
        own = subscription(box, self._source.subscription or self._client_id, self._client_id)
        # Without a name it is no durable one.
        return Lane(root, own, box, self._reading, is_temporary=not self._source.subscription)
