"""Folders and files that only the bridge's own user may read: they hold messages, and settings with secrets."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["UMASK", "create_file", "make_folder"]

_FOLDER_MODE = 0o700
UMASK = 0o077
"""Umask of the programs that the bridge starts: what they make is for its user alone."""


def make_folder(folder: Path) -> None:
    """Makes a folder, and those above it that are missing, with mode 0700. One that is there keeps its mode.

    Raises:
        OSError: it cannot be made, or something else has its name.
    """
    try:
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    except FileNotFoundError:
        make_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)


def create_file(path: Path) -> IO[str]:
    """A new text file with mode 0600, open for writing; FileExistsError where there is one."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8")
