"""Gives each message of a topic to all of its subscriptions, once, also through crashes.

Producers put a file into `.incoming/target`; what copies it to the subscriptions is DropboxMQ's TopicDistributor, or
this. One process of the bridges does it at a time, whoever has the lock of its slot in `.incoming/processing`; a
TopicDistributor beside it gets the files that it is first to take.

    1. .incoming/target      ->  the slot                       the file is taken
    2. the slot              =>  working/jms-bridge of each subscription, as a link
    3. the slot              ->  .incoming/processed            from here on it is given
    4. working/jms-bridge    ->  target of each subscription    consumers see it

After a crash a file that is still in the slot is given from step 2 on, and a link whose file is no longer there from
step 4 on. What consumers have done with theirs meanwhile does not matter. No consumer looks into `working`.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.dropbox.box import subscriptions
from engine.connectors.dropbox.files import create, move, sync
from engine.connectors.dropbox.slot import Slot
from engine.connectors.dropbox.waiting import ranked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.dropbox.box import Box

__all__ = ["distribute", "distribute_now"]

_OWN = "jms-bridge"
_BATCH = 200
_PATIENCE_SECONDS = 10.0
_AGAIN_SECONDS = 0.01
_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK)


def distribute(topic: Box) -> bool:
    """Gives away all that waits in a topic; False if another process is about to. OSError is the file system's."""
    slot = Slot.only(topic, _OWN)
    if slot is None:
        return False
    try:
        given = subscriptions(topic)
        _finish(topic, given, slot)
        names = [rank.filename for rank in ranked(topic.folder("target"))]
        for start in range(0, len(names), _BATCH):
            # In the order of their ranks, which each subscription then has as well.
            taken = [name for name in names[start : start + _BATCH] if move(name, topic.folder("target"), slot.path)]
            _give(topic, given, slot, taken)
    finally:
        slot.close()
    return True


def distribute_now(topic: Box) -> None:
    """The same, and returns only when what was there is given, whoever did it.

    Raises:
        NotConnectedError: another process does not come to an end.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not distribute(topic):
        if time.monotonic() > deadline:
            where = topic.folder("processing")
            msg = f"another process has distributed {topic.destination} for {_PATIENCE_SECONDS:.0f} s; see {where}"
            raise NotConnectedError(msg)
        time.sleep(_AGAIN_SECONDS)


def _finish(topic: Box, given: Sequence[Box], slot: Slot) -> None:
    """What a process that has died had begun."""
    taken = slot.names()
    for box in given:
        staged = _staged(box)
        if os.path.isdir(staged):
            _promote(box, [rank.filename for rank in ranked(staged) if rank.filename not in taken])
    if taken:
        _give(topic, given, slot, taken)


def _give(topic: Box, given: Sequence[Box], slot: Slot, names: Sequence[str]) -> None:
    """Steps 2 to 4 for files in the slot; each step is on disk before the next one begins."""
    if not names:
        return
    for box in given:
        create(box.root, _staged(box))
        for name in names:
            _link(f"{slot.path}/{name}", f"{_staged(box)}/{name}")
        sync(_staged(box))
    for name in names:
        move(name, slot.path, topic.folder("processed"))
    sync(topic.folder("processed"), slot.path)
    for box in given:
        _promote(box, names)


def _promote(box: Box, names: Sequence[str]) -> None:
    for name in names:
        move(name, _staged(box), box.folder("target"))
    if names:
        sync(box.folder("target"), _staged(box))


def _staged(box: Box) -> str:
    return f"{box.folder('working')}/{_OWN}"


def _link(origin: str, target: str) -> None:
    """Another name for the same file; a copy where the file system has no links."""
    try:
        os.link(origin, target)
    except FileExistsError:
        # A process that has died had come so far.
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        partial = f"{os.path.dirname(target)}.copy"
        shutil.copyfile(origin, partial)
        with open(partial, "rb") as copy:
            os.fsync(copy.fileno())
        os.rename(partial, target)
