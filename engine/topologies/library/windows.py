"""Windows of time by which the records of a key are aggregated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, overload
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = [
    "CalendarWindows",
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

_CALENDAR_UNITS = {"day": 86_400_000, "week": 604_800_000, "month": 28 * 86_400_000, "year": 365 * 86_400_000}
"""Milliseconds of the shortest of the units of a calendar."""
_MOST_UNITS = 10_000


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

    @overload
    @classmethod
    def of(cls, size: Duration, *, advance: Duration | None = ..., grace: Duration = ...) -> TimeWindows: ...
    @overload
    @classmethod
    def of(cls, size: str, *, grace: Duration = ..., zone: str, offset: Duration = ...) -> CalendarWindows: ...
    @classmethod
    def of(
        cls,
        size: Duration,
        *,
        advance: Duration | None = None,
        grace: Duration = "0 s",
        zone: str | None = None,
        offset: Duration = "0 s",
    ) -> TimeWindows | CalendarWindows:
        """Tumbling windows or, with `advance`, hopping ones; with `zone` those of its calendar, see `CalendarWindows`.

        Raises:
            ValueError: the durations make no windows, or the zone does not exist.
        """
        if zone is not None:
            if advance is not None:
                msg = "windows of a calendar follow each other: leave out advance"
                raise ValueError(msg)
            return CalendarWindows.of(size, zone, offset, grace)
        if offset != "0 s":
            msg = 'an offset belongs to windows of a calendar: name its zone, such as zone="UTC"'
            raise ValueError(msg)
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
class CalendarWindows:
    """Windows of days, weeks, months or years of a time zone, one after the other; `TimeWindows.of` makes them.

    A window begins at midnight of its first day, later by `offset_ms` of local time; a week begins on Monday. So a day
    has 23 or 25 hours where clocks are changed. A beginning that the clocks skip is moved by the time skipped, one that
    occurs twice is the first of the two. Several units are counted from 1970 on, weeks from Monday 29 December 1969.
    """

    count: int
    unit: str
    """`day`, `week`, `month` or `year`."""
    zone: str
    """Name in the IANA database, such as `Europe/Berlin`."""
    offset_ms: int = 0
    grace_ms: int = 0

    @classmethod
    def of(cls, size: object, zone: str, offset: Duration, grace: Duration) -> CalendarWindows:
        """See `TimeWindows.of`."""
        found = _DURATION.fullmatch(size) if isinstance(size, str) else None
        unit = "" if found is None else found[2].lower().removesuffix("s")
        if found is None or unit not in _CALENDAR_UNITS or not 0 < int(found[1]) <= _MOST_UNITS:
            msg = f"{size!r} is not a length in a calendar; write 1 day, 2 weeks, 1 month or 1 year, or leave out zone"
            raise ValueError(msg)
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            msg = f"{zone!r} is not a time zone; write a name such as Europe/Berlin or UTC"
            raise ValueError(msg) from error
        offset_ms = milliseconds(offset)
        if offset_ms >= _CALENDAR_UNITS[unit]:
            msg = f"an offset of {offset!r} is too long for windows that begin with a {unit}"
            raise ValueError(msg)
        return cls(int(found[1]), unit, zone, offset_ms, milliseconds(grace))

    def __str__(self) -> str:
        length = f"{self.count} {self.unit}{'s' if self.count > 1 else ''}"
        later = f" from {self.offset_ms} ms after midnight" if self.offset_ms else ""
        return f"windows of {length} in {self.zone}{later}, grace {self.grace_ms} ms"


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


Windows: TypeAlias = TimeWindows | CalendarWindows | SlidingWindows | SessionWindows


def check_windows(given: object) -> None:
    """Raises TypeError for a value other than windows, such as a length alone."""
    if isinstance(given, TimeWindows | CalendarWindows | SlidingWindows | SessionWindows):
        return
    size = f'"{given}"' if isinstance(given, str) else repr(given) if isinstance(given, timedelta) else '"1 minute"'
    shown = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
    msg = (
        f"windowed_by takes windows, not {shown}: TimeWindows.of({size}), SlidingWindows.of(…) or SessionWindows.of(…)"
    )
    raise TypeError(msg)
