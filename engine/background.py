"""Base of the tasks that run in a thread beside the rest of their process, and their log of errors."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from routes.errors import BridgeError

if TYPE_CHECKING:
    import structlog

__all__ = ["BackgroundTask", "ErrorLog"]


class BackgroundTask:
    """A task in a thread of its own: `with Task(…):`. Subclasses write `run`."""

    def __init__(self, name: str, join_seconds: float) -> None:
        """`name` is that of the thread; `join_seconds` is how long the end of the block waits for the thread."""
        self._join_seconds = join_seconds
        self._stop = Event()
        """Set when the task is to end."""
        self._thread = Thread(target=self.run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(self._join_seconds)

    def run(self) -> None:
        """Does the task until `_stop` is set."""
        raise NotImplementedError


class ErrorLog:
    """Log of an error that comes back at each attempt: it is written once, until another one comes or it is over."""

    def __init__(self, log: structlog.stdlib.BoundLogger, event: str) -> None:
        """`event` says what failed."""
        self._log = log
        self._event = event
        self._last = ""

    def note(self, error: Exception) -> None:
        """Writes the error if it is not the last one; with its stack trace unless the bridge raised it for users."""
        is_known = isinstance(error, BridgeError)
        why = str(error) if is_known else f"{type(error).__name__}: {error}"
        if why != self._last:
            self._last = why
            (self._log.warning if is_known else self._log.exception)(self._event, why=why)

    def over(self) -> None:
        """Has the next error written, whichever it is."""
        self._last = ""
