"""Keeps a log readable when one thing happens again and again: a few lines of it, then how many there would have been.

For structlog's events and, as a filter of a handler, for what libraries log by themselves. Errors always pass: some end
the process, and their line is the last.
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
"""So many lines of one kind pass in so many seconds."""

_MOST_KINDS = 1000
_LEVELS = {name: logging.getLevelNamesMapping()[name.upper()] for name in ("info", "warning")}
_TOLD = "more of these than are logged one by one"


class Kind(NamedTuple):
    """Lines that count as the same, whatever else they say."""

    logger: str
    level: int
    event: str
    component: str


class LeftOut(NamedTuple):
    """How many lines of a kind were left out."""

    kind: Kind
    lines: int


class _Count:
    __slots__ = ("left_out", "passed", "since")

    def __init__(self, since: float) -> None:
        self.since = since
        self.passed = 0
        self.left_out = 0


class Limiter:
    """Counts lines by kind, in windows of time that begin with the first. Thread-safe; knows 1000 kinds at a time."""

    def __init__(
        self,
        lines: int = LINES,
        seconds: float = LINES_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
        tell: Callable[[LeftOut], None] | None = None,
    ) -> None:
        """`later` calls a function after so many seconds, `tell` logs what was left out; both are for tests."""
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._later = later or _start_timer
        self._tell = tell or _log
        self._lock = Lock()
        self._counts: OrderedDict[Kind, _Count] = OrderedDict()
        """In the order in which their windows began."""
        self._is_awaited = False

    def processor(self, logger: logging.Logger, method: str, event: EventDict) -> EventDict:
        """For structlog, behind what adds the component; DropEvent for a line that is one too many."""
        level = _LEVELS.get(method)
        if level is None or event.get("event") == _TOLD:
            return event
        kind = Kind(logger.name, level, str(event.get("event")), str(event.get("component", "")))
        if not self._passes(kind):
            raise structlog.DropEvent
        return event

    def filter(self, record: logging.LogRecord) -> bool:
        """For a handler: lines that come by Python's own logging. Those of structlog are through already."""
        if isinstance(record.msg, dict) or record.levelno >= logging.ERROR:
            return True
        return self._passes(Kind(record.name, record.levelno, str(record.msg), ""))

    def flush(self) -> None:
        """Tells at once what was left out so far."""
        with self._lock:
            told = [found for kind in list(self._counts) if (found := self._end(kind))]
        self._tell_all(told)

    def _passes(self, kind: Kind) -> bool:
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
        # Without the lock: it is logging, too.
        self._tell_all(told)
        return passes

    def _on_time(self) -> None:
        """Tells of windows that are over, though nothing more happens; waits for the next one that has something."""
        with self._lock:
            now = self._clock()
            over = [kind for kind, count in self._counts.items() if now - count.since >= self._seconds]
            told = [self._end(kind) for kind in over]
            ends = [count.since + self._seconds for count in self._counts.values() if count.left_out]
            self._is_awaited = bool(ends)
        if ends:
            self._later(max(min(ends) - now, 0), self._on_time)
        self._tell_all(told)

    def _end(self, kind: Kind) -> LeftOut | None:
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
