"""Where the tail of the journal begins: the end it had when everything read until then was acknowledged.

An acknowledgement that was only sent may be lost with its connection. So an end counts only when a dead connection
would have been noticed since.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CleanEnds"]


class CleanEnds:
    """The ends of one connection. Deliveries are acknowledged in the order in which they came, so counts tell all.

    Ends are offsets behind the last record, by partition.
    """

    def __init__(self, doubt_seconds: float) -> None:
        """`doubt_seconds`: for how long after its sending an acknowledgement may turn out to be lost."""
        self._doubt_seconds = doubt_seconds
        self._open: tuple[Mapping[int, int], int] | None = None
        self._clean: deque[tuple[float, Mapping[int, int]]] = deque()

    @property
    def wants_ends(self) -> bool:
        """Whether ends would be of use: there are none that still wait for their acknowledgements."""
        return self._open is None

    def mark(self, ends: Mapping[int, int], received: int) -> None:
        """The journal ended there, or before, when so many deliveries had been received."""
        self._open = ends, received

    def acknowledged(self, count: int, now: float) -> None:
        """So many were acknowledged by now, in all."""
        if self._open is not None and count >= self._open[1]:
            self._clean.append((now, self._open[0]))
            self._open = None

    def due(self, now: float) -> Mapping[int, int] | None:
        """The latest ends before which nothing is in doubt any more, told once; None if there are no new ones."""
        found = None
        while self._clean and self._clean[0][0] + self._doubt_seconds <= now:
            found = self._clean.popleft()[1]
        return found
