"""What the connector does with files, and the file system's errors as errors of a connection."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["create", "move", "remove", "require_folder", "sync", "told"]


@contextmanager
def told() -> Iterator[None]:
    """OSError inside becomes NotConnectedError: what is wrong with a disk or its permissions may pass."""
    try:
        yield
    except OSError as error:
        raise NotConnectedError(_reason(error)) from error


def move(name: str, origin: str, target: str) -> bool:
    """Moves a file to another folder, where it takes the place of one of the same name.

    False if it is not there any more, which is how everybody but one finds out that somebody else has taken it.
    OSError where it is one of the folders that is not there.
    """
    try:
        os.rename(f"{origin}/{name}", f"{target}/{name}")
    except FileNotFoundError:
        if os.path.isdir(origin) and os.path.isdir(target):
            return False
        raise
    return True


def remove(name: str, folder: str) -> bool:
    """Deletes a file; False if it is not there any more, OSError where the folder is not."""
    try:
        os.unlink(f"{folder}/{name}")
    except FileNotFoundError:
        if os.path.isdir(folder):
            return False
        raise
    return True


def sync(*folders: str) -> None:
    """Returns when the names in these folders are on disk."""
    for folder in folders:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def create(root: str, path: str) -> None:
    """Makes a folder below the root with all between them; never the root itself, which may be an unmounted disk."""
    missing = []
    while path != root and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync(os.path.dirname(folder))


def require_folder(root: str) -> None:
    """NotConnectedError where there is no such folder, or no right to work in it."""
    if not os.path.isdir(root):
        raise NotConnectedError(f"there is no folder {root}; is its disk mounted?")
    if not os.access(root, os.R_OK | os.W_OK | os.X_OK):
        raise NotConnectedError(f"the bridge may not read and write {root}; give its user the rights")


def _reason(error: OSError) -> str:
    where = f": {os.fsdecode(error.filename)}" if error.filename is not None else ""
    return f"{error.strerror or error}{where}"
