"""Whether somebody keeps the system's clock right: expiry, latencies and retention go by it."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from engine.doctor.findings import Finding, ok, warning

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_clock", "is_synchronised"]

_ERROR = 5
"""TIME_ERROR, what adjtimex(2) returns for a clock that is not synchronised."""


class _Timex(ctypes.Structure):
    """`struct timex` as far as it has to be right, and room for the rest: all zero, it asks and changes nothing."""

    _fields_ = (("modes", ctypes.c_uint), ("rest", ctypes.c_long * 64))


def check_clock() -> Iterator[Finding]:
    """Nothing where the system does not tell."""
    synchronised = is_synchronised()
    if synchronised:
        yield ok("clock", "the system's clock is synchronised")
    elif synchronised is False:
        remedy = "start chrony, ntpd or systemd-timesyncd; `timedatectl` shows whether it helps"
        yield warning("clock", "nobody synchronises the system's clock", remedy)


def is_synchronised() -> bool | None:
    """By the kernel; None where it is not Linux, or does not let this process ask."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "adjtimex"):
        return None
    answer: int = libc.adjtimex(ctypes.byref(_Timex()))
    return None if answer < 0 else answer != _ERROR
