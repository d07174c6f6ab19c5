"""Scalars of JSON bodies as values of a schema (`jmsbridge.serdes.BodyValues`); None: not what is asked for."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from datetime import date
from decimal import Decimal
from math import isinf
from typing import TYPE_CHECKING, Any

from engine.schemas.body_json import WrittenNumber, written_number
from routes.predicate.numbers import single_of

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["base64_bytes", "days", "field_of", "flag", "integer", "number", "point_in_time", "real", "unscaled"]

_MOST_DIGITS = 1_000
_INTEGER_DIGITS = 20
_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
_ONLY_DATE = re.compile(_DATE)
_TIME = re.compile(
    rf"{_DATE}T([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9])(?:\.([0-9]+))?"
    r"(?:Z|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
_EPOCH = date(1970, 1, 1).toordinal()
_SECONDS_OF_DAY = 86_400


def number(value: Any, from_xml: bool) -> WrittenNumber | None:
    """Returns the number that a value is; in JSON of XML also one that its text writes."""
    if isinstance(value, WrittenNumber):
        return value
    return written_number(value) if from_xml and isinstance(value, str) else None


def flag(value: Any, from_xml: bool) -> bool | None:
    """Returns the truth value that a value is; in JSON of XML also one that its text writes."""
    if isinstance(value, bool):
        return value
    is_text = from_xml and isinstance(value, str) and not isinstance(value, WrittenNumber)
    return {"true": True, "1": True, "false": False, "0": False}.get(value) if is_text else None


def integer(written: WrittenNumber | None, least: int, most: int) -> int | None:
    """Returns the integer that a number is, if it lies within two others."""
    whole = None if written is None else _integer(Decimal(written), _INTEGER_DIGITS)
    return whole if whole is not None and least <= whole <= most else None


def unscaled(written: WrittenNumber | None, precision: int, scale: int) -> int | None:
    """Returns the digits of a number as a decimal of a precision and a scale."""
    if written is None:
        return None
    sign, digits, exponent = Decimal(written).as_tuple()
    return _integer(Decimal((sign, digits, int(exponent) + scale)), min(precision, _MOST_DIGITS))


def _integer(exact: Decimal, digits: int) -> int | None:
    if not exact:
        return 0
    # A look at the digits first: no power of ten is computed that has more of them.
    if not 0 <= exact.adjusted() < digits:
        return None
    whole = int(exact)
    return whole if whole == exact else None


def real(written: WrittenNumber | None, is_single: bool) -> float | None:
    """Returns the nearest number of single or double precision."""
    if written is None:
        return None
    rounded = single_of(written) if is_single else float(written)
    return None if isinf(rounded) else rounded


def base64_bytes(value: Any) -> bytes | None:
    """Returns the bytes of a text in base64, as an encoder writes it."""
    if not isinstance(value, str) or isinstance(value, WrittenNumber):
        return None
    try:
        decoded = b64decode(value, validate=True)
    except ValueError:
        return None
    return decoded if b64encode(decoded).decode() == value else None


def days(value: Any) -> int | None:
    """Returns the days since 1970 of a text such as 2026-11-28."""
    match = _ONLY_DATE.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else _days(match)


def _days(match: re.Match[str]) -> int | None:
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - _EPOCH
    except ValueError:
        return None


def point_in_time(value: Any, digits: int) -> int | None:
    """Returns the time since 1970 of a text such as 2026-11-28T04:00:00.5+01:00, in units of 10 ** -digits seconds."""
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    day = None if match is None else _days(match)
    if match is None or day is None:
        return None
    fraction = match[7] or ""
    if fraction[digits:].strip("0"):
        return None
    offset = 0 if match[8] is None else _seconds(match, 9) * (-1 if match[8] == "-" else 1)
    seconds = day * _SECONDS_OF_DAY + _seconds(match, 4) + int(match[6]) - offset
    return seconds * int(10**digits) + int(fraction[:digits].ljust(digits, "0"))


def _seconds(match: re.Match[str], hours: int) -> int:
    return int(match[hours]) * 3_600 + int(match[hours + 1]) * 60


def field_of(member: str, from_xml: bool, fields: Container[str]) -> str | None:
    """Returns the field that a member stands for.

    In JSON of XML an attribute has the name of its field behind an @, and the text beside attributes stands for a field
    'value' or 'text', if there is only one of them.
    """
    if member in fields:
        return member
    if from_xml and member == "#text" and ("value" in fields) != ("text" in fields):
        return "value" if "value" in fields else "text"
    return member[1:] if from_xml and member.startswith("@") and member[1:] in fields else None
