"""The Python function of the workload `function`, the same in all engines, whose environments differ."""

from __future__ import annotations

__all__ = ["FIELDS", "scored"]

FIELDS = ("user", "host", "cents", "level")
"""Names of the values that `scored` returns."""
_LEVELS = ((100_000, "gold"), (10_000, "silver"), (0, "plain"))


def scored(user: str, url: str, cents: int) -> tuple[str, str, int, str]:
    """The user in one spelling, the host of the address, the amount with tax, and its level."""
    gross = cents * 119 // 100
    host = url.partition("://")[2].partition("/")[0]
    level = next(name for least, name in _LEVELS if gross >= least)
    return user.strip().lower(), host, gross, level
