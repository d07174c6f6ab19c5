"""Conversion of AMQP values to JMS values and back, for entries of bodies and for properties.

A message of a plain AMQP client is read by the table of the JMS mapping, in which a short and a char become an `int`. A
JMS client marks its messages (see `annotations`), and its values keep their types: `exact` conversion.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from engine.connectors.amqp.codec.values import (
    Byte,
    Char,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    type_name,
)
from engine.jms_values import BOOLEANS, CHAR, LARGEST_FLOAT, NULL, PARSERS, MapEntry, shown, single
from routes.properties import JmsType, Property

__all__ = ["ERROR_SUFFIX", "ERROR_TEXT", "UnfitError", "entry", "property_of", "to_property", "value_of"]


ERROR_SUFFIX = "_ERROR"
"""End of the name of a property that tells which value JMS cannot hold."""
ERROR_TEXT = "no JMS value: "
"""Beginning of the text of such a property."""


class UnfitError(ValueError):
    """JMS cannot hold an AMQP value. The text, for users, has the value's AMQP type and the value."""


# Aliases, because looking up a member of an enum is slow in Python 3.11.
_BOOLEAN, _BYTE, _SHORT, _INT, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES = JmsType
_MOST_LONG = (1 << 63) - 1

Converter = Callable[[Any], MapEntry]


def _of(kind: str) -> Converter:
    return lambda value: MapEntry(kind, value)


def _int_of(kind: str) -> Converter:
    return lambda value: MapEntry(kind, int(value))


def _ulong(value: int) -> MapEntry:
    if value > _MOST_LONG:
        raise UnfitError(f"ulong {int(value)} does not fit a long")
    return MapEntry(_LONG.value, int(value))


_TABLE: Mapping[type, Converter] = {
    bool: _of(_BOOLEAN.value),
    Byte: _int_of(_BYTE.value),
    UByte: _int_of(_INT.value),
    Short: _int_of(_INT.value),
    UShort: _int_of(_INT.value),
    Int: _int_of(_INT.value),
    UInt: _int_of(_LONG.value),
    int: _of(_LONG.value),
    ULong: _ulong,
    float: _of(_DOUBLE.value),
    Float: lambda value: MapEntry(_FLOAT.value, float(value)),
    Char: lambda value: MapEntry(_INT.value, ord(value)),
    str: _of(_STRING.value),
    Symbol: lambda value: MapEntry(_STRING.value, str(value)),
    Timestamp: _int_of(_LONG.value),
    bytes: _of(_BYTES.value),
    type(None): lambda _: MapEntry(NULL, None),
}
"""The specification's table, row by row, and null, which the specification leaves out."""
_EXACT: Mapping[type, Converter] = {
    **_TABLE,
    Short: _int_of(_SHORT.value),
    Char: lambda value: MapEntry(CHAR, str(value)),
}


def entry(value: Any, *, exact: bool) -> MapEntry:
    """Converts an AMQP value to a JMS value: by the table, or keeping its type if `exact` (from a JMS client).

    Raises:
        UnfitError: JMS has no such value.
    """
    convert = (_EXACT if exact else _TABLE).get(type(value))
    if convert is None:
        raise UnfitError(f"{type_name(value)} {str(value)[:200]}")
    return convert(value)


def _real(kind: JmsType) -> Callable[[float], Property]:
    return lambda value: Property(shown(single(value) if kind is _FLOAT else float(value)), kind)


_TRUE, _FALSE = Property("true", _BOOLEAN), Property("false", _BOOLEAN)
_PROPERTIES: Mapping[type, Callable[[Any], Property]] = {
    str: lambda value: Property(value, _STRING),
    Symbol: lambda value: Property(str(value), _STRING),
    bool: lambda value: _TRUE if value else _FALSE,
    int: lambda value: Property(str(value), _LONG),
    Int: lambda value: Property(str(value), _INT),
    Byte: lambda value: Property(str(value), _BYTE),
    float: _real(_DOUBLE),
    Float: _real(_FLOAT),
    bytes: lambda value: Property(base64.b64encode(value).decode("ascii"), _BYTES),
}
"""Fast converters for the most frequent types of properties; `entry` converts the others."""


def to_property(value: Any, *, exact: bool) -> Property:
    """Converts an AMQP value other than null to a JMS property.

    Raises:
        UnfitError: JMS has no such value.
    """
    if (make := _PROPERTIES.get(type(value))) is not None:
        return make(value)
    kind, plain = entry(value, exact=exact)
    # JMS has no char properties; a text is nearest.
    return Property(str(plain), _STRING if kind == CHAR else JmsType(kind))


def _boolean(text: str) -> bool | None:
    return BOOLEANS.get(text.lower())


def _single(text: str) -> Float | None:
    value = PARSERS[_FLOAT](text)
    return None if LARGEST_FLOAT <= abs(value) < inf else Float(value)


def _binary(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


_READERS: Mapping[JmsType | None, Callable[[str], Any]] = {
    _BOOLEAN: _boolean,
    _BYTE: lambda text: Byte(PARSERS[_BYTE](text)),
    _SHORT: lambda text: Short(PARSERS[_SHORT](text)),
    _INT: lambda text: Int(PARSERS[_INT](text)),
    _LONG: PARSERS[_LONG],
    _FLOAT: _single,
    _DOUBLE: PARSERS[_DOUBLE],
    _BYTES: _binary,
}


def property_of(found: Property) -> Any:
    """Converts a JMS property to an AMQP value: a string if it has no type, or its text does not fit the type."""
    read = _READERS.get(found.type)
    if read is None:
        return found.text
    try:
        value = read(found.text)
    except ValueError:
        return found.text
    return found.text if value is None else value


_VALUES: Mapping[str, Callable[[Any], Any]] = {
    _BYTE.value: Byte,
    _SHORT.value: Short,
    _INT.value: Int,
    _FLOAT.value: Float,
    CHAR: Char,
}


def value_of(entry: MapEntry) -> Any:
    """Converts an entry of a JMS body to an AMQP value."""
    make = _VALUES.get(entry.kind)
    return entry.value if make is None else make(entry.value)
