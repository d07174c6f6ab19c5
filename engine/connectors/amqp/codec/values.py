"""Python classes for the types of AMQP 1.0, one for each type (OASIS AMQP 1.0, part 1, section 1.6).

The common types are Python's own: `None`, `bool`, `int` (long), `float` (double), `str` (string), `bytes` (binary),
`UUID`, `list`. The others are subclasses: a `UByte` computes like any number and still has a type of its own. Values of
different types may be equal, as in `UInt(1) == 1`; compare the types as well where the type matters.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "AmqpError",
    "AmqpMap",
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float",
    "Int",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "type_name",
]


class AmqpError(ValueError):
    """Bytes violate the AMQP 1.0 encoding, or a value cannot be encoded. The text is one line for users."""


class UByte(int):
    """An unsigned 8-bit integer."""

    __slots__ = ()


class UShort(int):
    """An unsigned 16-bit integer."""

    __slots__ = ()


class UInt(int):
    """An unsigned 32-bit integer."""

    __slots__ = ()


class ULong(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Byte(int):
    """A signed 8-bit integer."""

    __slots__ = ()


class Short(int):
    """A signed 16-bit integer."""

    __slots__ = ()


class Int(int):
    """A signed 32-bit integer; a plain `int` is a long."""

    __slots__ = ()


class Timestamp(int):
    """A point in time, milliseconds since 1970."""

    __slots__ = ()


class Float(float):
    """An IEEE 754 single-precision number; a plain `float` is a double."""

    __slots__ = ()


class Char(str):
    """A Unicode character; from a Java client it may be one half of a surrogate pair."""

    __slots__ = ()


class Symbol(str):
    """A symbol: an ASCII name from some domain."""

    __slots__ = ()


class Decimal32(bytes):
    """An IEEE 754 decimal as its four raw bytes."""

    __slots__ = ()


class Decimal64(bytes):
    """An IEEE 754 decimal as its eight raw bytes."""

    __slots__ = ()


class Decimal128(bytes):
    """An IEEE 754 decimal as its 16 raw bytes."""

    __slots__ = ()


class AmqpMap(list[tuple[Any, Any]]):
    """A map as pairs of key and value, in order. AMQP allows keys that Python cannot hash, so it is not a dict."""

    __slots__ = ()


class Array(NamedTuple):
    """Values of one type. Immutable, because arrays whose elements take no bytes share their values."""

    code: int
    """Constructor of every element, as on the wire."""
    values: tuple[Any, ...]
    descriptor: Any = None
    """Descriptor of every element; None if the elements are not described."""


class Described(NamedTuple):
    """A value of a described type: a descriptor, which names the type, and the underlying value."""

    descriptor: Any
    value: Any


_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",
    AmqpMap: "map",
    Described: "described type",
}


def type_name(value: object) -> str:
    """Returns the AMQP name of a value's type, for messages to users."""
    return _NAMES.get(type(value)) or type(value).__name__.lower()
