"""Trend of the lag of a topology: whether the records that wait become more and more."""

from __future__ import annotations

from collections import deque
from itertools import pairwise

__all__ = ["LagTrend"]

_WINDOW_SECONDS = 20.0
_RISES = 6
"""Windows one after the other, each with more lag than the one before, until a topology counts as falling behind."""
_FALLS = 2
"""Windows one after the other, each with less lag than the one before, until it counts as catching up."""
_LEAST_RECORDS = 1_000
_LEAST_SECONDS = 60.0
"""A backlog that is processed in less time is not a reason to worry."""


class LagTrend:
    """Watch over the lag of a topology that runs; for one thread.

    It compares the least lag of windows of 20 s, so that batches and bursts do not count. A topology falls behind if
    that has risen for two minutes, to more than a minute's work, until it has fallen for 40 s, or is small.
    """

    def __init__(self) -> None:
        self._least: deque[int] = deque(maxlen=_RISES + 1)
        """Least lag of each window that has ended."""
        self._began_at: float | None = None
        self._began_with = 0
        self._window: int | None = None
        """Least lag of the present window."""
        self.reason = ""
        """Reason for which the topology falls behind, in one line; empty if it does not."""

    def update(self, now: float, records: int, lag: int) -> str:
        """Takes the figures of a moment; returns why the topology falls behind, in one line, or an empty text.

        Args:
            now: a `time.monotonic` time.
            records: records processed since the start.
            lag: records that wait.
        """
        if self._began_at is None:
            self._began_at, self._began_with = now, records
        self._window = lag if self._window is None else min(self._window, lag)
        if (seconds := now - self._began_at) >= _WINDOW_SECONDS:
            self._least.append(self._window)
            self._judge((records - self._began_with) / seconds)
            self._began_at, self._began_with, self._window = now, records, lag
        return self.reason

    def _judge(self, rate: float) -> None:
        """Judges the windows so far; `rate` is the number of records processed each second in the last one."""
        least = list(self._least)
        steps = [after - before for before, after in pairwise(least)]
        now = least[-1]
        has_caught_up = now < _LEAST_RECORDS or now < rate * _LEAST_SECONDS / 2
        if has_caught_up or (len(steps) >= _FALLS and all(step < 0 for step in steps[-_FALLS:])):
            self.reason = ""
        elif self.reason or (len(steps) == _RISES and min(steps) > 0 and now > rate * _LEAST_SECONDS):
            growth = (now - least[0]) / (len(steps) * _WINDOW_SECONDS) if steps else 0.0
            speed = f"{rate:,.0f} are processed a second"
            self.reason = f"falls behind: {now:,} records wait, {growth * 60:+,.0f} a minute, while {speed}"
