"""How a source learns of new files: Linux tells (inotify), or it waits for the next look.

The bridge asks the kernel itself. What it has to tell waits in a queue of the kernel's that is bounded, while a library
with a thread of its own collects names for as long as the source is held up, and without end. Nothing depends on being
told: folders are looked through now and then in any case.
"""

from __future__ import annotations

import ctypes
import os
import select
import time
from typing import TYPE_CHECKING, Protocol

import structlog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.dropbox.folder import Folder

__all__ = ["Inotify", "Sleep", "Watcher", "watcher"]

_CREATE = 0x00000100
_MOVED_TO = 0x00000080
_ONLY_FOLDERS = 0x01000000
_READ_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)


class Watcher(Protocol):
    """Waits for files to come into folders."""

    def wait(self, seconds: float) -> bool:
        """Whether files may have come; returns at once if they had since the last call."""

    def close(self) -> None:
        """Ends it."""


class Sleep:
    """Knows nothing and waits."""

    def wait(self, seconds: float) -> bool:
        """False, after that time."""
        time.sleep(max(seconds, 0))
        return False

    def close(self) -> None:
        """Nothing to end."""


class Inotify:
    """Linux's own notice of what happens in folders; other machines' files on shared file systems are not noticed."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        """OSError where the system does not offer it, or not to one more."""
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise _error()
        self._poll = select.poll()
        self._poll.register(self._handle, select.POLLIN)
        for folder in folders:
            # By descriptor: the path may lead elsewhere by now.
            path = f"/proc/self/fd/{folder.handle}".encode()
            if libc.inotify_add_watch(self._handle, path, _CREATE | _MOVED_TO | _ONLY_FOLDERS) < 0:
                error = _error()
                self.close()
                raise error

    def wait(self, seconds: float) -> bool:
        """Whether something came; that a queue of events has run over counts, too."""
        if not self._poll.poll(max(seconds, 0) * 1000):
            return False
        try:
            while len(os.read(self._handle, _READ_BYTES)) > _READ_BYTES // 2:
                pass
        except BlockingIOError:
            pass
        return True

    def close(self) -> None:
        """Gives the handle back."""
        os.close(self._handle)


def watcher(folders: Sequence[Folder], *, inotify: bool) -> Watcher:
    """What the configuration asks for, or the system has."""
    if inotify:
        try:
            return Inotify(folders)
        except OSError as error:
            _log.warning("new files are noticed only at scan-interval", why=str(error))
    return Sleep()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
