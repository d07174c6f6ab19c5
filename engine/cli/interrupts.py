"""Ctrl-C during a command that completes the work under way."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["INTERRUPTED", "interruptible"]

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended."""


@contextmanager
def interruptible() -> Iterator[Event]:
    """An event that the first Ctrl-C sets, so that the work under way can be completed; the second ends at once."""
    stop = Event()

    def handle(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        Thread(target=stop.set, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
