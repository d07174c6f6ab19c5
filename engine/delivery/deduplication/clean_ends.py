"""Start of the journal's tail: the end that the journal had when everything received until then was acknowledged.

An acknowledgement that was sent may be lost with its connection. So such an end counts only after the time in which a
dead connection would have been noticed.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CleanEnds"]


class CleanEnds:
    """Clean ends of the journal for one connection: ends before which no acknowledgement is in doubt.

    Deliveries are acknowledged in the order in which they were received, so counts are enough to tell whether all up to
    an end are acknowledged. An end is the offset behind the last record, by partition.
    """

    def __init__(self, doubt_seconds: float) -> None:
        """`doubt_seconds`: seconds after sending in which an acknowledgement may turn out to be lost."""
        self._doubt_seconds = doubt_seconds
        self._open: tuple[Mapping[int, int], int] | None = None
        self._clean: deque[tuple[float, Mapping[int, int]]] = deque()

    @property
    def wants_ends(self) -> bool:
        """True if the caller should mark new ends: none still wait for the acknowledgement of their deliveries."""
        return self._open is None

    def mark(self, ends: Mapping[int, int], received: int) -> None:
        """Notes that the journal ended at `ends` or before when `received` deliveries had been received."""
        self._open = ends, received

    def acknowledged(self, count: int, now: float) -> None:
        """Notes that `count` deliveries in all are acknowledged; `now` is the time of the monotonic clock."""
        if self._open is not None and count >= self._open[1]:
            self._clean.append((now, self._open[0]))
            self._open = None

    def due(self, now: float) -> Mapping[int, int] | None:
        """Returns the latest ends before which nothing is in doubt, each only once; None if there are no new ones."""
        found = None
        while self._clean and self._clean[0][0] + self._doubt_seconds <= now:
            found = self._clean.popleft()[1]
        return found
