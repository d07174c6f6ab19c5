"""Figures of the last day in memory, one average for each minute and figure; bounded, whatever the routes are."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import isnan, nan
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MINUTES", "DayFigures", "DaySeries"]

MINUTES = 24 * 60
_MOST_SERIES = 1000
"""Number of figures that are kept: four bytes for each minute and figure."""


@dataclass(frozen=True, slots=True)
class DaySeries:
    """Averages of one figure, one for each minute of the last day, the oldest first."""

    values: tuple[float | None, ...]
    """None for a minute without a reading."""
    last: int
    """Minute of the last value, since 1970."""

    @property
    def peak(self) -> float:
        """Largest value; 0 if there is none."""
        return max((value for value in self.values if value is not None), default=0.0)

    @property
    def mean(self) -> float:
        """Average of the values; 0 if there are none."""
        known = [value for value in self.values if value is not None]
        return sum(known) / len(known) if known else 0.0


class DayFigures:
    """Rings of minutes, one for each name of a figure. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rings: dict[str, array[float]] = {}
        self._sums: dict[str, tuple[float, int]] = {}
        self._minute: int | None = None

    def add(self, seconds: float, values: Mapping[str, float | None]) -> None:
        """Adds a reading at a time in seconds since 1970; None is a figure that is not known now.

        A time before that of the last reading, by a clock that was set back, counts as its minute.
        """
        minute = int(seconds // 60)
        with self._lock:
            if self._minute is None or minute > self._minute:
                self._begin(minute)
            for name, value in values.items():
                if value is not None:
                    total, count = self._sums.get(name, (0.0, 0))
                    self._sums[name] = total + value, count + 1
            for name, (total, count) in self._sums.items():
                if (ring := self._ring(name)) is not None:
                    assert self._minute is not None
                    ring[self._minute % MINUTES] = total / count

    def series(self) -> dict[str, DaySeries]:
        """The figures by their names."""
        with self._lock:
            if self._minute is None:
                return {}
            first = (self._minute + 1) % MINUTES
            return {
                name: DaySeries(tuple(None if isnan(v) else v for v in (*ring[first:], *ring[:first])), self._minute)
                for name, ring in self._rings.items()
            }

    def _begin(self, minute: int) -> None:
        """Begins a minute; those between it and the last one have no values."""
        passed = MINUTES if self._minute is None else min(minute - self._minute, MINUTES)
        for ring in self._rings.values():
            for each in range(minute - passed + 1, minute + 1):
                ring[each % MINUTES] = nan
        # A figure without a value in the last day, such as that of a route that is gone, makes room.
        self._rings = {name: ring for name, ring in self._rings.items() if not all(map(isnan, ring))}
        self._minute = minute
        self._sums = {}

    def _ring(self, name: str) -> array[float] | None:
        if name not in self._rings and len(self._rings) < _MOST_SERIES:
            self._rings[name] = array("f", [nan]) * MINUTES
        return self._rings.get(name)
