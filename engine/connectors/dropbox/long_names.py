"""Long names: what messages carry that the names of their files cannot hold.

The name of a file has at most 255 bytes. Where the whole name of a message is longer, it is the content of a file of
its own, `.long-names/MESSAGE-ID` below the root, and the message file has the part that fits (`dropbox_name.fitted`).
All dropboxes share that folder, so that a reply finds the correlation id of a request in another dropbox.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from engine.codecs.dropbox_name import LONG, decode
from engine.connectors.dropbox.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.codecs.dropbox_name import DropboxName
    from engine.connectors.dropbox.folder import Folder

__all__ = ["LongNames"]

_FOLDER = ".long-names"
_ID = re.compile(r"[0-9]{16,20}-[0-9]{21,40}")
"""Message ids as the sink makes them; no other text becomes the name of a file here."""
_MOST_BYTES = 16 * 1024 * 1024
_MISSING = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM)
"""What is wrong with one file or the folder, and not with the disk."""


class LongNames:
    """The long names below one root. Methods raise the file system's OSError."""

    def __init__(self, root: Folder) -> None:
        self._root = root

    def write(self, names: Mapping[str, str], working: Folder, prefix: str) -> None:
        """Stores names by message id, and returns when they are on disk.

        They are written as new files of `working`, whose names begin with `prefix`.
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
                # It may never have been made, or have been moved.
                with suppress(OSError):
                    working.remove(prefix + message_id)
            raise

    def resolved(self, name: DropboxName) -> DropboxName | None:
        """The whole of a name, with the correlation id of the request where it is the name of a reply.

        None where its long name is missing.
        """
        whole = self._read(name.message_id) if LONG in name.properties else name
        request = self._read((whole and whole.correlation_id) or "")
        if whole is None or request is None or request.reply_to is None:
            return whole
        return replace(whole, correlation_id=request.correlation_id)

    def _read(self, message_id: str) -> DropboxName | None:
        """The whole name of a message; None where there is none, or nothing that can be one."""
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
