"""So many messages a second, evenly: nothing that was late is made up for in a burst."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pace"]

_BATCH = 200
_TURNS_A_SECOND = 10
"""More messages than this a second go in so many batches, fewer one by one."""


class Pace:
    """Says how many may go at once, and when."""

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a rate, a batch may go whenever it is there."""
        self._per_second = per_second
        self._clock = clock
        self._due = clock()
        self.batch = _BATCH if per_second is None else max(1, min(_BATCH, int(per_second / _TURNS_A_SECOND)))
        """The most that may go at once."""

    @property
    def wait_seconds(self) -> float:
        """How long until the next batch may go."""
        return max(self._due - self._clock(), 0.0)

    def sent(self, count: int) -> None:
        """So many go now."""
        if self._per_second is not None:
            self._due = max(self._due, self._clock()) + count / self._per_second
