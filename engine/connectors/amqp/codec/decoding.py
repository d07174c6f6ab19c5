"""Decoder of the AMQP 1.0 type system: bytes to values (OASIS AMQP 1.0, part 1).

There is one function for each constructor, and a table finds it by the constructor's byte, which makes decoding fast. A
size or count in the data is checked against the bytes that are there before anything is allocated, and values nest at
most `MOST_DEPTH` deep.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
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
)

__all__ = ["MOST_DEPTH", "READERS", "UNREADABLE", "decode", "decode_at", "unreadable"]

MOST_DEPTH = 64
"""Largest nesting depth of compound and described values."""

Reader = Callable[[bytes, int, int], tuple[Any, int]]
"""Takes the bytes, the offset behind the constructor, and the nesting depth that is left; returns the value and the
offset behind it."""

UNREADABLE = (IndexError, struct.error, UnicodeDecodeError)
"""Exceptions, beside `AmqpError`, that a reader raises where the bytes end early or a string is not UTF-8."""

_MOST_EMPTY = 4096
_LAST_CHAR = 0x10FFFF


def decode(data: bytes) -> Any:
    """Decodes bytes that hold exactly one value.

    Raises:
        AmqpError: the bytes are not a value, or more bytes follow it.
    """
    value, end = decode_at(data, 0)
    if end != len(data):
        raise AmqpError(f"{len(data) - end} bytes are left after the value, from byte {end}")
    return value


def decode_at(data: bytes, offset: int) -> tuple[Any, int]:
    """Decodes the value at an offset; returns it and the offset behind it.

    Raises:
        AmqpError: no value can be read at the offset.
    """
    try:
        return READERS[data[offset]](data, offset + 1, MOST_DEPTH)
    except UNREADABLE as error:
        raise unreadable(error, data, offset) from error


def unreadable(error: Exception, data: bytes, offset: int) -> AmqpError:
    """Makes the `AmqpError` for an exception of `UNREADABLE` that was raised in the value at an offset."""
    if isinstance(error, UnicodeDecodeError):
        return AmqpError(f"a string in the value at byte {offset} is not UTF-8: {error.reason}")
    return _cut_off(data, offset)


def _cut_off(data: bytes, offset: int) -> AmqpError:
    return AmqpError(f"the value at byte {offset} is cut off: there are {len(data)} bytes")


def _constant(value: Any) -> Reader:
    def read(_: bytes, offset: int, __: int) -> tuple[Any, int]:
        return value, offset

    return read


def _small(values: Sequence[Any]) -> Reader:
    """Makes a reader of one-byte values, which picks from the 256 objects prepared in `values`."""

    def read(data: bytes, offset: int, _: int) -> tuple[Any, int]:
        return values[data[offset]], offset + 1

    return read


def _number(layout: str, make: Callable[[Any], Any] | None = None) -> Reader:
    packed = struct.Struct(layout)
    unpack, size = packed.unpack_from, packed.size
    if make is None:
        return lambda data, offset, _: (unpack(data, offset)[0], offset + size)
    return lambda data, offset, _: (make(unpack(data, offset)[0]), offset + size)


def _fixed(size: int, make: Callable[[bytes], Any]) -> Reader:
    def read(data: bytes, offset: int, _: int) -> tuple[Any, int]:
        end = offset + size
        if end > len(data):
            raise _cut_off(data, offset - 1)
        return make(data[offset:end]), end

    return read


def _boolean(data: bytes, offset: int, _: int) -> tuple[bool, int]:
    value = data[offset]
    if value > 1:
        raise AmqpError(f"a boolean is 0 or 1, not {value}, at byte {offset}")
    return value == 1, offset + 1


def _char(data: bytes, offset: int, _: int) -> tuple[Char, int]:
    code = _UINT.unpack_from(data, offset)[0]
    if code > _LAST_CHAR:
        raise AmqpError(f"there is no character {code:#x}, at byte {offset}")
    return Char(chr(code)), offset + 4


def _binary8(data: bytes, offset: int, _: int) -> tuple[bytes, int]:
    offset += 1
    end = offset + data[offset - 1]
    if end > len(data):
        raise _cut_off(data, offset - 2)
    return data[offset:end], end


def _binary32(data: bytes, offset: int, _: int) -> tuple[bytes, int]:
    offset += 4
    end = offset + _UINT.unpack_from(data, offset - 4)[0]
    if end > len(data):
        raise _cut_off(data, offset - 5)
    return data[offset:end], end


def _string8(data: bytes, offset: int, _: int) -> tuple[str, int]:
    offset += 1
    end = offset + data[offset - 1]
    if end > len(data):
        raise _cut_off(data, offset - 2)
    return data[offset:end].decode(), end


def _string32(data: bytes, offset: int, depth: int) -> tuple[str, int]:
    raw, end = _binary32(data, offset, depth)
    return raw.decode(), end


def _symbol(read_bytes: Reader) -> Reader:
    def read(data: bytes, offset: int, depth: int) -> tuple[Symbol, int]:
        raw, end = read_bytes(data, offset, depth)
        return (_known_symbol if len(raw) <= _LONGEST_KNOWN else _make_symbol)(raw), end

    return read


def _make_symbol(raw: bytes) -> Symbol:
    try:
        return Symbol(raw.decode("ascii"))
    except UnicodeDecodeError as error:
        raise AmqpError(f"a symbol is ASCII, not {raw[:100]!r}") from error


_LONGEST_KNOWN = 64
_known_symbol = lru_cache(1000)(_make_symbol)
"""Cached `_make_symbol` for short symbols: a program uses the same ones again and again."""


def _list8(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
    return _items(data, offset + 2, offset + 1 + data[offset], data[offset + 1], depth)


def _list32(data: bytes, offset: int, depth: int) -> tuple[list[Any], int]:
    size, count = _UINTS.unpack_from(data, offset)
    return _items(data, offset + 8, offset + 4 + size, count, depth)


def _items(data: bytes, offset: int, end: int, count: int, depth: int) -> tuple[list[Any], int]:
    start = offset
    if depth <= 0 or end > len(data) or count > end - offset:
        raise _unlikely(data, offset, end, count, depth)
    values: list[Any] = []
    for _ in range(count):
        code = data[offset]
        if code == _STRING8:
            # Short strings are the most frequent values beside null, and a call costs as much as reading one, so they
            # are read in place. A string that ends too far shows below, where `offset` is compared with `end`.
            begin = offset + 2
            offset = begin + data[offset + 1]
            values.append(data[begin:offset].decode())
        elif code == _NULL:
            values.append(None)
            offset += 1
        else:
            value, offset = READERS[code](data, offset + 1, depth - 1)
            values.append(value)
    if offset != end:
        raise _other_size(start, offset, end)
    return values, end


def _map8(data: bytes, offset: int, depth: int) -> tuple[AmqpMap, int]:
    return _pairs(data, offset + 2, offset + 1 + data[offset], data[offset + 1], depth)


def _map32(data: bytes, offset: int, depth: int) -> tuple[AmqpMap, int]:
    size, count = _UINTS.unpack_from(data, offset)
    return _pairs(data, offset + 8, offset + 4 + size, count, depth)


def _pairs(data: bytes, offset: int, end: int, count: int, depth: int) -> tuple[AmqpMap, int]:
    start = offset
    if depth <= 0 or end > len(data) or count > end - offset:
        raise _unlikely(data, offset, end, count, depth)
    if count % 2:
        raise AmqpError(f"the map at byte {offset} has a key without a value")
    pairs = AmqpMap()
    for _ in range(count // 2):
        code = data[offset]
        if code == _STRING8:
            # Read in place, as in `_items`.
            begin = offset + 2
            offset = begin + data[offset + 1]
            key: Any = data[begin:offset].decode()
        else:
            key, offset = READERS[code](data, offset + 1, depth - 1)
        value, offset = READERS[data[offset]](data, offset + 1, depth - 1)
        pairs.append((key, value))
    if offset != end:
        raise _other_size(start, offset, end)
    return pairs, end


def _array8(data: bytes, offset: int, depth: int) -> tuple[Array, int]:
    return _elements(data, offset + 2, offset + 1 + data[offset], data[offset + 1], depth)


def _array32(data: bytes, offset: int, depth: int) -> tuple[Array, int]:
    size, count = _UINTS.unpack_from(data, offset)
    return _elements(data, offset + 8, offset + 4 + size, count, depth)


def _elements(data: bytes, offset: int, end: int, count: int, depth: int) -> tuple[Array, int]:
    start = offset
    if depth <= 0 or end > len(data):
        raise _unlikely(data, offset, end, 0, depth)
    descriptor = None
    if data[offset] == _DESCRIBED:
        descriptor, offset = READERS[data[offset + 1]](data, offset + 2, depth - 1)
    code = data[offset]
    read = READERS[code]
    offset += 1
    if code == _DESCRIBED:
        raise AmqpError(f"the elements of the array at byte {start} are described twice")
    if code in _WITHOUT_BYTES:
        if count > _MOST_EMPTY:
            raise AmqpError(f"the array at byte {start} says it has {count} elements, and no bytes for them")
        values = _repeated(code, count)
    else:
        if count > end - offset:
            raise _unlikely(data, offset, end, count, depth)
        elements = []
        for _ in range(count):
            value, offset = read(data, offset, depth - 1)
            elements.append(value)
        values = tuple(elements)
    if offset != end:
        raise _other_size(start, offset, end)
    return Array(code, values, descriptor), end


@lru_cache(256)
def _repeated(code: int, count: int) -> tuple[Any, ...]:
    """Returns `count` references to the one value of a constructor without bytes, such as null or true.

    The cached tuple is shared, so that arrays of a few bytes cannot claim memory by a large count.
    """
    return (READERS[code](b"", 0, 0)[0],) * count


def _described(data: bytes, offset: int, depth: int) -> tuple[Described, int]:
    if depth <= 0:
        raise _too_deep(offset)
    descriptor, offset = READERS[data[offset]](data, offset + 1, depth - 1)
    value, offset = READERS[data[offset]](data, offset + 1, depth - 1)
    return Described(descriptor, value), offset


def _unknown(data: bytes, offset: int, _: int) -> tuple[Any, int]:
    # The unknown constructor stands before `offset`, also where it is the constructor of an array's elements.
    raise AmqpError(f"there is no type {data[offset - 1]:#04x}, at byte {offset - 1}")


def _unlikely(data: bytes, offset: int, end: int, count: int, depth: int) -> AmqpError:
    """Makes the error for a compound value that is refused before its first element is read."""
    if depth <= 0:
        return _too_deep(offset)
    if end > len(data):
        return AmqpError(f"the value at byte {offset} should end at byte {end}, but there are {len(data)} bytes")
    return AmqpError(f"the value at byte {offset} says it has {count} elements, in {end - offset} bytes")


def _too_deep(offset: int) -> AmqpError:
    return AmqpError(f"values are nested deeper than {MOST_DEPTH} at byte {offset}")


def _other_size(start: int, offset: int, end: int) -> AmqpError:
    return AmqpError(f"the elements of the value at byte {start} end at byte {offset}, its size says {end}")


_UINT = struct.Struct(">I")
_UINTS = struct.Struct(">II")
_DESCRIBED = 0x00
_NULL, _STRING8 = 0x40, 0xA1
_WITHOUT_BYTES = frozenset((0x40, 0x41, 0x42, 0x43, 0x44, 0x45))
_SIGNED = [*range(128), *range(-128, 0)]

_TABLE: dict[int, Reader] = {
    _DESCRIBED: _described,
    0x40: _constant(None),
    0x41: _constant(True),
    0x42: _constant(False),
    0x56: _boolean,
    0x50: _small([UByte(number) for number in range(256)]),
    0x60: _number(">H", UShort),
    0x70: _number(">I", UInt),
    0x52: _small([UInt(number) for number in range(256)]),
    0x43: _constant(UInt(0)),
    0x80: _number(">Q", ULong),
    0x53: _small([ULong(number) for number in range(256)]),
    0x44: _constant(ULong(0)),
    0x51: _small([Byte(number) for number in _SIGNED]),
    0x61: _number(">h", Short),
    0x71: _number(">i", Int),
    0x54: _small([Int(number) for number in _SIGNED]),
    0x81: _number(">q"),
    0x55: _small(_SIGNED),
    0x72: _number(">f", Float),
    0x82: _number(">d"),
    0x74: _fixed(4, Decimal32),
    0x84: _fixed(8, Decimal64),
    0x94: _fixed(16, Decimal128),
    0x73: _char,
    0x83: _number(">q", Timestamp),
    0x98: _fixed(16, lambda raw: UUID(bytes=raw)),
    0xA0: _binary8,
    0xB0: _binary32,
    0xA1: _string8,
    0xB1: _string32,
    0xA3: _symbol(_binary8),
    0xB3: _symbol(_binary32),
    0x45: lambda _, at, __: ([], at),
    0xC0: _list8,
    0xD0: _list32,
    0xC1: _map8,
    0xD1: _map32,
    0xE0: _array8,
    0xF0: _array32,
}
"""Readers by constructor (section 1.6)."""

READERS: list[Reader] = [_TABLE.get(code, _unknown) for code in range(256)]
"""Readers by constructor, for all 256 bytes. A reader raises `AmqpError` or an exception of `UNREADABLE`."""
