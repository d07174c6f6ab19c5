"""Store of long names: names of messages that are too long for a file name.

A file name has at most 255 bytes. If the full name of a message is longer, it is stored as the content of a separate
file, `.long-names/MESSAGE-ID` below the root, and the message file is named with the part that fits
(`dropbox_name.fitted`). All dropboxes of a root share that folder, so that the correlation id of a request is found for
a reply in another dropbox.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.connectors.dropbox.file_name import LONG, decode
from engine.connectors.dropbox.folder import Disk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.dropbox.file_name import DropboxName
    from engine.connectors.dropbox.folder import Folder

__all__ = ["LongNames"]

_FOLDER = ".long-names"
_ID = re.compile(r"[0-9]{16,20}-[0-9]{21,40}")
"""Message ids as the sink creates them; no other text is used as a file name here."""
_MOST_BYTES = 16 * 1024 * 1024
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM)
"""Errors that concern one file or the folder and not the disk; the long name then counts as missing."""


class LongNames:
    """Long names of one root. Methods raise OSError for errors of the file system."""

    def __init__(self, root: Folder) -> None:
        self._root = root

    def write(self, names: Mapping[str, str], working: Folder, prefix: str) -> None:
        """Stores full names by message id; returns when they are on disk.

        The files are first written to the folder `working` under names that begin with `prefix`, then moved.
        """
        if not names:
            return
        try:
            with Disk(working) as disk:
                for message_id, name in names.items():
                    disk.write(prefix + message_id, name.encode())
                disk.sync()
            with self._root.make(_FOLDER) as folder:
                for message_id in names:
                    working.move(prefix + message_id, folder, message_id)
                folder.sync()
        except BaseException:
            for message_id in names:
                # The file may never have been created, or have been moved already.
                with suppress(OSError):
                    working.remove(prefix + message_id)
            raise

    def resolved(self, name: DropboxName) -> DropboxName | None:
        """Returns the full name of a message; None if its long name is missing.

        A reply, whose correlation id is the message id of a request with a long name, gets the request's correlation
        id.
        """
        whole = self._read(name.message_id) if LONG in name.properties else name
        request = self._read((whole and whole.correlation_id) or "")
        if whole is None or request is None or request.reply_to is None:
            return whole
        return replace(whole, correlation_id=request.correlation_id)

    def _read(self, message_id: str) -> DropboxName | None:
        """Returns the stored full name of a message; None if there is none, or the file is not a valid long name."""
        if not _ID.fullmatch(message_id):
            return None
        try:
            with self._root.enter(_FOLDER) as folder:
                handle = folder.open_file(message_id, os.O_RDONLY)
        except OSError as error:
            if error.errno not in _MISSING:
                raise
            return None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            return None
        with open(handle, "rb") as file:
            text = file.read(_MOST_BYTES)
        name = decode(text.decode("utf-8", "replace"))
        return name if name.message_id == message_id and not name.is_foreign else None
