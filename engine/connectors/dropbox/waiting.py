"""The files that wait in a folder, in the order in which they are to be taken."""

from __future__ import annotations

import heapq
import time
from typing import TYPE_CHECKING

from engine.codecs.dropbox_name import Rank, rank

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from engine.connectors.dropbox.folder import Folder

__all__ = ["Waiting", "ranked"]

_MOST = 100_000
_SHARE = 0.1
"""Of the time, that looking again may take while files are waiting."""
_UNFINISHED = ".nfs"
"""How NFS names files that are deleted while they are open."""


def ranked(folder: Folder, most: int = _MOST) -> list[Rank]:
    """The regular files of a folder, of which at most so many that go first. OSError if it cannot be read."""
    return heapq.nsmallest(most, _ranks(folder))


class Waiting:
    """One folder, looked through once for many files; not for each, which would take longer the more there are.

    Files that came since the last look have their turn after the next one, whatever their priority. While others wait,
    that comes after the interval, or later where looking takes long.
    """

    def __init__(self, folder: Folder, interval_seconds: float, may_look: Callable[[], bool]) -> None:
        """`may_look` is asked before each look, and may bring in files; while it says no, nothing is found."""
        self._folder = folder
        self._may_look = may_look
        self._interval_seconds = interval_seconds
        self._ranks: list[Rank] = []
        self._look_at = 0.0
        self._hinted = True

    @property
    def due_seconds(self) -> float:
        """When to look again, from now on."""
        return max(self._look_at - time.monotonic(), 0.0)

    def hint(self) -> None:
        """There may be new files: the next look does not wait for the interval if there is nothing else to do."""
        self._hinted = True

    def next(self, passed_over: Container[str]) -> str | None:
        """The file whose turn it is, apart from these; None if nothing is known to wait. OSError as `ranked`.

        It may be gone by now.
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
        # Where there was something, there is more soon: that is looked for as soon as this is done.
        self._hinted = bool(self._ranks)
        took = time.monotonic() - now
        self._look_at = now + max(self._interval_seconds, took / _SHARE)

    def _ordered(self) -> list[Rank]:
        """The files as of now; what comes while this looks is found by the next look.

        Of two that come one after the other meanwhile, a file system may show the second and not the first. That one is
        there when it is asked again.
        """
        if not (found := ranked(self._folder)):
            return []
        names = {each.filename for each in found}
        return [each for each in ranked(self._folder) if each.filename in names or each <= found[-1]]


def _ranks(folder: Folder) -> Iterator[Rank]:
    for entry in folder.entries():
        try:
            # A link may lead anywhere, and a pipe may never end.
            if entry.is_file(follow_symlinks=False) and not entry.name.startswith(_UNFINISHED):
                yield rank(entry.name, lambda entry=entry: entry.stat(follow_symlinks=False).st_mtime)  # type: ignore[misc]
        except FileNotFoundError:
            # Another consumer has taken it meanwhile.
            continue
