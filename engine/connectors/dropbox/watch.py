"""Notification of new files, by Linux's inotify, or by a sleep until the next scan.

The bridge calls the kernel's interface directly. Events wait in a bounded queue of the kernel, while a library with a
thread of its own would collect names without bound for as long as the source is blocked. Correctness does not depend on
notification: folders are scanned regularly in any case.
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
    """Waiter for new files in folders."""

    def wait(self, seconds: float) -> bool:
        """Waits until there may be new files, and returns True; returns False if the time is over.

        Returns at once if files have come since the last call.
        """

    def close(self) -> None:
        """Releases the resources of the watcher."""


class Sleep:
    """Watcher without notification, which only sleeps."""

    def wait(self, seconds: float) -> bool:
        """Sleeps for that time and returns False."""
        time.sleep(max(seconds, 0))
        return False

    def close(self) -> None:
        """Does nothing."""


class Inotify:
    """Watcher that uses inotify; it does not notice files that other machines create on shared file systems."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        """Starts to watch the folders.

        Raises:
            OSError: the system has no inotify, or a limit on its use is reached.
        """
        libc = ctypes.CDLL(None, use_errno=True)
        if not hasattr(libc, "inotify_init1"):
            raise OSError("this system has no inotify")
        self._handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise _error()
        self._poll = select.poll()
        self._poll.register(self._handle, select.POLLIN)
        for folder in folders:
            # The descriptor names the open folder; its original path may lead elsewhere by now.
            path = f"/proc/self/fd/{folder.handle}".encode()
            if libc.inotify_add_watch(self._handle, path, _CREATE | _MOVED_TO | _ONLY_FOLDERS) < 0:
                error = _error()
                self.close()
                raise error

    def wait(self, seconds: float) -> bool:
        """Waits for an event, of which an overflow of the event queue is one; returns True if one came in time."""
        if not self._poll.poll(max(seconds, 0) * 1000):
            return False
        try:
            while len(os.read(self._handle, _READ_BYTES)) > _READ_BYTES // 2:
                pass
        except BlockingIOError:
            pass
        return True

    def close(self) -> None:
        """Closes the inotify descriptor."""
        os.close(self._handle)


def watcher(folders: Sequence[Folder], *, inotify: bool) -> Watcher:
    """Returns an `Inotify` if it is configured and available, else a `Sleep`."""
    if inotify:
        try:
            return Inotify(folders)
        except OSError as error:
            _log.warning("new files are noticed only at scan-interval", why=str(error))
    return Sleep()


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
