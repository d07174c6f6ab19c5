"""Distribution of a topic's messages to all of its subscriptions, each exactly once, even if a process dies.

Producers put a file into `.incoming/target`; DropboxMQ's TopicDistributor or this module distributes it to the
subscriptions. Of all bridge processes, only the one that holds the lock of the slot in `.incoming/processing`
distributes at a time. A TopicDistributor may run beside it; each file goes to the one that takes it first.

    1. .incoming/target      ->  the slot                       the file is taken
    2. the slot              =>  working/jms-bridge of each subscription, as a link
    3. the slot              ->  .incoming/processed            the file counts as distributed
    4. working/jms-bridge    ->  target of each subscription    consumers see it

After a crash, a file that is still in the slot is distributed from step 2 on, and a link whose file is no longer in the
slot from step 4 on. It does not matter what consumers have done with their files meanwhile. No consumer looks into
`working`.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import time
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import NotConnectedError
from engine.connectors.dropbox.box import OpenBox, Slot, subscriptions
from engine.connectors.dropbox.pending_files import ranked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.connectors.dropbox.box import Box
    from engine.connectors.dropbox.folder import Folder

__all__ = ["distribute", "distribute_now"]

_OWN = "jms-bridge"
_BATCH = 200
_WAIT_SECONDS = 10.0
_AGAIN_SECONDS = 0.01
_NO_LINKS = (errno.EPERM, errno.EXDEV, errno.ENOTSUP, errno.EMLINK)
_log = structlog.get_logger(__name__)


def distribute(topic: OpenBox) -> bool:
    """Distributes all waiting files of a topic; returns False if another process is distributing at the moment.

    Raises:
        OSError: the folders cannot be used.
    """
    slot = Slot.only(topic, _OWN)
    if slot is None:
        return False
    try:
        given = subscriptions(topic)
        _finish(topic, given, slot)
        target = topic.folder("target")
        names = [rank.filename for rank in ranked(target)]
        for start in range(0, len(names), _BATCH):
            # Taken in the order of their ranks, so that each subscription gets them in that order.
            taken = [name for name in names[start : start + _BATCH] if target.move(name, slot.folder)]
            _give(topic, given, slot, taken)
    finally:
        slot.close()
    return True


def distribute_now(topic: OpenBox) -> None:
    """Distributes all waiting files of a topic; if another process is distributing, first waits until it has finished.

    On return all files that waited at the time of the call are distributed, by this process or another.

    Raises:
        NotConnectedError: another process has not finished within `_WAIT_SECONDS`.
        OSError: the folders cannot be used.
    """
    deadline = time.monotonic() + _WAIT_SECONDS
    while not distribute(topic):
        if time.monotonic() > deadline:
            where = topic.folder("processing").path
            msg = f"another process has distributed {topic.box.destination} for {_WAIT_SECONDS:.0f} s; see {where}"
            raise NotConnectedError(msg)
        time.sleep(_AGAIN_SECONDS)


def _finish(topic: OpenBox, given: Sequence[Box], slot: Slot) -> None:
    """Completes the distribution that a dead process had begun."""
    taken = slot.names()
    for box in _opened(topic, given):
        if box.folder("working").has(_OWN):
            with box.folder("working").enter(_OWN) as staged:
                _promote(box, staged, [rank.filename for rank in ranked(staged) if rank.filename not in taken])
    _give(topic, given, slot, taken)


def _give(topic: OpenBox, given: Sequence[Box], slot: Slot, taken: Sequence[str]) -> None:
    """Does steps 2 to 4 for files in the slot; each step is on disk before the next one begins."""
    names = [name for name in taken if _is_file(topic, slot, name)]
    if not names:
        return
    for box in _opened(topic, given):
        with box.folder("working").make(_OWN) as staged:
            for name in names:
                _link(slot.folder, name, staged, box.folder("working"))
            staged.sync()
    processed = topic.folder("processed")
    for name in names:
        slot.folder.move(name, processed)
    processed.sync()
    slot.folder.sync()
    for box in _opened(topic, given):
        with box.folder("working").enter(_OWN) as staged:
            _promote(box, staged, names)


def _opened(topic: OpenBox, given: Sequence[Box]) -> Iterator[OpenBox]:
    """Yields the subscriptions one after the other, each open only in its turn.

    A topic may have more subscriptions than the process has descriptors.
    """
    for box in given:
        with OpenBox(topic.root, box) as opened:
            yield opened


def _promote(box: OpenBox, staged: Folder, names: Sequence[str]) -> None:
    target = box.folder("target")
    for name in names:
        staged.move(name, target)
    if names:
        target.sync()
        staged.sync()


def _is_file(topic: OpenBox, slot: Slot, name: str) -> bool:
    """Returns True if a file in the slot is a regular file; otherwise moves it to `error`.

    The file was a regular one when it was listed, but another user may have replaced it since.
    """
    if stat.S_ISREG(slot.folder.status(name).st_mode):
        return True
    _log.warning("an entry that replaced a file is moved to error", file=f"{slot.folder.path}/{name}")
    slot.folder.move(name, topic.folder("error"))
    return False


def _link(slot: Folder, name: str, staged: Folder, working: Folder) -> None:
    """Links a file into the folder of a subscription; copies it if the file system does not support hard links."""
    try:
        os.link(name, name, src_dir_fd=slot.handle, dst_dir_fd=staged.handle, follow_symlinks=False)
    except FileExistsError:
        # A dead process had made the link already.
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(slot, name, staged, working)


def _copy(slot: Folder, name: str, staged: Folder, working: Folder) -> None:
    partial = f"{_OWN}.copy"
    # A dead process may have left a partial copy. `O_EXCL` keeps the copy from being written to another user's file.
    working.remove(partial)
    with (
        open(slot.open_file(name, os.O_RDONLY), "rb") as origin,
        open(working.open_file(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as copy,
    ):
        shutil.copyfileobj(origin, copy)
        copy.flush()
        os.fsync(copy.fileno())
    working.move(partial, staged, name)
