"""Location and folders of a dropbox, the folder tree of one queue, topic or subscription.

    ROOT/NAME/incoming/                             a queue
    ROOT/NAME/                                      a queue of a DropboxMQ that is set up without `incoming`
    ROOT/topic-root/NAME/.incoming/                 a topic; dots in NAME are further folders
    ROOT/topic-root/NAME/.subscriptions/SUB.CLIENT/ a durable subscription of the topic

Each dropbox has the same seven folders. `routing` is for DropboxMQ's own router: the bridge creates it, but never uses
it. `docs/connectors/dropbox.md` describes the purpose of each folder. A process holds the files that it has taken in a
`Slot` of its own.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from engine.connectors.base import RefusedError
from engine.connectors.dropbox.file_name import escape
from engine.connectors.dropbox.settings import ADDRESSES
from engine.file_lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from engine.connectors.dropbox.folder import Folder

__all__ = ["LOCK", "Box", "OpenBox", "Slot", "examine", "locate", "subscription", "subscriptions"]

_ADDRESS = re.compile(ADDRESSES.pattern)
_FOLDERS = ("working", "target", "processing", "processed", "routing", "expired", "error")
_INCOMING = "incoming"
_TOPICS = "topic-root"
_TOPIC_INCOMING = ".incoming"
_SUBSCRIPTIONS = ".subscriptions"
_DELETED = ".deleted"
"""Text that DropboxMQ inserts into the name of a dropbox or subscription that was deleted but is kept on disk."""
_READ_LOCK = "read-lock"
_GLOBAL_READ_LOCK = "global-read-lock"
LOCK = ".lock"
"""Name of the file in a slot that carries the lock."""


@dataclass(frozen=True, slots=True)
class Box:
    """Location of the dropbox for the queue or topic `destination`."""

    root: str
    names: tuple[str, ...]
    """Names of the folders from the root to the folder that has the seven folders."""
    destination: str
    """`queue:NAME` or `topic:NAME`."""

    @property
    def path(self) -> str:
        """Path of the folder that has the seven folders."""
        return "/".join((self.root, *self.names))

    @property
    def is_topic(self) -> bool:
        """True if the dropbox belongs to a topic or to a subscription of one."""
        return self.destination.startswith("topic:")


class OpenBox:
    """Dropbox whose folders are held open by descriptor; the caller closes it.

    All methods except `remove` raise OSError for errors of the file system.
    """

    def __init__(self, root: Folder, box: Box) -> None:
        """Opens the dropbox and creates missing folders. `root` has to stay open for as long as the dropbox."""
        self.box = box
        self.root = root
        self._open: dict[str, Folder] = {}
        try:
            os.lstat(f"{box.path}/{max(_FOLDERS, key=len)}")
        except OSError as error:
            # Checked before any folder is created. Other errors show up when the folders are opened below.
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
        """Returns one of the seven folders, which stays open from its first use on."""
        folder = self._open.get(name)
        if folder is None:
            folder = self._open[name] = self._own.enter(name)
        return folder

    def check(self) -> None:
        """Raises OSError with ESTALE if the path of one of the open folders no longer leads to that folder."""
        for folder in (self.root, self._own, *self._open.values()):
            folder.check()

    @property
    def is_read_locked(self) -> bool:
        """True if the file that stops consumers exists: `read-lock` for this dropbox or `global-read-lock` for all.

        Administrators of DropboxMQ create these files.
        """
        return self._own.has(_READ_LOCK) or self.root.has(_GLOBAL_READ_LOCK)

    def remove(self) -> None:
        """Deletes the whole queue or subscription with all its files. Never raises."""
        names = self.box.names
        *way, last = names[:-1] if names[-1] == _INCOMING else names
        with suppress(OSError), self.root.reach([".", *way]) as parent:
            shutil.rmtree(last, ignore_errors=True, dir_fd=parent.handle)

    def close(self) -> None:
        """Closes the descriptors of the folders."""
        for folder in (self._own, *self._open.values()):
            folder.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def examine(root: Folder, box: Box) -> None:
    """Checks, without creating anything, that the existing folders of a dropbox can be opened.

    Raises:
        OSError: a folder cannot be opened, for example because a link stands in its place.
    """
    with suppress(FileNotFoundError), root.reach(box.names) as own:
        for name in _FOLDERS:
            with suppress(FileNotFoundError):
                own.enter(name).close()


def locate(root: Path, address: str) -> Box:
    """Returns the dropbox of an address: of a queue, or the `.incoming` of a topic.

    Addresses are `queue/NAME`, `queue:NAME`, `NAME`, `topic/NAME` and `topic:NAME`.

    Raises:
        RefusedError: the address is not valid as the name of a folder.
    """
    if not _ADDRESS.fullmatch(address):
        msg = f"{address[:100]!r} is not a dropbox; expected {ADDRESSES.expected.partition(', as')[0]}"
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
    """Returns the dropbox of the subscription `name` of `client_id` to a topic."""
    names = (*topic.names[:-1], _SUBSCRIPTIONS, f"{escape(name)}.{escape(client_id)}")
    return Box(topic.root, names, topic.destination)


def subscriptions(topic: OpenBox) -> list[Box]:
    """Returns the dropboxes of all current subscriptions of a topic, ordered by name.

    Raises:
        OSError: ELOOP if a link stands in the place of a subscription.
    """
    names = (*topic.box.names[:-1], _SUBSCRIPTIONS)
    try:
        folder = topic.root.reach(names)
    except FileNotFoundError:
        return []
    with folder:
        valid = sorted(entry.name for entry in folder.entries() if _DELETED not in entry.name)
        ready = [name for name in valid if _is_ready(folder, name)]
    return [Box(topic.box.root, (*names, name), topic.box.destination) for name in ready]


def _is_ready(subscriptions: Folder, name: str) -> bool:
    """Returns True if a subscription has the folders `target` and `working`, which distribution needs.

    A subscription that is being created or removed lacks one of them, and gets no messages.
    """
    try:
        with subscriptions.enter(name) as own:
            own.enter("target").close()
            own.enter("working").close()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


class Slot:
    """Folder inside `processing` that belongs to one process and holds the files it has taken and not finished.

    The process holds a lock (`flock`) on a file in the slot for as long as it runs; the system releases the lock when
    the process dies. So a process that gets the lock of an existing slot knows that its owner is dead, and may take
    over the files. This needs no clock, and never touches the files of a running consumer.

    All methods except `close` raise OSError for errors of the file system.
    """

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
