"""Background thread that serves a listener's clients while the loop of its source or sink is busy elsewhere.

The loop's thread serves the clients whenever it calls the source or sink. While it does not, for example while Kafka is
unavailable, the pump's thread answers, sends heart-beats and goes on reading. A lock keeps the two threads from
serving at the same time.
"""

from __future__ import annotations

import time
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BackgroundPump"]


class BackgroundPump:
    """Background thread that serves a listener's clients, and the lock that it shares with the loop's thread.

    The loop's thread touches the clients only in the pump's `with` block; no other thread does so during it.
    """

    def __init__(self, look: Callable[[], None], seconds: float) -> None:
        """Takes `look`, which the background thread calls after `seconds` without a `with` block."""
        self._look = look
        self._seconds = seconds
        self._use = Lock()
        self._attended = 0.0
        self._stopped = Event()
        self._stopped.set()

    def __enter__(self) -> None:
        self._use.acquire()

    def __exit__(self, *_: object) -> None:
        self._attended = time.monotonic()
        self._use.release()

    def start(self) -> None:
        """Starts the background thread."""
        self._stopped = Event()
        self._attended = time.monotonic()
        Thread(target=self._run, args=(self._stopped,), name="attendant", daemon=True).start()

    def stop(self) -> None:
        """Stops the background thread; `look` is not called after the next `with` block has begun."""
        self._stopped.set()

    def _run(self, stopped: Event) -> None:
        while not stopped.wait(self._seconds / 2):
            if time.monotonic() - self._attended > self._seconds and self._use.acquire(blocking=False):
                try:
                    if not stopped.is_set():
                        self._look()
                finally:
                    self._use.release()
