"""Jar whose entries are found by searching the bytes of its directory.

`zipfile` makes an object of each of many thousand entries, and every process checks the configuration when it starts.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Jar"]

# PKWARE's APPNOTE.TXT: 4.3.16 end of the directory, 4.3.14 and 4.3.15 its 64-bit form, 4.3.12 directory, 4.3.7 entry.
_END, _END_64, _LOCATOR, _ENTRY = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2"
_END_BYTES, _LOCATOR_BYTES, _ENTRY_BYTES, _LOCAL_BYTES = 22, 20, 46, 30
_MOST_COMMENT_BYTES = 65_535
_STORED, _DEFLATED = 0, 8


class Jar:
    """Open jar, with the bytes of its directory in memory."""

    def __init__(self, path: Path) -> None:
        """Opens a jar.

        Raises:
            OSError: the file cannot be read.
            zipfile.BadZipFile: it is not a jar.
        """
        self._path = path
        self._file = path.open("rb")
        try:
            self._directory, self._begin = self._find_directory()
        except BaseException:
            self._file.close()
            raise

    def __contains__(self, name: str) -> bool:
        """Returns whether there is an entry of this name."""
        return self._position(name) is not None

    def read(self, name: str) -> bytes:
        """Returns the content of an entry.

        Raises:
            KeyError: there is none.
            OSError: the file cannot be read.
            zipfile.BadZipFile: its content is damaged, or encoded in a way that jars do not have.
        """
        if (at := self._position(name)) is None:
            raise KeyError(name)
        method, size, offset = struct.unpack_from("<10xH8xI18xI", self._directory, at)
        self._file.seek(self._begin + offset)
        local = self._file.read(_LOCAL_BYTES)
        try:
            named, extra = struct.unpack_from("<26xHH", local)
            self._file.seek(named + extra, 1)
            content = self._file.read(size)
            if method == _STORED:
                return content
            if method == _DEFLATED:
                return zlib.decompress(content, -zlib.MAX_WBITS)
        except (struct.error, zlib.error) as error:
            raise zipfile.BadZipFile(f"{self._path}: {name} is damaged") from error
        raise zipfile.BadZipFile(f"{self._path}: {name} is compressed by method {method}")

    def names(self) -> list[str]:
        """Returns the names of all entries."""
        with zipfile.ZipFile(self._path) as file:
            return file.namelist()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _position(self, name: str) -> int | None:
        """Returns the place of an entry in the directory; None if it has none."""
        wanted, at = name.encode(), 0
        while (at := self._directory.find(wanted, at)) >= 0:
            begin = at - _ENTRY_BYTES
            if begin >= 0 and self._directory.startswith(_ENTRY, begin):
                (length,) = struct.unpack_from("<28xH", self._directory, begin)
                if length == len(wanted):
                    return begin
            at += 1
        return None

    def _find_directory(self) -> tuple[bytes, int]:
        """Returns the bytes of the directory, and the place in the file from which its offsets count."""
        length = self._file.seek(0, 2)
        tail_bytes = min(length, _MOST_COMMENT_BYTES + _END_BYTES + _LOCATOR_BYTES)
        self._file.seek(length - tail_bytes)
        tail = self._file.read(tail_bytes)
        if (at := tail.rfind(_END)) < 0 or len(tail) - at < _END_BYTES:
            raise zipfile.BadZipFile(f"{self._path} is not a jar")
        end = length - tail_bytes + at
        size, offset = struct.unpack_from("<12xII", tail, at)
        if tail.startswith(_LOCATOR, max(at - _LOCATOR_BYTES, 0)):
            self._file.seek(struct.unpack_from("<8xQ", tail, at - _LOCATOR_BYTES)[0])
            record = self._file.read(56)
            if not record.startswith(_END_64):
                raise zipfile.BadZipFile(f"{self._path}: its directory is damaged")
            size, offset = struct.unpack_from("<40xQQ", record)
            end = offset + size
        begin = end - size - offset
        if begin < 0:
            raise zipfile.BadZipFile(f"{self._path}: its directory is damaged")
        self._file.seek(begin + offset)
        return self._file.read(size), begin
