"""How long to wait before the next try: longer and longer, and not many at the same time."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from engine.errors import UnreachableError

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
        self._failing_since: float | None = None
        self._connected_since: float | None = None

    @property
    def lasting_seconds(self) -> float:
        """For how long there has been no connection."""
        return 0.0 if self._failing_since is None else self._clock() - self._failing_since

    def check(self, where: str, error: Exception, most_seconds: float) -> None:
        """UnreachableError where that has been out of reach for longer; `error` is the last thing heard of it."""
        if self.lasting_seconds > most_seconds:
            msg = f"{where} has been out of reach for more than {most_seconds:.0f} s: {error}"
            raise UnreachableError(msg) from error

    def next(self, at_least_seconds: float | None = None) -> float:
        """How long to wait after another failure: between a half and the whole of twice the time before, or longer."""
        now = self._clock()
        if self._connected_since is not None and now - self._connected_since > _LONGEST_BACK_OFF_SECONDS:
            self.reset()
        self._connected_since = None
        if self._failing_since is None:
            self._failing_since = now
        wait = self._next_seconds * random.uniform(0.5, 1.0)  # noqa: S311 # no secret depends on it
        self._next_seconds = min(self._next_seconds * 2, _LONGEST_BACK_OFF_SECONDS)
        return max(wait, at_least_seconds or 0.0)

    def connected(self) -> None:
        """There is a connection; whether it is any good, only messages or time can tell."""
        self._failing_since = None
        self._connected_since = self._clock()

    def reset(self) -> None:
        """It works again: the next wait is short."""
        self._next_seconds = _FIRST_BACK_OFF_SECONDS
