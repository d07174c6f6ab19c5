"""What the types of AMQP 1.0 are in Python, each kept apart from all others (OASIS AMQP 1.0, part 1, section 1.6).

The common ones are Python's own: `None`, `bool`, `int` (long), `float` (double), `str` (string), `bytes` (binary),
`UUID`, `list`. The others are subclasses, so that an ubyte computes like a number and still is no int. Two values of
different types may be equal, as `UInt(1) == 1`: where it matters, compare types as well.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "AmqpError",
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float",
    "Int",
    "Map",
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
    """Bytes are not what AMQP 1.0 says they should be, or a value has no encoding. One line for users."""


class UByte(int):
    """8 bits, unsigned."""

    __slots__ = ()


class UShort(int):
    """16 bits, unsigned."""

    __slots__ = ()


class UInt(int):
    """32 bits, unsigned."""

    __slots__ = ()


class ULong(int):
    """64 bits, unsigned."""

    __slots__ = ()


class Byte(int):
    """8 bits, signed."""

    __slots__ = ()


class Short(int):
    """16 bits, signed."""

    __slots__ = ()


class Int(int):
    """32 bits, signed; a plain `int` is a long."""

    __slots__ = ()


class Timestamp(int):
    """Milliseconds since 1970."""

    __slots__ = ()


class Float(float):
    """IEEE 754 single precision; a plain `float` is a double."""

    __slots__ = ()


class Char(str):
    """One Unicode character; from Java it may be half of a pair of surrogates."""

    __slots__ = ()


class Symbol(str):
    """A name from some domain, ASCII."""

    __slots__ = ()


class Decimal32(bytes):
    """IEEE 754 decimal, its four bytes as they are."""

    __slots__ = ()


class Decimal64(bytes):
    """The same with eight bytes."""

    __slots__ = ()


class Decimal128(bytes):
    """The same with 16 bytes."""

    __slots__ = ()


class Map(list[tuple[Any, Any]]):
    """Pairs of key and value in their order. Keys of AMQP may be of any type, also of ones that Python cannot hash."""

    __slots__ = ()


class Array(NamedTuple):
    """Values of one type, not to be changed: those without bytes of their own are shared."""

    code: int
    """The constructor of every element, as it stands on the wire."""
    values: tuple[Any, ...]
    descriptor: Any = None
    """Of every element; None: they are not described."""


class Described(NamedTuple):
    """A value of a type that somebody added."""

    descriptor: Any
    value: Any


_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "long",
    float: "double",
    str: "string",
    bytes: "binary",
    Described: "described type",
}


def type_name(value: object) -> str:
    """What AMQP calls the type of a value, for people."""
    return _NAMES.get(type(value)) or type(value).__name__.lower()
