"""Rate limit of a replay: a number of messages a second, evenly; after a delay there is no burst to catch up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Pace"]

_BATCH = 200
_TURNS_A_SECOND = 10
"""Number of batches a second at higher rates; at lower rates messages go one by one."""


class Pace:
    """The size of the next batch, and the time until it may go."""

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Creates it; without a rate, a batch may go at any time."""
        self._per_second = per_second
        self._clock = clock
        self._due = clock()
        self.batch = _BATCH if per_second is None else max(1, min(_BATCH, int(per_second / _TURNS_A_SECOND)))
        """Greatest number of messages in a batch."""

    @property
    def wait_seconds(self) -> float:
        """Seconds until the next batch may go."""
        return max(self._due - self._clock(), 0.0)

    def sent(self, count: int) -> None:
        """Takes note that `count` messages go now."""
        if self._per_second is not None:
            self._due = max(self._due, self._clock()) + count / self._per_second
