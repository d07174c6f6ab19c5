"""Folders held open by descriptor, so that no link can lead the bridge out of a dropbox.

Others may write into a dropbox: they can put a link in the place of a folder at any moment. So each folder below the
root is opened once, from its parent and never through a link (`openat` with `O_NOFOLLOW`); from then on all that is
done with files names the descriptor and one file name, which is never followed either. Paths serve for messages, and
for `Folder.check`, which finds out whether a path still leads to the folder that is open.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from engine.connectors.base import NotConnectedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Folder", "open_root", "reason", "told"]

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Folder:
    """One open folder; to be closed. Methods raise the file system's OSError, with the whole path as `filename`.

    OSError is ELOOP where a link stands in the place of a folder, and ESTALE where a folder is not the one that was
    opened any more.
    """

    __slots__ = ("_identity", "handle", "path")

    def __init__(self, handle: int, path: str) -> None:
        """Takes over the descriptor `handle`."""
        self.handle = handle
        self.path = path
        self._identity = _identity(os.fstat(handle))

    @classmethod
    def open(cls, path: str) -> Folder:
        """The folder at a path whose last part is no link."""
        with _named(path):
            try:
                return cls(os.open(path, _FLAGS), path)
            except NotADirectoryError:
                _refuse_link(os.lstat(path), path)
                raise

    def enter(self, name: str) -> Folder:
        """A folder inside it."""
        path = f"{self.path}/{name}"
        with _named(path):
            try:
                return Folder(os.open(name, _FLAGS, dir_fd=self.handle), path)
            except NotADirectoryError:
                _refuse_link(self.status(name), path)
                raise

    def make(self, name: str) -> Folder:
        """A folder inside it, which is made and brought to disk where it is missing."""
        with suppress(FileNotFoundError):
            return self.enter(name)
        with _named(f"{self.path}/{name}"), suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.handle)
        self.sync()
        return self.enter(name)

    def reach(self, names: Sequence[str], *, make: bool = False) -> Folder:
        """The folder at the end of a way through several, at least one; `make` makes those that are missing."""
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
        """Gives the descriptor back."""
        os.close(self.handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self) -> None:
        """Raises ESTALE where its path leads to another folder by now, or to none."""
        try:
            found = _identity(os.lstat(self.path))
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found != self._identity:
            told = "the folder was moved, removed or replaced while the bridge used it"
            raise OSError(errno.ESTALE, told, self.path)

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """All that is in it, in no order; their `path` is the name alone, and links are not to be followed."""
        with _named(self.path), os.scandir(self.handle) as found:
            yield from found

    def folders(self) -> list[str]:
        """The folders in it by name, in order; links are none."""
        return sorted(entry.name for entry in self.entries() if entry.is_dir(follow_symlinks=False))

    def has(self, name: str) -> bool:
        """Whether something of that name is in it, a link that leads nowhere included."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def status(self, name: str) -> os.stat_result:
        """What the system says of a file in it, or of the link itself."""
        try:
            return os.stat(name, dir_fd=self.handle, follow_symlinks=False)
        except OSError as error:
            error.filename = f"{self.path}/{name}"
            raise

    def open_file(self, name: str, flags: int, mode: int = 0o666) -> int:
        """The descriptor of a file in it; never waits for the other side of a pipe."""
        with _named(f"{self.path}/{name}"):
            extra = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(name, flags | extra, mode, dir_fd=self.handle)

    def move(self, name: str, target: Folder, new_name: str | None = None) -> bool:
        """Moves a file to another folder, where it takes the place of one of the same name.

        False if it is not there any more: of all that try to take a file, one succeeds.
        """
        try:
            os.rename(name, new_name or name, src_dir_fd=self.handle, dst_dir_fd=target.handle)
        except FileNotFoundError:
            # A folder that was removed has no files either.
            self.check()
            target.check()
            return False
        except OSError as error:
            error.filename, error.filename2 = f"{self.path}/{name}", target.path
            raise
        return True

    def remove(self, name: str) -> bool:
        """Deletes a file; False if it is not there any more."""
        try:
            with _named(f"{self.path}/{name}"):
                os.unlink(name, dir_fd=self.handle)
        except FileNotFoundError:
            self.check()
            return False
        return True

    def sync(self) -> None:
        """Returns when the names in it are on disk."""
        os.fsync(self.handle)


def open_root(path: str) -> Folder:
    """The root of dropboxes, to be closed.

    Raises:
        NotConnectedError: there is no such folder, it is a link, or the bridge may not work in it.
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
def told() -> Iterator[None]:
    """OSError inside becomes NotConnectedError: what is wrong with a disk or its permissions may pass."""
    try:
        yield
    except OSError as error:
        raise NotConnectedError(reason(error)) from error


def reason(error: OSError) -> str:
    """An error of the file system in one line for users, with the path that it is about."""
    where = f": {os.fsdecode(error.filename)}" if error.filename is not None else ""
    return f"{error.strerror or error}{where}"


@contextmanager
def _named(path: str) -> Iterator[None]:
    """OSError inside names that path, and not only a name in a folder."""
    try:
        yield
    except OSError as error:
        error.filename = path
        raise


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _refuse_link(status: os.stat_result, path: str) -> None:
    """Raises ELOOP for a link; `O_DIRECTORY` with `O_NOFOLLOW` says ENOTDIR (open(2))."""
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "a link is not followed, put a folder in its place", path)
