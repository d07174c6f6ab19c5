"""Checks that the system's clock is synchronised: expiry, latencies and retention go by it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from engine.doctor.findings import Finding, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_clock", "is_synchronised"]

_ERROR = 5
"""TIME_ERROR, which adjtimex(2) returns for a clock that is not synchronised."""


class _Timex(ctypes.Structure):
    """`struct timex` as far as it has to be right, and room for the rest: all zero, it asks and changes nothing."""

    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_long * 64))


def check_clock() -> Iterator[Finding]:
    """Checks the clock; yields no finding if the system does not tell."""
    synchronised = is_synchronised()
    if synchronised:
        yield ok("clock", "the system's clock is synchronised")
    elif synchronised is False:
        remedy = "start chrony, ntpd or systemd-timesyncd; `timedatectl` shows whether it helps"
        yield warning("clock", "nobody synchronises the system's clock", remedy)


def is_synchronised() -> bool | None:
    """Returns whether the kernel's clock is synchronised; None if this is not Linux, or the kernel does not answer."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "adjtimex"):
        return None
    answer: int = libc.adjtimex(ctypes.byref(_Timex()))
    return None if answer < 0 else answer != _ERROR
