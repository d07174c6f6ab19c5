"""Waiting for what somebody else does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["patience", "until"]

_MOST = 4.0
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_PAUSES = 5.0
"""Time between two looks, in times of the CPU time of a look."""
_SHARE = 0.1
"""Time between two looks, as a share of the time that was waited."""


def patience(seconds: float) -> float:
    """Time that something may take, of which a machine with nothing else to do needs at most so many `seconds`.

    It is longer while more processes want to work than there are cores, up to four times.
    """
    return seconds * min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), _MOST)


def until(condition: Callable[[], object], seconds: float = 60, what: str = "") -> None:
    """Returns when the condition is true; fails after the seconds of which `patience` tells."""
    begun = time.monotonic()
    while True:
        used = time.process_time()
        if condition():
            return
        waited = time.monotonic() - begun
        assert waited < patience(seconds), f"not within {waited:.0f} s: {what or condition}"
        # So a look that costs much, at a whole topic for instance, leaves most of a core to what is waited for. The
        # server that answers works as long again, which is why long waits look less often.
        pause = max(_PAUSE, _PAUSES * (time.process_time() - used), _SHARE * waited)
        time.sleep(min(pause, _LONGEST_PAUSE))
