"""Open folders of dropboxes, so that no symbolic link can lead the bridge out of one, and new files in them.

Other users may write into a dropbox, and can put a link in the place of a folder at any moment. So each folder below
the root is opened once, from its parent and never through a link (`openat` with `O_NOFOLLOW`). All later operations on
files use the descriptor and one file name, which is never followed either. Paths serve only for error messages, and for
`Folder.check`, which checks that a path still leads to the open folder.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import stat
import time
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Self

import structlog

from engine.connectors.base import NotConnectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["FileBatch", "FileWatcher", "Folder", "open_root", "reason", "translated_errors"]

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FEW = 8
_FIRST_THAT_TELLS = (5, 8)
_CREATE, _MOVED_TO, _ONLY_FOLDERS = 0x00000100, 0x00000080, 0x01000000
_READ_BYTES = 64 * 1024
_log = structlog.get_logger(__name__)


class Folder:
    """Open folder; the caller closes it. Methods raise OSError with the full path as `filename`.

    The error is ELOOP if a link stands in the place of a folder, and ESTALE if the path of this folder no longer leads
    to it.
    """

    __slots__ = ("_identity", "handle", "path")

    def __init__(self, handle: int, path: str) -> None:
        """Takes over the descriptor `handle`."""
        self.handle = handle
        self.path = path
        self._identity = _identity(os.fstat(handle))

    @classmethod
    def open(cls, path: str) -> Folder:
        """Opens the folder at a path; the last part of the path must not be a link."""
        with _named(path):
            try:
                return cls(os.open(path, _FLAGS), path)
            except NotADirectoryError:
                _refuse_link(os.lstat(path), path)
                raise

    def enter(self, name: str) -> Folder:
        """Opens a folder inside this one."""
        path = f"{self.path}/{name}"
        with _named(path):
            try:
                return Folder(os.open(name, _FLAGS, dir_fd=self.handle), path)
            except NotADirectoryError:
                _refuse_link(self.status(name), path)
                raise

    def make(self, name: str) -> Folder:
        """Opens a folder inside this one; creates it and syncs its name to disk if it is missing."""
        with suppress(FileNotFoundError):
            return self.enter(name)
        with _named(f"{self.path}/{name}"), suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.handle)
        self.sync()
        return self.enter(name)

    def reach(self, names: Sequence[str], *, make: bool = False) -> Folder:
        """Opens the folder at the end of a path of at least one name; `make` creates missing folders on the way."""
        folder = self
        for name in names:
            try:
                inner = folder.make(name) if make else folder.enter(name)
            finally:
                if folder is not self:
                    folder.close()
            folder = inner
        return folder

    def close(self) -> None:
        """Closes the descriptor."""
        os.close(self.handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Raises OSError with ESTALE if the path now leads to another folder, or to none."""
        try:
            identity = _identity(os.lstat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            identity = None
        if identity != self._identity:
            reason = "the folder was moved, removed or replaced while the bridge used it"
            raise OSError(errno.ESTALE, reason, self.path)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Yields the directory entries in no particular order.

        The `path` of an entry is its bare name. The caller must pass `follow_symlinks=False` to the entries' methods.
        """
        with _named(self.path), os.scandir(self.handle) as entries:
            yield from entries

    def folders(self) -> list[str]:
        """Returns the sorted names of the folders in this one; links are not included."""
        return sorted(entry.name for entry in self.entries() if entry.is_dir(follow_symlinks=False))

    def has(self, name: str) -> bool:
        """Returns True if an entry of that name exists, even a link that leads nowhere."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def status(self, name: str) -> os.stat_result:
        """Returns the status of a file in the folder; of a link the status of the link itself."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError as error:
            error.filename = f"{self.path}/{name}"
            raise

    def open_file(self, name: str, flags: int) -> int:
        """Opens a file in the folder and returns its descriptor; never blocks on a pipe, and never follows a link."""
        with _named(f"{self.path}/{name}"):
            extra = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(name, flags | extra, 0o666, dir_fd=self.handle)

    def move(self, name: str, target: Folder, new_name: str | None = None) -> bool:
        """Moves a file to another folder, where it replaces a file of the same name.

        Returns False if the file is no longer there: of several processes that move a file at once, one succeeds.
        """
        try:
            os.rename(name, new_name or name, src_dir_fd=self.handle, dst_dir_fd=target.handle)
        except FileNotFoundError:
            # The file is also missing if its whole folder was removed, which is an error.
            self.check()
            target.check()
            return False
        except OSError as error:
            error.filename, error.filename2 = f"{self.path}/{name}", target.path
            raise
        return True

    def remove(self, name: str) -> bool:
        """Deletes a file; returns False if it is no longer there."""
        try:
            with _named(f"{self.path}/{name}"):
                os.unlink(name, dir_fd=self.handle)
        except FileNotFoundError:
            self.check()
            return False
        return True

    def sync(self) -> None:
        """Waits until the names of the files in the folder are on disk."""
        os.fsync(self.handle)


def open_root(path: str) -> Folder:
    """Opens the root of dropboxes; the caller closes it.

    Raises:
        NotConnectedError: the folder does not exist, is a link, or the bridge lacks rights in it.
    """
    try:
        root = Folder.open(path)
    except FileNotFoundError as error:
        raise NotConnectedError(f"there is no folder {path}; is its disk mounted?") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            msg = f"{path} is a link, which is not followed; set root to the folder that it leads to"
            raise NotConnectedError(msg) from error
        raise NotConnectedError(reason(error)) from error
    if not os.access(".", os.R_OK | os.W_OK | os.X_OK, dir_fd=root.handle):
        root.close()
        raise NotConnectedError(f"the bridge may not read and write {path}; give its user the rights")
    return root


@contextmanager
def translated_errors() -> Iterator[None]:
    """Turns OSError inside the block into NotConnectedError, since faults of a disk or of permissions may pass."""
    try:
        yield
    except OSError as error:
        raise NotConnectedError(reason(error)) from error


def reason(error: OSError) -> str:
    """Describes an error of the file system in one line for the operator, with the path concerned."""
    where = f": {os.fsdecode(error.filename)}" if error.filename is not None else ""
    return f"{error.strerror or error}{where}"


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Sets `path` as the `filename` of any OSError inside the block, in place of a bare file name."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _refuse_link(status: os.stat_result, path: str) -> None:
    """Raises OSError with ELOOP for a link, for which `O_DIRECTORY` with `O_NOFOLLOW` gives ENOTDIR (open(2))."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "a link is not followed, put a folder in its place", path)


class FileBatch:
    """Batch of new files in one folder, used as a context manager; the files stay open until the block ends.

    `fsync` costs a disk write for each file. For more than `_FEW` files it is cheaper to have the kernel write
    everything that it buffers for their file system, with `syncfs`: for 500 files this takes half of the time, and a
    third of the CPU time. `syncfs` also waits for data that other processes have written to that file system. It
    reports errors only since Linux 5.8; on older kernels, and where the call does not exist, each file is synced with
    `fsync`.

    Its methods raise OSError if the files cannot be written or synced.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._handles: list[int] = []

    def __enter__(self) -> FileBatch:
        # Opened before any write: a descriptor is notified only of write errors that happen after it was opened.
        self._handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._folder.handle)
        return self

    def __exit__(self, *_: object) -> None:
        for handle in (*self._handles, self._handle):
            os.close(handle)

    def write(self, name: str, body: bytes) -> None:
        """Creates a new file with this content in the folder."""
        handle = self._folder.open_file(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        self._handles.append(handle)
        left = memoryview(body)
        while left:
            left = left[os.write(handle, left) :]

    def sync(self) -> None:
        """Waits until all files, and their names in the folder, are on disk."""
        syncfs = _syncfs() if len(self._handles) > _FEW else None
        if syncfs is not None:
            syncfs(self._handle)
            return
        for handle in (*self._handles, self._handle):
            os.fsync(handle)


@cache
def _syncfs() -> Callable[[int], None] | None:
    libc = ctypes.CDLL(None, use_errno=True)
    version = re.match(r"([0-9]+)\.([0-9]+)", os.uname().release)
    if not hasattr(libc, "syncfs") or version is None or (int(version[1]), int(version[2])) < _FIRST_THAT_TELLS:
        return None

    def call(handle: int) -> None:
        if libc.syncfs(handle):
            raise _last_error()

    return call


class FileWatcher:
    """Waiter for new files in folders, by Linux's inotify if it is wanted and available, else by a sleep.

    Events wait in a bounded queue of the kernel, while a library with a thread of its own collects names without bound
    for as long as the source is blocked. inotify does not notice files that other machines create on shared file
    systems. Correctness does not depend on it: folders are scanned regularly in any case.
    """

    def __init__(self, folders: Sequence[Folder], *, inotify: bool) -> None:
        """Starts to watch the folders. Logs a warning if `inotify` is not available."""
        self._handle: int | None = None
        self._poll = select.poll()
        if inotify:
            try:
                self._handle = _inotify(folders)
                self._poll.register(self._handle, select.POLLIN)
            except OSError as error:
                _log.warning("new files are noticed only at scan-interval", why=str(error))

    def wait(self, seconds: float) -> bool:
        """Waits until there may be new files, and returns True; returns False if the time is over.

        Returns at once if files have come since the last call. An overflow of the kernel's queue counts as new files.
        """
        seconds = max(seconds, 0)
        if self._handle is None:
            time.sleep(seconds)
            return False
        if not self._poll.poll(seconds * 1000):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._handle, _READ_BYTES)) > _READ_BYTES // 2:
                pass
        return True

    def close(self) -> None:
        """Ends the watch."""
        if self._handle is not None:
            os.close(self._handle)


def _inotify(folders: Sequence[Folder]) -> int:
    """Returns a descriptor that tells of files created in the folders, or moved to them.

    Raises:
        OSError: the system has no inotify, or a limit on its use is reached.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        raise OSError("this system has no inotify")
    handle: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if handle < 0:
        raise _last_error()
    for folder in folders:
        # The descriptor names the open folder; its original path may lead elsewhere by now.
        path = f"/proc/self/fd/{folder.handle}".encode()
        if libc.inotify_add_watch(handle, path, _CREATE | _MOVED_TO | _ONLY_FOLDERS) < 0:
            error = _last_error()
            os.close(handle)
            raise error
    return handle


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
