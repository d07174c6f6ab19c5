"""Codec of frames whose headers are a JSON object, the format of the Java bridge's first version.

    AB CD 01 00 AB CD                   marker and version
    length, checksum, JSON object       headers
    length, checksum, bytes             body

Lengths and checksums are big-endian 32-bit numbers. As in Java, a JSON number becomes an `int` or a `long` by its size,
or a `double` if it has a fraction, and bytes behind the frame are ignored.

The Java program writes two things that it cannot read; `decode` reads them and `encode` never writes them. For a
message without a body it writes two bytes in place of length and checksum. And it writes a field of type `long` (a
time) also where the number fits 32 bits (before February 1970); `encode` leaves out such a field.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from engine.connectors.nats.header_frame import FIELDS, PART, FrameError, HeaderFrame, checksum
from engine.jms_values import BOOLEANS, PARSERS, shown
from routes.properties import JmsType, Property

__all__ = ["MARKER", "decode", "encode"]

MARKER = bytes.fromhex("abcd0100abcd")
"""First bytes of every frame."""

_NO_BODY = b"\0\0"
"""Bytes that the Java program writes in place of length and checksum for a message without a body."""
# Aliases, because looking up a member of an enum is slow in Python 3.11.
_BOOLEAN, _INT, _LONG, _DOUBLE, _STRING = JmsType.BOOLEAN, JmsType.INT, JmsType.LONG, JmsType.DOUBLE, JmsType.STRING
_INTS = range(-(1 << 31), 1 << 31)
_LONGS = range(-(1 << 63), 1 << 63)
_INFINITY = float("inf")
_TIMES = frozenset(name for name, (_, kind) in FIELDS.items() if kind is _LONG)
_BOOLEANS = {value: Property.of(value) for value in (True, False)}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(frame: HeaderFrame) -> bytes:
    """Encodes a frame. Fails only for a body or headers of 2 GiB or more."""
    fields = {name: _plain(value) for name, value in frame.headers.items() if name not in _TIMES or _readable(value)}
    headers = _ENCODER.encode(fields).encode("utf-8", "replace")
    return b"".join((MARKER, _head(headers), headers, _head(frame.body), frame.body))


def decode(data: bytes) -> HeaderFrame:
    """Decodes a frame from bytes that begin with `MARKER`.

    Raises:
        FrameError: the bytes are cut off, a checksum does not fit, or the headers are not a JSON object of plain
            values.
    """
    headers, end = _part(data, len(MARKER), "the headers")
    fields = _object(headers)
    body = b"" if data[end:] == _NO_BODY else _part(data, end, "the body")[0]
    properties = {name: _property(name, value) for name, value in fields.items() if value is not None}
    return HeaderFrame(body, properties)


def _head(part: bytes) -> bytes:
    return PART.pack(len(part), checksum(part))


def _part(data: bytes, start: int, what: str) -> tuple[bytes, int]:
    """Returns the headers or the body at an offset, and the offset behind it. `what` names the part in errors."""
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
        # Bytes behind the object are ignored, as by Java's reader.
        fields, _ = _DECODER.raw_decode(headers.decode().lstrip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        raise FrameError(f"the headers are not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise FrameError(f"the headers are {type(fields).__name__}, not a JSON object")
    return fields


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_constant)


def _property(name: str, value: Any) -> Property:
    known = FIELDS.get(name)
    typed = _typed(name, value)
    if known is None or typed.type is known[1]:
        return typed
    if known[1] is _LONG and typed.type is _INT:
        return Property(typed.text, _LONG)
    raise FrameError(f"header {name} is of type {typed.type}, not {known[1]}")


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
    """Returns the JSON value of a property; a number that JSON cannot express becomes a text, as in Java."""
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
    """Returns True if the Java program can read a time: a number that does not fit 32 bits.

    It reads a shorter number as an `int` and fails, as it does for anything but a number.
    """
    try:
        return PARSERS[_LONG](value.text) not in _INTS
    except ValueError:
        return False
