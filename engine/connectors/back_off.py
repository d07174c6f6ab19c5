"""How long to wait before the next try: longer and longer, and not many at the same time."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BackOff"]

_FIRST_BACK_OFF_SECONDS = 0.5
_LONGEST_BACK_OFF_SECONDS = 30.0


class BackOff:
    """Longer and longer waits, with jitter so that many do not come back at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_seconds = _FIRST_BACK_OFF_SECONDS
        self._connected_since: float | None = None

    def next(self, at_least_seconds: float | None = None) -> float:
        """How long to wait after another failure: between a half and the whole of twice the time before, or longer."""
        now = self._clock()
        if self._connected_since is not None and now - self._connected_since > _LONGEST_BACK_OFF_SECONDS:
            self.reset()
        self._connected_since = None
        wait = self._next_seconds * random.uniform(0.5, 1.0)  # noqa: S311 # no secret depends on it
        self._next_seconds = min(self._next_seconds * 2, _LONGEST_BACK_OFF_SECONDS)
        return max(wait, at_least_seconds or 0.0)

    def connected(self) -> None:
        """There is a connection; whether it is any good, only messages or time can tell."""
        self._connected_since = self._clock()

    def reset(self) -> None:
        """It works again: the next wait is short."""
        self._next_seconds = _FIRST_BACK_OFF_SECONDS
