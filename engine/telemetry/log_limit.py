"""Limits repeated log lines: the first few of a kind pass, then one line gives the number of the others.

Works for structlog's events and, as a filter of a handler, for lines that libraries log themselves. Errors always pass:
some end the process, and theirs is the last line.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from threading import Lock, Timer
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from structlog.typing import EventDict

__all__ = ["Limiter", "LineKind"]

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


class Limiter:
    """Counter of log lines by kind, in time windows. Thread-safe; a window with 1000 kinds ends early."""

    def __init__(
        self,
        lines: int = _LINES,
        seconds: float = _SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], None] | None = None,
        tell: Callable[[LineKind, int], None] | None = None,
    ) -> None:
        """`later` calls a function after some seconds, `tell` logs how many were left out; tests replace both."""
        self._most = lines
        self._seconds = seconds
        self._clock = clock
        self._later = later or _start_timer
        self._summarise = tell or _log
        self._lock = Lock()
        self._since = clock()
        self._lines: Counter[LineKind] = Counter()
        """Lines of the present window, those that were left out included."""
        self._is_awaited = False
        """True while a timer waits for the end of the window."""

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
        """Ends the window: logs how many lines of each kind were left out in it."""
        with self._lock:
            ended = self._end()
        self._log_all(ended)

    def _passes(self, kind: LineKind) -> bool:
        with self._lock:
            is_over = self._clock() - self._since >= self._seconds
            is_full = kind not in self._lines and len(self._lines) >= _MOST_KINDS
            ended = self._end() if is_over or is_full else {}
            self._lines[kind] += 1
            passes = self._lines[kind] <= self._most
            starts_timer = not passes and not self._is_awaited
            self._is_awaited |= starts_timer
            left = self._since + self._seconds - self._clock()
        if starts_timer:
            self._later(left, self._on_time)
        self._log_all(ended)
        return passes

    def _on_time(self) -> None:
        with self._lock:
            self._is_awaited = False
        self.flush()

    def _end(self) -> dict[LineKind, int]:
        """Begins a new window; returns the number of lines that were left out in the former one, by kind."""
        ended = {kind: lines - self._most for kind, lines in self._lines.items() if lines > self._most}
        self._lines.clear()
        self._since = self._clock()
        return ended

    def _log_all(self, ended: dict[LineKind, int]) -> None:
        """Logs the number of lines left out; called without the lock, because the log asks this limiter too."""
        for kind, lines in ended.items():
            self._summarise(kind, lines)


def _log(kind: LineKind, lines: int) -> None:
    fields = {"component": kind.component} if kind.component else {}
    structlog.get_logger(kind.logger).log(kind.level, _SUMMARY, what=kind.event, left_out=lines, **fields)


def _start_timer(seconds: float, call: Callable[[], None]) -> None:
    timer = Timer(seconds, call)
    timer.daemon = True
    timer.start()
