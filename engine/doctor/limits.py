"""Checks that the operating system lets a bridge open as many files and connections as it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doctor.findings import Finding, failed, ok
from engine.limits import LEAST_FILES, REMEDY, files_allowed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_limits"]


def check_limits() -> Iterator[Finding]:
    """Checks the limit of open files, RLIMIT_NOFILE."""
    allowed = files_allowed()
    if allowed < LEAST_FILES:
        yield failed("open files", f"only {allowed:,} at a time, and {LEAST_FILES:,} are needed", REMEDY)
    else:
        yield ok("open files", f"{allowed:,} at a time")
