"""Limits repeated log lines: the first few of a kind pass, then one line gives the number of the others.

Works for structlog's events and, as a filter of a handler, for lines that libraries log themselves. Errors always pass:
some end the process, and theirs is the last line.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from itertools import takewhile
from threading import Lock, Timer
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict

__all__ = ["LeftOut", "Limiter"]

_LINES, _SECONDS = 20, 10.0
"""At most `_LINES` lines of one kind pass in `_SECONDS`."""
_MOST_KINDS = 1000
_LEVELS = {name: logging.getLevelNamesMapping()[name.upper()] for name in ("info", "warning")}
_SUMMARY = "more of these than are logged one by one"


class LineKind(NamedTuple):
    """Kind of a log line: lines with equal fields count as repetitions, whatever else they say."""

    logger: str
    level: int
    event: str
    component: str


@dataclass(slots=True)
class LeftOut:
    """Number of lines of a kind that were left out in a time window."""

    kind: LineKind
    since: float
    passed: int = 0
    lines: int = 0


class Limiter:
    """Counts log lines by kind, in time windows. Thread-safe; holds 1000 kinds at most.

    A window begins with the first line of its kind.
    """

    def __init__(
        self,
        lines: int = _LINES,
        seconds: float = _SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
        tell: Callable[[LeftOut], None] | None = None,
    ) -> None:
        """`later` calls a function after some seconds, `tell` logs what was left out; tests replace both."""
        self._lines = lines
        self._seconds = seconds
        self._clock = clock
        self._later = later or _start_timer
        self._summarise = tell or _log
        self._lock = Lock()
        self._counts: dict[LineKind, LeftOut] = {}
        """Windows by kind, in the order in which they began, which is that in which they end."""
        self._is_awaited = False
        """True while a timer waits for the end of a window."""

    def processor(self, logger: logging.Logger, method: str, event: EventDict) -> EventDict:
        """Processor for structlog, after the one that adds the component; DropEvent for lines above the limit."""
        level = _LEVELS.get(method)
        if level is None or event.get("event") == _SUMMARY:
            return event
        if not self._passes(LineKind(logger.name, level, str(event.get("event")), str(event.get("component", "")))):
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
            ended = self._end(list(self._counts))
        self._log_all(ended)

    def _passes(self, kind: LineKind) -> bool:
        with self._lock:
            now = self._clock()
            ended = self._end(self._over(now))
            if kind not in self._counts:
                if len(self._counts) >= _MOST_KINDS:
                    ended += self._end([next(iter(self._counts))])
                self._counts[kind] = LeftOut(kind, now)
            window = self._counts[kind]
            if passes := window.passed < self._lines:
                window.passed += 1
            else:
                window.lines += 1
            waits = not passes and not self._is_awaited
            self._is_awaited |= waits
        if waits:
            self._later(window.since + self._seconds - now, self._on_time)
        self._log_all(ended)
        return passes

    def _on_time(self) -> None:
        """Logs what was left out in windows that are over, without waiting for a line; schedules the next check."""
        with self._lock:
            now = self._clock()
            ended = self._end(self._over(now))
            since = next((window.since for window in self._counts.values() if window.lines), None)
            self._is_awaited = since is not None
        if since is not None:
            self._later(since + self._seconds - now, self._on_time)
        self._log_all(ended)

    def _over(self, now: float) -> list[LineKind]:
        """Kinds whose windows are over."""
        return list(takewhile(lambda kind: now - self._counts[kind].since >= self._seconds, self._counts))

    def _end(self, kinds: list[LineKind]) -> list[LeftOut]:
        """Ends windows; returns those in which lines were left out."""
        return [window for kind in kinds if (window := self._counts.pop(kind)).lines]

    def _log_all(self, ended: list[LeftOut]) -> None:
        """Logs what was left out; called without the lock, because the log asks this limiter too."""
        for found in ended:
            self._summarise(found)


def _log(found: LeftOut) -> None:
    kind = found.kind
    own = {"component": kind.component} if kind.component else {}
    structlog.get_logger(kind.logger).log(kind.level, _SUMMARY, what=kind.event, left_out=found.lines, **own)


def _start_timer(seconds: float, call: Callable[[], None]) -> None:
    timer = Timer(seconds, call)
    timer.daemon = True
    timer.start()
