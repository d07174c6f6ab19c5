"""Creation of folders and files that only the bridge's own user may read: they hold messages and secret settings."""

from __future__ import annotations

import os
import tempfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["UMASK", "create_file", "make_folder", "nameless_file"]

_FOLDER_MODE = 0o700
UMASK = 0o077
"""Umask of the programs that the bridge starts: only its user may read the files that they make."""


def make_folder(folder: Path) -> None:
    """Makes a folder and its missing parents with mode 0700. An existing folder keeps its mode.

    Raises:
        OSError: the folder cannot be made, or a file has its name.
    """
    try:
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def create_file(path: Path) -> IO[str]:
    """Creates a text file with mode 0600 and opens it for writing; FileExistsError if the file exists."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8")


def nameless_file(content: bytes) -> IO[bytes]:
    """A file without a name that holds `content`, for a process that inherits its descriptor.

    Other processes cannot open it by a path, and it is gone when the last process has closed it, however that one ends.
    """
    file = _without_name()
    file.write(content)
    file.seek(0)
    return file


def _without_name() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("jms-bridge"), "w+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
