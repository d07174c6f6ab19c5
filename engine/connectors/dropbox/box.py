"""The folders of one dropbox.

    ROOT/NAME/incoming/                             a queue
    ROOT/NAME/                                      a queue of a DropboxMQ that is set up without `incoming`
    ROOT/topic-root/NAME/.incoming/                 a topic; dots in NAME are further folders
    ROOT/topic-root/NAME/.subscriptions/SUB.CLIENT/ a durable subscription of it

Each has the same seven folders in it. `routing` is for DropboxMQ's own router: it is made and left alone.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.codecs.dropbox_name import escape
from engine.connectors.base import RefusedError
from engine.connectors.dropbox.files import create
from routes.targets import ADDRESSES, System

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Box", "container", "locate", "subscription", "subscriptions"]

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
    """One dropbox, for the queue or topic `destination`; OSError where its folders cannot be used."""

    root: str
    path: str
    """The folder with the seven folders."""
    destination: str
    """`queue:NAME` or `topic:NAME`."""

    def folder(self, name: str) -> str:
        """One of the seven."""
        return f"{self.path}/{name}"

    def create(self) -> None:
        """All seven are there."""
        for name in _FOLDERS:
            create(self.root, self.folder(name))

    @property
    def is_topic(self) -> bool:
        """Whether it is a topic or a subscription of one."""
        return self.destination.startswith("topic:")

    @property
    def is_read_locked(self) -> bool:
        """Whether an administrator of DropboxMQ has put up the file that stops consumers, for this dropbox or all."""
        return os.path.exists(f"{self.path}/{_READ_LOCK}") or os.path.exists(f"{self.root}/{_GLOBAL_READ_LOCK}")


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
        return Box(str(root), f"{root}/{_TOPICS}/{name.replace('.', '/')}/{_TOPIC_INCOMING}", f"topic:{name}")
    name = bare[6:] if bare[:6] in ("queue/", "queue:") else bare
    path = f"{root}/{name}"
    flat = os.path.isdir(f"{path}/target") and not os.path.isdir(f"{path}/{_INCOMING}")
    return Box(str(root), path if flat else f"{path}/{_INCOMING}", f"queue:{name}")


def container(queue: Box) -> str:
    """The folder of a queue with all that is in it."""
    return os.path.dirname(queue.path) if queue.path.endswith(f"/{_INCOMING}") else queue.path


def subscription(topic: Box, name: str, client_id: str) -> Box:
    """A subscription of a topic."""
    folder = f"{os.path.dirname(topic.path)}/{_SUBSCRIPTIONS}/{escape(name)}.{escape(client_id)}"
    return Box(topic.root, folder, topic.destination)


def subscriptions(topic: Box) -> list[Box]:
    """All that a topic has now, in the order of their names."""
    folder = f"{os.path.dirname(topic.path)}/{_SUBSCRIPTIONS}"
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and _DELETED not in entry.name)
    except FileNotFoundError:
        return []
    boxes = [Box(topic.root, f"{folder}/{name}", topic.destination) for name in names]
    # One that is about to be made, or about to be removed, has no messages to get.
    return [box for box in boxes if os.path.isdir(box.folder("target")) and os.path.isdir(box.folder("working"))]
