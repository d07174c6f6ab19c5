"""Windows of time by which the records of a key are aggregated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

__all__ = [
    "Duration",
    "SessionWindows",
    "SlidingWindows",
    "TimeWindows",
    "Windows",
    "check_windows",
    "milliseconds",
]

Duration: TypeAlias = "str | timedelta"
"""A length of time: a timedelta, or text such as "10 s", "500 ms", "1 minute" or "2 hours"."""

_DURATION = re.compile(r"\s*(\d+)\s*([a-z]+)\s*", re.IGNORECASE)
_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def milliseconds(duration: Duration, *, least: int = 0) -> int:
    """The duration in milliseconds.

    Raises:
        ValueError: the text is not a duration, or the duration is less than `least` milliseconds.
    """
    if isinstance(duration, timedelta):
        length = round(duration / timedelta(milliseconds=1))
    else:
        found = _DURATION.fullmatch(duration)
        if found is None or found[2].lower() not in _UNITS:
            msg = (
                f"'{duration}' is not a duration; write a number and a unit, such as 500 ms, 10 s, 1 minute or 2 hours"
            )
            raise ValueError(msg)
        length = int(found[1]) * _UNITS[found[2].lower()]
    if length < least:
        msg = f"'{duration}' is too short; at least {least} ms"
        raise ValueError(msg)
    return length


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows of one size that begin at multiples of `advance_ms` since 1970; a window's end is not part of it."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0
    """Stream time after the end of a window during which it still takes late records."""

    @classmethod
    def of(cls, size: Duration, *, advance: Duration | None = None, grace: Duration = "0 s") -> TimeWindows:
        """Tumbling windows or, with `advance`, hopping ones; ValueError for durations that make no windows."""
        size_ms = milliseconds(size, least=1)
        advance_ms = size_ms if advance is None else milliseconds(advance, least=1)
        if advance_ms > size_ms:
            msg = f"windows of {size_ms} ms that advance by {advance_ms} ms would leave records out"
            raise ValueError(msg)
        return cls(size_ms, advance_ms, milliseconds(grace))

    def __str__(self) -> str:
        hop = "" if self.advance_ms == self.size_ms else f" every {self.advance_ms} ms"
        return f"windows of {self.size_ms} ms{hop}, grace {self.grace_ms} ms"


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows of the distinct sets of a key's records whose times differ by `size_ms` at most; both ends are included.

    There is a window that ends with each record, and one that begins right after each record that another one follows.
    """

    size_ms: int
    grace_ms: int = 0

    @classmethod
    def of(cls, size: Duration, *, grace: Duration = "0 s") -> SlidingWindows:
        """Sliding windows; ValueError for durations that make no windows."""
        return cls(milliseconds(size, least=1), milliseconds(grace))

    def __str__(self) -> str:
        return f"sliding windows of {self.size_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions of a key, which end when no record came for longer than `gap_ms`; a session ends at its last record."""

    gap_ms: int
    grace_ms: int = 0

    @classmethod
    def of(cls, gap: Duration, *, grace: Duration = "0 s") -> SessionWindows:
        """Session windows; ValueError for durations that make no windows."""
        return cls(milliseconds(gap, least=1), milliseconds(grace))

    def __str__(self) -> str:
        return f"sessions with gaps of {self.gap_ms} ms, grace {self.grace_ms} ms"


Windows: TypeAlias = TimeWindows | SlidingWindows | SessionWindows


def check_windows(given: object) -> None:
    """Raises TypeError for a value other than windows, such as a length alone."""
    if isinstance(given, TimeWindows | SlidingWindows | SessionWindows):
        return
    size = f'"{given}"' if isinstance(given, str) else repr(given) if isinstance(given, timedelta) else '"1 minute"'
    shown = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
    msg = (
        f"windowed_by takes windows, not {shown}: TimeWindows.of({size}), SlidingWindows.of(…) or SessionWindows.of(…)"
    )
    raise TypeError(msg)
