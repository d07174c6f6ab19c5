"""Numbers of predicates: literals in Java's spelling, number texts in messages, single precision.

`evaluate` computes with these functions; `jmsbridge.predicate.Numbers` (`jvm/spark`) accepts the same texts as numbers.
Exact numbers have 64 bits; approximate ones are doubles, or singles held in a Python float.
"""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal

__all__ = [
    "INTEGER_TEXT",
    "LONG_MAX",
    "LONG_MIN",
    "NUMBER_TEXT",
    "SPECIAL_TEXT",
    "decimal",
    "exact",
    "fits",
    "literal",
    "single",
    "single_of",
    "written",
]

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

INTEGER_TEXT = "[+-]?[0-9]+"
"""An integer in a message: ASCII digits, optional sign, no blanks. Python and Java read the pattern alike."""
NUMBER_TEXT = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Any number in a message, integers among them."""
SPECIAL_TEXT = "NaN|-?Infinity"
"""Values of a property declared as float or double that are not numbers."""

DIGITS = 38
"""Most significant digits of a number of a body; one with more has no value."""
EXPONENT = 6_144
"""Greatest power of ten of the first digit of a number of a body, and of its inverse, as decimals of 128 bits have."""

_DIGITS = "[0-9](?:[0-9_]*[0-9])?"
_EXPONENT = f"[eE][+-]?{_DIGITS}"
_APPROXIMATE = re.compile(
    rf"(?:{_DIGITS}\.(?:{_DIGITS})?(?:{_EXPONENT})?|\.{_DIGITS}(?:{_EXPONENT})?|{_DIGITS}{_EXPONENT}|{_DIGITS}(?=[fFdD]))"
    "([fFdD]?)"
)
_PATTERNS = (
    (re.compile(r"0[xX]([0-9a-fA-F](?:[0-9a-fA-F_]*[0-9a-fA-F])?)[lL]?"), 16),
    (re.compile(r"0[bB]([01](?:[01_]*[01])?)[lL]?"), 2),
    (re.compile(r"(0(?:[0-7_]*[0-7])?)[lL]?"), 8),
)
_DECIMAL = re.compile(r"([1-9](?:[0-9_]*[0-9])?)[lL]?")
_INTEGER = re.compile(INTEGER_TEXT)
_PARTS = re.compile(r"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?)(?=[0-9])0*([0-9]*))?")


def literal(text: str) -> tuple[int | float, bool] | None:
    """Reads a Java number literal without a sign; returns its value, and whether it is of single precision.

    Returns None for a text that is not a number, or one that a double cannot hold (Java Language Specification, 3.10.1
    and 3.10.2). Hexadecimal, octal and binary literals are patterns of 64 bits, so that 0xFFFFFFFFFFFFFFFF is -1. A
    decimal one may be of any size: the caller knows whether a minus stands before it.
    """
    for pattern, base in _PATTERNS:
        if match := pattern.fullmatch(text):
            value = int(match[1].replace("_", ""), base)
            return (value - 2**64 if LONG_MAX < value < 2**64 else value), False
    if match := _DECIMAL.fullmatch(text):
        return _decimal(match[1].replace("_", "")), False
    if match := _APPROXIMATE.fullmatch(text):
        return _approximate(text.replace("_", "").rstrip("fFdD"), match[1] in ("f", "F"))
    return None


def written(text: str) -> Decimal | None:
    """Returns the number of a literal of double precision as it is written; None for other literals."""
    match = _APPROXIMATE.fullmatch(text)
    return Decimal(text.replace("_", "").rstrip("dD")) if match and match[1] not in ("f", "F") else None


def exact(text: str) -> int | None:
    """Returns the integer in a message's text; None if the text is not an integer or does not fit 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    value = _decimal(text.lstrip("+-").lstrip("0") or "0")
    value = -value if text.startswith("-") else value
    return value if fits(value) else None


def fits(value: int) -> bool:
    """Returns True if an exact number fits 64 bits."""
    return LONG_MIN <= value <= LONG_MAX


def single(value: int | float | Decimal) -> float:
    """Returns the nearest number of single precision, ties to even, as Java's casts and `Float.parseFloat` give it."""
    nearest = float(value)
    if nearest == 0 or not math.isfinite(nearest):
        return nearest
    if not isinstance(value, float) and Decimal(nearest) != (real := Decimal(value)):
        # Rounding twice can go wrong by one; the odd neighbour on the near side of the real value cannot.
        if abs(Decimal(nearest)) > abs(real):
            nearest = math.nextafter(nearest, 0.0)
        (bits,) = struct.unpack("<q", struct.pack("<d", nearest))
        (nearest,) = struct.unpack("<d", struct.pack("<q", bits | 1))
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", nearest))
    except OverflowError:
        return math.copysign(math.inf, nearest)
    return float(rounded)


def single_of(text: str) -> float:
    """Returns the number of single precision nearest to that of a text, rounded once."""
    double = float(text)
    # Decimal cannot hold every exponent; a number that a double cannot hold, a single cannot hold either.
    return double if double == 0 or math.isinf(double) else single(Decimal(text))


def _decimal(digits: str) -> int:
    # Python refuses to convert thousands of digits; a number with more digits than 2**64 is out of range in any case.
    return int(digits) if len(digits) <= len(str(2**64)) else 2**64


def _approximate(text: str, is_single: bool) -> tuple[float, bool] | None:
    value = single_of(text) if is_single else float(text)
    if math.isinf(value) or (value == 0 and text.lower().partition("e")[0].strip("0.")):
        return None
    return value, is_single


def decimal(text: str) -> Decimal | None:
    """Returns the number that a text of a body writes, as `NUMBER_TEXT`; None for other texts.

    It is also None beyond `DIGITS` and `EXPONENT`. Zero has no sign.
    """
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return None
    sign, whole, point_and_more, fraction_alone, exponent_sign, exponent_digits = parts.groups("")
    fraction = point_and_more or fraction_alone
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return Decimal(0)
    exponent = -len(fraction)
    significant = digits.rstrip("0")
    if len(significant) > DIGITS or len(exponent_digits) > len(str(EXPONENT)) + len(str(len(text))):
        return None
    exponent += int(f"{exponent_sign}{exponent_digits or 0}") + len(digits) - len(significant)
    if abs(exponent + len(significant) - 1) > EXPONENT:
        return None
    return Decimal((int(sign == "-"), tuple(map(int, significant)), exponent))
