"""The frame with its headers as a JSON object, as the Java bridge's first version reads and writes it.

    AB CD 01 00 AB CD                   marker and version
    length, checksum, JSON object       headers
    length, checksum, bytes             body

Lengths and checksums are big-endian and have 32 bits. Numbers of JSON become `int` or `long` by their size and
`double` with a fraction, as they do in Java. What follows a frame is no part of it and is left alone, as Java does.

What the Java program does and this does not: a message without a body gets two bytes instead of two numbers, which it
cannot read itself; such a frame is read here, and never written. It reads no field of type `long` from a number
that fits 32 bits (a time before February 1970); such a field is left out when writing, and read.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from engine.codecs.frame import BOOLEANS, FIELDS, PARSERS, PART, Frame, FrameError, checksum, shown
from routes.properties import JmsType, Property

__all__ = ["MARKER", "decode", "encode"]

MARKER = bytes.fromhex("abcd0100abcd")
"""How each frame begins."""

_NO_BODY = b"\0\0"
"""In place of length and checksum, from the Java program for a message without a body."""
# Names of their own, because Python 3.11 takes long to find a member of an enum.
_BOOLEAN, _INT, _LONG, _DOUBLE, _STRING = JmsType.BOOLEAN, JmsType.INT, JmsType.LONG, JmsType.DOUBLE, JmsType.STRING
_INTS = range(-(1 << 31), 1 << 31)
_LONGS = range(-(1 << 63), 1 << 63)
_INFINITY = float("inf")
_TIMES = frozenset(name for name, (_, kind) in FIELDS.items() if kind is _LONG)
_BOOLEANS = {value: Property.of(value) for value in (True, False)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(frame: Frame) -> bytes:
    """The bytes of a frame. Never fails but for a body or headers of 2 GiB."""
    fields = {name: _plain(value) for name, value in frame.headers.items() if name not in _TIMES or _readable(value)}
    headers = _ENCODER.encode(fields).encode("utf-8", "replace")
    return b"".join((MARKER, _head(headers), headers, _head(frame.body), frame.body))


def decode(data: bytes) -> Frame:
    """The frame in bytes that begin with `MARKER`.

    Raises:
        FrameError: they are cut off, their checksums do not fit, or the headers are no JSON object of plain values.
    """
    headers, end = _part(data, len(MARKER), "the headers")
    fields = _object(headers)
    body = b"" if data[end:] == _NO_BODY else _part(data, end, "the body")[0]
    found = {name: _property(name, value) for name, value in fields.items() if value is not None}
    return Frame(body, found)


def _head(part: bytes) -> bytes:
    return PART.pack(len(part), checksum(part))


def _part(data: bytes, start: int, what: str) -> tuple[bytes, int]:
    """The part at an offset, and where it ends."""
    begin = start + PART.size
    if len(data) < begin:
        raise FrameError(f"the frame ends before the length and checksum of {what}, at byte {len(data)}")
    length, expected = PART.unpack_from(data, start)
    if not 0 <= length <= len(data) - begin:
        raise FrameError(f"{what} should have {length} bytes, of which {len(data) - begin} are there")
    part = data[begin : begin + length]
    if checksum(part) != expected:
        raise FrameError(f"the checksum of {what} does not fit")
    return part, begin + length


def _object(headers: bytes) -> dict[str, Any]:
    try:
        # What follows the object is left alone, as by Java's reader.
        fields, _ = _DECODER.raw_decode(headers.decode().lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the headers are no JSON: {error}") from error
    if not isinstance(fields, dict):
        raise FrameError(f"the headers are {type(fields).__name__}, not a JSON object")
    return fields


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _property(name: str, value: Any) -> Property:
    known = FIELDS.get(name)
    found = _typed(name, value)
    if known is None or found.type is known[1]:
        return found
    if known[1] is _LONG and found.type is _INT:
        return Property(found.text, _LONG)
    raise FrameError(f"header {name} is of type {found.type}, not {known[1]}")


def _typed(name: str, value: Any) -> Property:
    kind = type(value)
    if kind is str:
        return Property(value, _STRING)
    if kind is int and value in _LONGS:
        return Property(str(value), _INT if value in _INTS else _LONG)
    if kind is bool:
        return _BOOLEANS[value]
    if kind is float:
        return Property(shown(value), _DOUBLE)
    what = "a number of more than 64 bits" if kind is int else f"{len(value)} values"
    raise FrameError(f"header {name} is {what}, which no JMS property can be")


def _plain(value: Property) -> bool | int | float | str:
    """What JSON has for a property: numbers that it cannot say are texts, as Java writes them."""
    if value.type is _BOOLEAN:
        return BOOLEANS.get(value.text.lower(), value.text)
    parser = PARSERS.get(value.type)
    if parser is None:
        return value.text
    try:
        number = parser(value.text)
    except ValueError:
        return value.text
    return number if abs(number) < _INFINITY else value.text


def _readable(value: Property) -> bool:
    """Whether the Java program can read a time: it takes a number that fits 32 bits for an `int`, and is surprised."""
    return int(value.text) not in _INTS
