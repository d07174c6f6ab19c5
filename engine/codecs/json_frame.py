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

from engine.codecs.frame import FIELDS, Frame, FrameError, checksum
from routes.properties import NUMBERS, JmsType, Property

__all__ = ["MARKER", "decode", "encode"]

MARKER = bytes.fromhex("abcd0100abcd")
"""How each frame begins."""

_HEAD = 8
_NO_BODY = b"\0\0"
"""In place of length and checksum, from the Java program for a message without a body."""
_INT = range(-(1 << 31), 1 << 31)
_LONG = range(-(1 << 63), 1 << 63)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame. Never fails but for a body or headers of 2 GiB."""
    fields = {name: _plain(value) for name, value in frame.headers.items() if _readable(name, value)}
    headers = json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
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
    return len(part).to_bytes(4, "big") + checksum(part).to_bytes(4, "big")


def _part(data: bytes, start: int, what: str) -> tuple[bytes, int]:
    """The part at an offset, and where it ends."""
    begin = start + _HEAD
    if len(data) < begin:
        raise FrameError(f"the frame ends before the length and checksum of {what}, at byte {len(data)}")
    length = int.from_bytes(data[start : start + 4], "big", signed=True)
    if not 0 <= length <= len(data) - begin:
        raise FrameError(f"{what} should have {length} bytes, of which {len(data) - begin} are there")
    part = data[begin : begin + length]
    if checksum(part) != int.from_bytes(data[start + 4 : begin], "big"):
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
    if known is None or found.type == known[1] or (known[1] is JmsType.LONG and found.type is JmsType.INT):
        return found if known is None else Property(found.text, known[1])
    raise FrameError(f"header {name} is of type {found.type}, not {known[1]}")


def _typed(name: str, value: Any) -> Property:
    if isinstance(value, bool | float | str):
        return Property.of(value)
    if isinstance(value, int) and value in _LONG:
        return Property(str(value), JmsType.INT if value in _INT else JmsType.LONG)
    shown = f"{len(value)} values" if isinstance(value, list | dict) else "a number of more than 64 bits"
    raise FrameError(f"header {name} is {shown}, which no JMS property can be")


def _plain(value: Property) -> bool | int | float | str:
    """What JSON has for a property: numbers that it cannot say are texts, as Java writes them."""
    if value.type is JmsType.BOOLEAN:
        return value.text == "true"
    if value.type not in NUMBERS:
        return value.text
    try:
        number = float(value.text) if value.type in (JmsType.FLOAT, JmsType.DOUBLE) else int(value.text)
    except ValueError:
        return value.text
    return number if abs(number) < float("inf") else value.text


def _readable(name: str, value: Property) -> bool:
    """Whether the Java program can read it: it takes a number that fits 32 bits for an `int`, and is then surprised."""
    known = FIELDS.get(name)
    return known is None or known[1] is not JmsType.LONG or int(value.text) not in _INT
