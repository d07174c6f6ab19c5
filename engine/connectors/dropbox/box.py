"""The folders of one dropbox.

    ROOT/NAME/incoming/                             a queue
    ROOT/NAME/                                      a queue of a DropboxMQ that is set up without `incoming`
    ROOT/topic-root/NAME/.incoming/                 a topic; dots in NAME are further folders
    ROOT/topic-root/NAME/.subscriptions/SUB.CLIENT/ a durable subscription of it

Each has the same seven folders in it. `routing` is for DropboxMQ's own router: it is made and left alone.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.codecs.dropbox_name import escape
from engine.connectors.base import RefusedError
from routes.targets import ADDRESSES, System

if TYPE_CHECKING:
    from pathlib import Path

    from engine.connectors.dropbox.folder import Folder

__all__ = ["Box", "OpenBox", "examine", "locate", "subscription", "subscriptions"]

_ADDRESS = re.compile(ADDRESSES[System.DROPBOX].pattern)
_FOLDERS = ("working", "target", "processing", "processed", "routing", "expired", "error")
_INCOMING = "incoming"
_TOPICS = "topic-root"
_TOPIC_INCOMING = ".incoming"
_SUBSCRIPTIONS = ".subscriptions"
_DELETED = ".deleted"
"""What DropboxMQ puts into the name of a dropbox or subscription that it has deleted but kept."""
_READ_LOCK = "read-lock"
_GLOBAL_READ_LOCK = "global-read-lock"


@dataclass(frozen=True, slots=True)
class Box:
    """The place of one dropbox, for the queue or topic `destination`."""

    root: str
    names: tuple[str, ...]
    """The way from the root to the folder with the seven folders, folder by folder."""
    destination: str
    """`queue:NAME` or `topic:NAME`."""

    @property
    def path(self) -> str:
        """The folder with the seven folders."""
        return "/".join((self.root, *self.names))

    @property
    def is_topic(self) -> bool:
        """Whether it is a topic or a subscription of one."""
        return self.destination.startswith("topic:")


class OpenBox:
    """One dropbox with its folders held open; to be closed. OSError from its methods is the file system's."""

    def __init__(self, root: Folder, box: Box) -> None:
        """Makes the folders that are missing. `root` stays open for as long as this."""
        self.box = box
        self.root = root
        self._open: dict[str, Folder] = {}
        try:
            os.lstat(f"{box.path}/{max(_FOLDERS, key=len)}")
        except OSError as error:
            # Before a folder is made. What else may be wrong is found on the way.
            if error.errno == errno.ENAMETOOLONG:
                raise
        self._own = root.reach(box.names, make=True)
        try:
            for name in _FOLDERS:
                self._own.make(name).close()
        except OSError:
            self._own.close()
            raise

    def folder(self, name: str) -> Folder:
        """One of the seven, which is open from its first use on."""
        found = self._open.get(name)
        if found is None:
            found = self._open[name] = self._own.enter(name)
        return found

    def check(self) -> None:
        """Raises ESTALE where one of its folders is not the one that was opened any more."""
        for folder in (self.root, self._own, *self._open.values()):
            folder.check()

    @property
    def is_read_locked(self) -> bool:
        """Whether an administrator of DropboxMQ has put up the file that stops consumers, for this dropbox or all."""
        return self._own.has(_READ_LOCK) or self.root.has(_GLOBAL_READ_LOCK)

    def remove(self) -> None:
        """Deletes the whole queue or subscription with all that is in it. Never raises."""
        names = self.box.names
        *way, last = names[:-1] if names[-1] == _INCOMING else names
        with suppress(OSError), self.root.reach([".", *way]) as parent:
            shutil.rmtree(last, ignore_errors=True, dir_fd=parent.handle)

    def close(self) -> None:
        """Gives the descriptors back."""
        for folder in (self._own, *self._open.values()):
            folder.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def examine(root: Folder, box: Box) -> None:
    """Makes nothing; raises the file system's OSError where a folder that is there cannot be opened, as for a link."""
    with suppress(FileNotFoundError), root.reach(box.names) as own:
        for name in _FOLDERS:
            with suppress(FileNotFoundError):
                own.enter(name).close()


def locate(root: Path, address: str) -> Box:
    """The dropbox of a queue, or the `.incoming` of a topic: `queue/NAME`, `queue:NAME`, `NAME`, `topic/NAME`.

    Raises:
        RefusedError: no folder can have that name.
    """
    if not _ADDRESS.fullmatch(address):
        msg = f"{address[:100]!r} is no dropbox; expected {ADDRESSES[System.DROPBOX].expected.partition(', as')[0]}"
        raise RefusedError(msg)
    bare = address.removeprefix("/")
    if bare[:6] in ("topic/", "topic:"):
        name = bare[6:]
        return Box(str(root), (_TOPICS, *name.split("."), _TOPIC_INCOMING), f"topic:{name}")
    name = bare[6:] if bare[:6] in ("queue/", "queue:") else bare
    path = f"{root}/{name}"
    flat = os.path.isdir(f"{path}/target") and not os.path.isdir(f"{path}/{_INCOMING}")
    return Box(str(root), (name,) if flat else (name, _INCOMING), f"queue:{name}")


def subscription(topic: Box, name: str, client_id: str) -> Box:
    """A subscription of a topic."""
    names = (*topic.names[:-1], _SUBSCRIPTIONS, f"{escape(name)}.{escape(client_id)}")
    return Box(topic.root, names, topic.destination)


def subscriptions(topic: OpenBox) -> list[Box]:
    """All that a topic has now, in the order of their names.

    Raises:
        OSError: ELOOP where a link stands in the place of a subscription.
    """
    names = (*topic.box.names[:-1], _SUBSCRIPTIONS)
    try:
        folder = topic.root.reach(names)
    except FileNotFoundError:
        return []
    with folder:
        found = sorted(entry.name for entry in folder.entries() if _DELETED not in entry.name)
        ready = [name for name in found if _is_ready(folder, name)]
    return [Box(topic.box.root, (*names, name), topic.box.destination) for name in ready]


def _is_ready(subscriptions: Folder, name: str) -> bool:
    """Whether it is a folder with those in it that messages need: one that is about to be made or removed gets none."""
    try:
        with subscriptions.enter(name) as own:
            own.enter("target").close()
            own.enter("working").close()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
