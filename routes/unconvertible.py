"""The error of bodies that cannot be converted, and their largest size."""

from __future__ import annotations

__all__ = ["LARGEST", "TOO_LARGE", "UnconvertibleBodyError"]

LARGEST = 4 * 2**20
"""Most bytes of a body before and after each step."""
TOO_LARGE = f"it has more than {LARGEST:,} bytes"


class UnconvertibleBodyError(ValueError):
    """Error for a body to which a step cannot be applied."""
