"""Limits repeated log lines: the first few of a kind pass, then one line tells how many were left out.

Works for structlog's events and, as a filter of a handler, for lines that libraries log themselves. Errors always pass:
some end the process, and theirs is the last line.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from threading import Lock, Timer
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from structlog.typing import EventDict

__all__ = ["LINES", "LINES_SECONDS", "LeftOut", "Limiter"]

LINES, LINES_SECONDS = 20, 10.0
"""At most `LINES` lines of one kind pass in `LINES_SECONDS`."""

_MOST_KINDS = 1000
_LEVELS = {name: logging.getLevelNamesMapping()[name.upper()] for name in ("info", "warning")}
_TOLD = "more of these than are logged one by one"


class LineKind(NamedTuple):
    """Kind of a log line: lines with equal fields count as repetitions, whatever else they say."""

    logger: str
    level: int
    event: str
    component: str


class LeftOut(NamedTuple):
    """Number of lines of a kind that were left out."""

    kind: LineKind
    lines: int


class _Count:
    __slots__ = ("left_out", "passed", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.passed = 0
        self.left_out = 0


class Limiter:
    """Counts log lines by kind, in time windows. Thread-safe; holds 1000 kinds at most.

    A window begins with the first line of its kind.
    """

    def __init__(
        self,
        lines: int = LINES,
        seconds: float = LINES_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
        tell: Callable[[LeftOut], None] | None = None,
    ) -> None:
        """`later` calls a function after some seconds, `tell` logs what was left out; both are for tests."""
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._later = later or _start_timer
        self._tell = tell or _log
        self._lock = Lock()
        self._counts: OrderedDict[LineKind, _Count] = OrderedDict()
        """Counts by kind, in the order in which their windows began."""
        self._is_awaited = False

    def processor(self, logger: logging.Logger, method: str, event: EventDict) -> EventDict:
        """Processor for structlog, after the one that adds the component; DropEvent for lines above the limit."""
        level = _LEVELS.get(method)
        if level is None or event.get("event") == _TOLD:
            return event
        kind = LineKind(logger.name, level, str(event.get("event")), str(event.get("component", "")))
        if not self._passes(kind):
            raise structlog.DropEvent
        return event

    def filter(self, record: logging.LogRecord) -> bool:
        """Filter for a handler of Python's own logging. Events of structlog have passed `processor` already."""
        if isinstance(record.msg, dict) or record.levelno >= logging.ERROR:
            return True
        return self._passes(LineKind(record.name, record.levelno, str(record.msg), ""))

    def flush(self) -> None:
        """Logs at once what was left out so far."""
        with self._lock:
            told = [found for kind in list(self._counts) if (found := self._end(kind))]
        self._tell_all(told)

    def _passes(self, kind: LineKind) -> bool:
        told: list[LeftOut | None] = []
        with self._lock:
            now = self._clock()
            count = self._counts.get(kind)
            if count is not None and now - count.since >= self._seconds:
                told.append(self._end(kind))
                count = None
            if count is None:
                if len(self._counts) >= _MOST_KINDS:
                    told.append(self._end(next(iter(self._counts))))
                count = self._counts[kind] = _Count(now)
            if passes := count.passed < self._lines:
                count.passed += 1
            else:
                count.left_out += 1
            waits = not passes and not self._is_awaited
            self._is_awaited |= waits
        if waits:
            self._later(max(count.since + self._seconds - now, 0), self._on_time)
        # Outside the lock, because it logs too.
        self._tell_all(told)
        return passes

    def _on_time(self) -> None:
        """Logs what was left out in windows that are over, without waiting for a line; schedules the next check."""
        with self._lock:
            now = self._clock()
            over = [kind for kind, count in self._counts.items() if now - count.since >= self._seconds]
            told = [self._end(kind) for kind in over]
            ends = [count.since + self._seconds for count in self._counts.values() if count.left_out]
            self._is_awaited = bool(ends)
        if ends:
            self._later(max(min(ends) - now, 0), self._on_time)
        self._tell_all(told)

    def _end(self, kind: LineKind) -> LeftOut | None:
        count = self._counts.pop(kind)
        return LeftOut(kind, count.left_out) if count.left_out else None

    def _tell_all(self, told: Iterable[LeftOut | None]) -> None:
        for found in told:
            if found is not None:
                self._tell(found)


def _log(found: LeftOut) -> None:
    kind = found.kind
    own = {"component": kind.component} if kind.component else {}
    structlog.get_logger(kind.logger).log(kind.level, _TOLD, what=kind.event, left_out=found.lines, **own)


def _start_timer(seconds: float, call: Callable[[], None]) -> None:
    timer = Timer(seconds, call)
    timer.daemon = True
    timer.start()
