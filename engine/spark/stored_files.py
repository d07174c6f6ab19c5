"""Files of a checkpoint, on a local disk or on a file system of Hadoop: written in one step, and removed."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from engine.private import create_file, make_folder
from engine.spark.hadoop_path import HadoopPath

__all__ = ["Folder", "make_with", "numbered", "remove", "write"]

Folder = Path | HadoopPath
"""A file or folder at either place."""
_NUMBER = re.compile(r"[1-9]\d*")


def write(path: Folder, text: str) -> None:
    """Writes a file in one step; on return it survives a power cut."""
    if isinstance(path, HadoopPath):
        path.write_text(text)
        return
    draft = path.with_name(path.name + ".tmp")
    draft.unlink(missing_ok=True)
    with create_file(draft) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    for folder in (path.parent, path.parent.parent):
        handle = os.open(folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def make_with(folder: Folder, name: str, text: str) -> None:
    """Makes a folder with one file in one step; FileExistsError if there is such a folder on a file system of Hadoop.

    On a local disk only the caller, who holds a lock, makes folders there.
    """
    if isinstance(folder, HadoopPath):
        folder.make_with(name, text)
        return
    draft = folder.with_name(folder.name + ".tmp")
    make_folder(draft)
    write(draft / name, text)
    draft.rename(folder)


def numbered(folder: Folder) -> dict[int, Folder]:
    """Entries of a folder whose names are numbers, by number; empty if the folder is missing."""
    try:
        return {int(path.name): path for path in folder.iterdir() if path.name == "0" or _NUMBER.fullmatch(path.name)}
    except FileNotFoundError:
        return {}


def remove(folder: Folder) -> None:
    """Removes a file, or a folder with all that is in it."""
    if isinstance(folder, HadoopPath):
        folder.remove()
    elif folder.is_dir():
        shutil.rmtree(folder)
    else:
        folder.unlink()
