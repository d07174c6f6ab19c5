"""Watch over the calls of a topology's Python functions, in the process that runs them.

A call that takes too long is ended by an exception, and if that does not end it, with the process: then the JVM tells
its record by calling the function for one record at a time. The process also ends when nobody reads its answers any
more, whatever a function does: a run that has ended leaves no process behind.
"""

from __future__ import annotations

import faulthandler
import os
import select
import signal
import sys
import threading
import time
from typing import Any

__all__ = ["FunctionTimeoutError", "FunctionWatch"]

_TICK_SECONDS = 0.5
_GRACE_SECONDS = 5.0
"""Time in which a call has to end after its exception, and a function after the end of the requests."""


class FunctionTimeoutError(BaseException):
    """The call of a function has taken too long. Functions that catch every Exception do not catch it."""


class FunctionWatch:
    """Watch over the calls of the main thread, one at a time."""

    def __init__(self, seconds: float | None, requests: int) -> None:
        """Begins to watch.

        Args:
            seconds: time that one call may take; None: as long as it wants.
            requests: the file from which requests come, whose end ends the process.
        """
        self._seconds = seconds
        self._requests = requests
        self._number = 0
        self._is_calling = False
        self._main = threading.main_thread().ident
        signal.signal(signal.SIGALRM, self._end_call)
        threading.Thread(target=self._follow, name="watch", daemon=True).start()

    def begin(self) -> None:
        """Notes that a call begins."""
        self._number += 1
        self._is_calling = True

    def end(self) -> None:
        """Notes that the call has ended."""
        self._is_calling = False

    def _end_call(self, *_: Any) -> None:
        if self._is_calling and self._seconds is not None:
            msg = f"it took longer than {self._seconds:g} seconds (topologies.function-timeout)"
            raise FunctionTimeoutError(msg)

    def _follow(self) -> None:
        requests = select.poll()
        requests.register(self._requests, 0)
        number, since, ended = 0, time.monotonic(), None
        while True:
            time.sleep(_TICK_SECONDS if self._seconds is None else min(_TICK_SECONDS, self._seconds / 2))
            now = time.monotonic()
            if self._number != number or not self._is_calling:
                number, since = self._number, now
            if requests.poll(0):
                # Only the end of a pipe is reported without having been asked for.
                ended = now if ended is None else ended
                if now - ended > _GRACE_SECONDS:
                    os._exit(1)
            if self._seconds is not None:
                self._check(now - since - self._seconds)

    def _check(self, over_seconds: float) -> None:
        """Ends a call that has taken too long by so many seconds."""
        assert self._seconds is not None
        # For code that never lets this thread run: it works without Python, and shows where each thread is.
        faulthandler.dump_traceback_later(self._seconds + 2 * _GRACE_SECONDS, exit=True)
        if over_seconds > _GRACE_SECONDS:
            print("a function that took too long does not end: its process ends", file=sys.stderr, flush=True)
            faulthandler.dump_traceback()
            os._exit(1)
        if over_seconds > 0 and self._main is not None:
            signal.pthread_kill(self._main, signal.SIGALRM)
