"""Formats numbers, rates, durations and sizes for display; unknown values (None, NaN) become a dash."""

from __future__ import annotations

from math import isnan

__all__ = ["duration", "number", "rate", "size"]

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
_BINARY = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
# The bounds below are those of the rounded amounts, so that none reads `1000 ms` or `1024.0 KiB`.
_UNKNOWN = "\N{EN DASH}"


def number(value: float | None) -> str:
    """A number without decimals: `1,234`."""
    return _UNKNOWN if value is None or isnan(value) else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """A number of messages per second: `3.1/s`, `1,234/s`, `120k/s`."""
    if value is None or isnan(value):
        return _UNKNOWN
    if value == 0:
        return "0/s"
    if value < 0.1:
        return "< 0.1/s"
    if value < 9.95:
        return f"{value:.1f}/s"
    return f"{value:,.0f}/s" if value < 99_999.5 else f"{value / 1000:,.0f}k/s"


def duration(seconds: float | None) -> str:
    """A number of seconds, in its two largest units: `3 min 5 s`."""
    if seconds is None or isnan(seconds):
        return _UNKNOWN
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    left, parts = round(seconds), []
    for unit, length in _UNITS:
        if left >= length:
            parts.append(f"{left // length} {unit}")
            left %= length
    return " ".join(parts[:2])


def size(count: float | None) -> str:
    """A number of bytes: `512 B`, `1.5 MiB`."""
    if count is None or isnan(count):
        return _UNKNOWN
    if count < 1023.5:
        return f"{count:.0f} B"
    unit = next((unit for unit in _BINARY if count < 1023.95 * _BINARY[unit]), "GiB")
    return f"{count / _BINARY[unit]:.1f} {unit}"
