"""Whole numbers in texts from other programs."""

from __future__ import annotations

__all__ = ["whole"]

_MOST_DIGITS = 19
"""Number of digits of the largest 64-bit number. `int` raises for texts of thousands of digits, and takes long."""


def whole(text: str) -> int | None:
    """Parses 1 to 19 ASCII digits, without sign and spaces; returns None for any other text."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdecimal() else None
