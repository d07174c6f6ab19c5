"""Ordered list of the files that wait in a folder."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

from engine.connectors.dropbox.file_name import Rank, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from engine.connectors.dropbox.folder import Folder

__all__ = ["UNFINISHED", "PendingFiles", "ranked"]

_MOST = 100_000
_SHARE = 0.1
"""Maximum share of the time that scanning the folder may take while files wait."""
UNFINISHED = ".nfs"
"""Prefix of the names that NFS gives to files which are deleted while they are open."""


def ranked(folder: Folder, most: int = _MOST) -> list[Rank]:
    """Returns the ranks of the regular files of a folder in order, at most the first `most`.

    Raises:
        OSError: the folder cannot be read.
    """
    return heapq.nsmallest(most, _ranks(folder))


class PendingFiles:
    """List of the waiting files of one folder, filled by scanning the folder once for many files.

    A scan for each file would take longer the more files there are. Files that appear after a scan are found by the
    next one, whatever their priority. While others wait, the next scan follows after the interval, or later if scanning
    takes long.
    """

    def __init__(self, folder: Folder, interval_seconds: float, may_look: Callable[[], bool]) -> None:
        """Creates an empty list.

        `may_look` is called before each scan, and may itself move files into the folder; while it returns False, no
        file is found.
        """
        self._folder = folder
        self._may_look = may_look
        self._interval_seconds = interval_seconds
        self._ranks: list[Rank] = []
        self._look_at = 0.0
        self._hinted = True

    @property
    def due_seconds(self) -> float:
        """Seconds from now until the next scan."""
        return max(self._look_at - time.monotonic(), 0.0)

    def hint(self) -> None:
        """Notes that there may be new files: if no known file waits, the next scan does not wait for the interval."""
        self._hinted = True

    def next(self, passed_over: Container[str]) -> str | None:
        """Returns the name of the next file that is not in `passed_over`; None if no file is known to wait.

        Another consumer may have taken the file since the scan.

        Raises:
            OSError: the folder cannot be read.
        """
        now = time.monotonic()
        if now >= self._look_at or (self._hinted and not self._ranks):
            self._look(now)
        while self._ranks:
            filename = self._ranks.pop().filename
            if filename not in passed_over:
                return filename
        return None

    def _look(self, now: float) -> None:
        self._hinted = False
        self._ranks = self._ordered() if self._may_look() else []
        self._ranks.reverse()
        # More files often follow: if the scan found any, the next one comes as soon as these are taken.
        self._hinted = bool(self._ranks)
        took = time.monotonic() - now
        self._look_at = now + max(self._interval_seconds, took / _SHARE)

    def _ordered(self) -> list[Rank]:
        """Returns the ranks of the files that are there when the scan begins; later files are left to the next scan.

        Of two files that appear one after the other during a scan, a file system may list the second and not the first.
        So the folder is listed twice: the second list has the first file as well.
        """
        if not (ranks := ranked(self._folder)):
            return []
        names = {each.filename for each in ranks}
        return [each for each in ranked(self._folder) if each.filename in names or each <= ranks[-1]]


def _ranks(folder: Folder) -> Iterator[Rank]:
    for entry in folder.entries():
        try:
            # Only regular files: a link may lead out of the dropbox, and reading a pipe may never end.
            if entry.is_file(follow_symlinks=False) and not entry.name.startswith(UNFINISHED):
                yield rank(entry.name, lambda entry=entry: entry.stat(follow_symlinks=False).st_mtime)  # type: ignore[misc]
        except FileNotFoundError:
            # Another consumer has taken it meanwhile.
            continue
