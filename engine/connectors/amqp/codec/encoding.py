"""Encoder of the AMQP 1.0 type system: values to bytes, each in its shortest form (OASIS AMQP 1.0, part 1)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from engine.connectors.amqp.codec.values import (
    AmqpError,
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
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

__all__ = ["encode", "encode_list", "encode_pairs"]

_SMALL = 256
_LARGE = 1 << 32
_SMALL_SIGNED = range(-128, 128)
_UINT = struct.Struct(">I")


def encode(value: Any) -> bytes:
    """Encodes a value, its constructor first. A lone surrogate in a string becomes `?`.

    Raises:
        AmqpError: the value has a type that AMQP does not know, or does not fit its type.
    """
    try:
        return _WRITERS[type(value)](value)
    except KeyError as error:
        raise AmqpError(f"{error.args[0].__name__} has no AMQP type, in {value!r:.100}") from error
    except (struct.error, OverflowError) as error:
        raise AmqpError(f"a number in {value!r:.100} does not fit its type {type_name(value)}: {error}") from error


def encode_list(items: list[bytes]) -> bytes:
    """Encodes a list whose items are encoded already."""
    return _compound(0xC0, items) if items else b"\x45"


def encode_pairs(items: list[bytes]) -> bytes:
    """Encodes a map whose keys and values, in turn, are encoded already."""
    return _compound(0xC1, items)


def _compound(code: int, items: list[bytes]) -> bytes:
    content = b"".join(items)
    size = len(content)
    if size < _SMALL - 1 and len(items) < _SMALL:
        return bytes((code, size + 1, len(items))) + content
    return _large(code + 0x10, _UINT.pack(len(items)) + content)


def _variable(code: int) -> Callable[[bytes], bytes]:
    def write(raw: bytes) -> bytes:
        size = len(raw)
        return bytes((code, size)) + raw if size < _SMALL else _large(code + 0x10, raw)

    return write


def _large(code: int, content: bytes) -> bytes:
    if len(content) >= _LARGE:
        raise AmqpError(f"a value of {len(content)} bytes is larger than AMQP can say")
    return bytes((code,)) + _UINT.pack(len(content)) + content


_binary = _variable(0xA0)
_text = _variable(0xA1)
_name = _variable(0xA3)


def _string(value: str) -> bytes:
    return _text(value.encode("utf-8", "replace"))


def _symbol(value: str) -> bytes:
    return (_known_symbol if len(value) <= _LONGEST_KNOWN else _make_symbol)(value)


def _make_symbol(value: str) -> bytes:
    try:
        return _name(value.encode("ascii"))
    except UnicodeEncodeError as error:
        raise AmqpError(f"{value!r:.100} is not a symbol: symbols are ASCII") from error


_LONGEST_KNOWN = 64
_known_symbol = lru_cache(1000)(_make_symbol)
"""Cached `_make_symbol` for short symbols: a program uses the same ones again and again."""


def _number(code: int, layout: str) -> Callable[[Any], bytes]:
    pack = struct.Struct(f">B{layout}").pack
    return lambda value: pack(code, value)


def _shortest(small: int, layout: str, large: int) -> Callable[[int], bytes]:
    """Makes a writer of signed numbers, which uses constructor `small` for numbers that fit one byte."""
    pack = struct.Struct(f">B{layout}").pack
    return lambda value: bytes((small, value & 0xFF)) if value in _SMALL_SIGNED else pack(large, value)


def _unsigned(zero: int, small: int, layout: str, large: int) -> Callable[[int], bytes]:
    pack = struct.Struct(f">B{layout}").pack

    def write(value: int) -> bytes:
        if 0 <= value < _SMALL:
            return bytes((small, value)) if value else bytes((zero,))
        return pack(large, value)

    return write


def _fixed(code: int, size: int) -> Callable[[bytes], bytes]:
    def write(value: bytes) -> bytes:
        if len(value) != size:
            raise AmqpError(f"{type_name(value)} has {size} bytes, not {len(value)}")
        return bytes((code,)) + value

    return write


def _char(value: str) -> bytes:
    if len(value) != 1:
        raise AmqpError(f"a char is one character, not {value!r:.100}")
    return b"\x73" + _UINT.pack(ord(value))


def _list(value: list[Any]) -> bytes:
    return encode_list([_WRITERS[type(item)](item) for item in value])


def _map(value: AmqpMap) -> bytes:
    return encode_pairs([_WRITERS[type(item)](item) for pair in value for item in pair])


def _described(value: Described) -> bytes:
    return b"\0" + _WRITERS[type(value.descriptor)](value.descriptor) + _WRITERS[type(value.value)](value.value)


def _array(value: Array) -> bytes:
    write = _ELEMENTS.get(value.code)
    if write is None:
        raise AmqpError(f"there is no type {value.code:#04x} for the elements of an array")
    descriptor = b"" if value.descriptor is None else b"\0" + encode(value.descriptor)
    content = b"".join([descriptor, bytes((value.code,)), *(write(item) for item in value.values)])
    count = len(value.values)
    if len(content) < _SMALL - 1 and count < _SMALL:
        return bytes((0xE0, len(content) + 1, count)) + content
    return _large(0xF0, _UINT.pack(count) + content)


def _packed(layout: str) -> Callable[[Any], bytes]:
    return struct.Struct(f">{layout}").pack


def _sized(size: int, encoded: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Makes a writer of array elements of variable size: a size field of `size` bytes, then the result of `encoded`."""

    def write(value: Any) -> bytes:
        raw = encoded(value)
        if size == 4:
            return _UINT.pack(len(raw)) + raw
        if len(raw) >= _SMALL:
            raise AmqpError(f"an element of {len(raw)} bytes is too large for its array")
        return bytes((len(raw),)) + raw

    return write


def _counted(size: int, pairs: bool) -> Callable[[Any], bytes]:
    """Makes a writer of array elements that are lists, or maps with `pairs`. Size and count take `size` bytes each."""

    def content(value: Any) -> bytes:
        items = [encode(item) for pair in value for item in pair] if pairs else [encode(item) for item in value]
        if size == 1 and len(items) >= _SMALL:
            raise AmqpError(f"an element with {len(items)} values is too large for its array")
        return (bytes((len(items),)) if size == 1 else _UINT.pack(len(items))) + b"".join(items)

    return _sized(size, content)


def _nested(size: int) -> Callable[[Any], bytes]:
    """Makes a writer of array elements that are arrays themselves, with size and count of `size` bytes each.

    The nested array is first encoded in its shortest form, then its size and count are rewritten in the width that the
    outer array's constructor asks for.
    """

    def content(value: Array) -> bytes:
        raw = _array(value)
        small = raw[0] == 0xE0
        count, rest = (raw[2:3], raw[3:]) if small else (raw[5:9], raw[9:])
        if size == 1 and not small:
            raise AmqpError("an array is too large for the array that it is in")
        return (count.rjust(4, b"\0") if size == 4 else count) + rest

    return _sized(size, content)


_WRITERS: Mapping[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    UByte: _number(0x50, "B"),
    UShort: _number(0x60, "H"),
    UInt: _unsigned(0x43, 0x52, "I", 0x70),
    ULong: _unsigned(0x44, 0x53, "Q", 0x80),
    Byte: _number(0x51, "b"),
    Short: _number(0x61, "h"),
    Int: _shortest(0x54, "i", 0x71),
    int: _shortest(0x55, "q", 0x81),
    Float: _number(0x72, "f"),
    float: _number(0x82, "d"),
    Decimal32: _fixed(0x74, 4),
    Decimal64: _fixed(0x84, 8),
    Decimal128: _fixed(0x94, 16),
    Char: _char,
    Timestamp: _number(0x83, "q"),
    UUID: lambda value: b"\x98" + value.bytes,
    bytes: _binary,
    str: _string,
    Symbol: _symbol,
    list: _list,
    AmqpMap: _map,
    Array: _array,
    Described: _described,
}
"""Writers of whole values, constructor included, by Python type."""

_UTF8: Callable[[str], bytes] = lambda value: value.encode("utf-8", "replace")  # noqa: E731
_ASCII: Callable[[str], bytes] = lambda value: value.encode("ascii", "replace")  # noqa: E731
_AS_IS: Callable[[bytes], bytes] = bytes

_ELEMENTS: Mapping[int, Callable[[Any], bytes]] = {
    **dict.fromkeys((0x40, 0x41, 0x42, 0x43, 0x44, 0x45), lambda _: b""),
    0x56: _packed("?"),
    0x50: _packed("B"),
    0x60: _packed("H"),
    0x70: _packed("I"),
    0x52: _packed("B"),
    0x80: _packed("Q"),
    0x53: _packed("B"),
    0x51: _packed("b"),
    0x61: _packed("h"),
    0x71: _packed("i"),
    0x54: _packed("b"),
    0x81: _packed("q"),
    0x55: _packed("b"),
    0x72: _packed("f"),
    0x82: _packed("d"),
    **dict.fromkeys((0x74, 0x84, 0x94), _AS_IS),
    0x73: lambda value: _UINT.pack(ord(value)),
    0x83: _packed("q"),
    0x98: lambda value: value.bytes,
    0xA0: _sized(1, _AS_IS),
    0xB0: _sized(4, _AS_IS),
    0xA1: _sized(1, _UTF8),
    0xB1: _sized(4, _UTF8),
    0xA3: _sized(1, _ASCII),
    0xB3: _sized(4, _ASCII),
    0xC0: _counted(1, pairs=False),
    0xD0: _counted(4, pairs=False),
    0xC1: _counted(1, pairs=True),
    0xD1: _counted(4, pairs=True),
    0xE0: _nested(1),
    0xF0: _nested(4),
}
"""Writers of array elements, by the elements' constructor. An array holds that once, so the writers leave it out."""
