"""Somebody is always there for the clients of a listener, also while the loop that it belongs to is busy elsewhere.

The loop's own thread does the work whenever it asks for something. While it does not, as when Kafka is away, this
thread answers, sends heart-beats and reads on; never both at once.
"""

from __future__ import annotations

import time
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Attendant"]


class Attendant:
    """Its `with` block is for the loop's thread: nobody else touches the clients during it."""

    def __init__(self, look: Callable[[], None], seconds: float) -> None:
        """`look` is called where nobody was there for so long."""
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
        """From now on."""
        self._stopped = Event()
        self._attended = time.monotonic()
        Thread(target=self._run, args=(self._stopped,), name="attendant", daemon=True).start()

    def stop(self) -> None:
        """No more; `look` is not called after the next `with` block has begun."""
        self._stopped.set()

    def _run(self, stopped: Event) -> None:
        while not stopped.wait(self._seconds / 2):
            if time.monotonic() - self._attended > self._seconds and self._use.acquire(blocking=False):
                try:
                    if not stopped.is_set():
                        self._look()
                finally:
                    self._use.release()
