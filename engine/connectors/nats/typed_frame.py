"""Codec of frames whose headers are typed binary fields, which all releases of the Java bridge read and write.

    AB CD 01 00                         marker and version
    count                               number of headers
    name, type, value                   for each header
    length, checksum, bytes             body

A name is one length byte and a text, or a single byte for a common name. A type is one byte; a byte of -109 or more is
itself a value of type `int`. Numbers are big-endian. Bytes behind a frame are ignored.

The codes of common names changed once without a new version in the marker: from release 0.24.1 on, -121 is the
correlation id, and the codes of the names behind it moved by one. A frame does not say which codes it uses, so the
caller passes them (`HeaderCodes`).

Some output of the Java program, which it cannot read itself, is read here where it has one meaning, and never written:
more than 127 headers, short texts of 128 to 255 bytes, and empty texts. The Java program counts the characters of names
and texts, not their bytes, so its names and texts beyond ASCII have no meaning. Faulty bytes count as a plain body,
as for the Java program: `decode` raises, and its caller takes the bytes as they are.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from engine.connectors.nats.header_frame import FIELDS, FIELDS_1_0, PART, FrameError, HeaderFrame, checksum
from engine.jms_values import BOOLEANS, PARSERS, shown, single
from routes.properties import JmsType, Property

__all__ = ["CODES_0_3", "CODES_1_0", "MARKER", "HeaderCodes", "decode", "encode"]

MARKER = bytes.fromhex("abcd0100")
"""First bytes of every frame."""


@dataclass(frozen=True, slots=True)
class HeaderCodes:
    """Codes that stand for common header names in the frames of some releases, and the JMS fields of those releases."""

    fields: Mapping[str, tuple[str, JmsType]]
    """JMS fields by header name, see `frame.FIELDS`."""
    codes: Mapping[str, int]
    """Codes by name, from -128 to -1."""
    names: Mapping[int, str]
    """Names by code, as an unsigned byte."""

    @staticmethod
    def of(fields: Mapping[str, tuple[str, JmsType]], codes: Mapping[str, int]) -> HeaderCodes:
        """Makes the header codes with the reverse table of names."""
        return HeaderCodes(fields, codes, {code & 0xFF: name for name, code in codes.items()})


_UNCHANGED = {
    "BRIDGE_deliveryTime": -128,
    "BRIDGE_timestamp": -127,
    "BRIDGE_mode": -126,
    "BRIDGE_expirationTime": -125,
    "BRIDGE_type": -124,
    "BRIDGE_priority": -123,
    "BRIDGE_redelivered": -122,
}
CODES_0_3 = HeaderCodes.of(
    FIELDS, _UNCHANGED | {"ENV": -121, "H1": -120, "H2": -119, "H3": -117, "H4": -116, "ENVIRONMENT": -115}
)
"""Codes of nats-jms-bridge 0.3.0 to 0.23.0."""
CODES_1_0 = HeaderCodes.of(
    FIELDS_1_0,
    _UNCHANGED
    | {"BRIDGE_correlation_id": -121, "ENV": -120, "H1": -119, "H2": -118, "H3": -116, "H4": -115, "ENVIRONMENT": -114},
)
"""Codes of nats-jms-bridge 0.24.1 to 1.0.4."""

# Aliases, because looking up a member of an enum is slow in Python 3.11.
_BOOLEAN, _INT, _FLOAT, _DOUBLE, _STRING = (
    JmsType.BOOLEAN,
    JmsType.INT,
    JmsType.FLOAT,
    JmsType.DOUBLE,
    JmsType.STRING,
)
_SHORT_TEXT, _TEXT, _TRUE, _FALSE = (code & 0xFF for code in (-110, -111, -112, -113))
_NUMBERS: Mapping[JmsType, tuple[int, struct.Struct]] = {
    JmsType.BYTE: (-114 & 0xFF, struct.Struct(">Bb")),
    JmsType.SHORT: (-116 & 0xFF, struct.Struct(">Bh")),
    JmsType.INT: (-118 & 0xFF, struct.Struct(">Bi")),
    JmsType.LONG: (-120 & 0xFF, struct.Struct(">Bq")),
    JmsType.FLOAT: (-122 & 0xFF, struct.Struct(">Bf")),
    JmsType.DOUBLE: (-123 & 0xFF, struct.Struct(">Bd")),
}
"""Code of each number type, and the layout of its code and value."""
_BY_CODE = {code: (kind, layout) for kind, (code, layout) in _NUMBERS.items()}
_OWN = struct.Struct(">b")
_OWN_TYPE = range(-109, 128)
"""Values of type `int` that are written as their own type byte."""

_MOST_HEADERS = 127
_LONGEST_NAME = 127
_LONGEST_SHORT_TEXT = 127
_LONGEST_TEXT = 65_535
_LENGTH = struct.Struct(">BH")
_CONSTANTS = {number & 0xFF: Property(str(number), JmsType.INT) for number in _OWN_TYPE} | {
    _TRUE: Property("true", JmsType.BOOLEAN),
    _FALSE: Property("false", JmsType.BOOLEAN),
}
"""Values whose type byte is the whole value."""


def encode(frame: HeaderFrame, known: HeaderCodes = CODES_0_3) -> bytes:
    """Encodes a frame. Empty texts are left out; a number that does not fit its type is written as a text.

    Raises:
        FrameError: there are more than 127 headers, or a name or text is too long.
    """
    headers = [(name, value) for name, value in frame.headers.items() if value.text]
    if len(headers) > _MOST_HEADERS:
        raise FrameError(f"{len(headers)} headers are more than the {_MOST_HEADERS} that a typed frame can have")
    parts = [MARKER, bytes((len(headers),))]
    for name, value in headers:
        parts += _name(name, known), _value(name, value)
    parts += PART.pack(len(frame.body), checksum(frame.body)), frame.body
    return b"".join(parts)


def decode(data: bytes, known: HeaderCodes = CODES_0_3) -> HeaderFrame:
    """Decodes a frame from bytes that begin with `MARKER`.

    Raises:
        FrameError: the bytes are cut off, a type is unknown, a JMS field has a wrong type, or the checksum does not
            fit.
    """
    headers: dict[str, Property] = {}
    try:
        offset = len(MARKER) + 1
        for _ in range(data[offset - 1]):
            name, offset = _read_name(data, offset, known)
            value, offset = _read_value(data, offset)
            field = known.fields.get(name)
            if field is not None and field[1] is not value.type:
                raise FrameError(f"header {name} is of type {value.type}, not {field[1]}")
            headers[name] = value
        length, expected = PART.unpack_from(data, offset)
    except (struct.error, IndexError) as error:
        raise FrameError(f"the frame is cut off: it has {len(data)} bytes") from error
    offset += PART.size
    if not 0 <= length <= len(data) - offset:
        raise FrameError(f"the body should have {length} bytes, of which {len(data) - offset} are there")
    body = data[offset : offset + length]
    if checksum(body) != expected:
        raise FrameError("the checksum of the body does not fit")
    return HeaderFrame(body, headers)


def _name(name: str, known: HeaderCodes) -> bytes:
    code = known.codes.get(name)
    if code is not None:
        return bytes((code & 0xFF,))
    text = name.encode("utf-8", "replace")
    if len(text) > _LONGEST_NAME:
        raise FrameError(f"header name {name[:20]}... has {len(text)} bytes, more than {_LONGEST_NAME}")
    return bytes((len(text),)) + text


def _value(name: str, value: Property) -> bytes:
    if value.type is _BOOLEAN and (truth := BOOLEANS.get(value.text.lower())) is not None:
        return bytes((_TRUE if truth else _FALSE,))
    if (number := _number(value)) is not None:
        return number
    text = value.text.encode("utf-8", "replace")
    if len(text) > _LONGEST_TEXT:
        raise FrameError(f"header {name} has {len(text)} bytes, more than {_LONGEST_TEXT}")
    if len(text) > _LONGEST_SHORT_TEXT:
        return _LENGTH.pack(_TEXT, len(text)) + text
    return bytes((_SHORT_TEXT, len(text))) + text


def _number(value: Property) -> bytes | None:
    """Encodes a number with its type; None if the property is not a number or does not fit its type."""
    if value.type is None or value.type not in _NUMBERS:
        return None
    code, layout = _NUMBERS[value.type]
    try:
        number = PARSERS[value.type](value.text)
        if value.type is _INT and number in _OWN_TYPE:
            return _OWN.pack(number)
        return layout.pack(code, number)
    except (ValueError, OverflowError, struct.error):
        return None


def _read_name(data: bytes, offset: int, known: HeaderCodes) -> tuple[str, int]:
    length = data[offset]
    name = known.names.get(length)
    if name is not None:
        return name, offset + 1
    return _read_text(data, offset + 1, length)


def _read_value(data: bytes, offset: int) -> tuple[Property, int]:
    code = data[offset]
    if (constant := _CONSTANTS.get(code)) is not None:
        return constant, offset + 1
    if (number := _BY_CODE.get(code)) is not None:
        kind, layout = number
        return Property(_shown(kind, layout.unpack_from(data, offset)[1]), kind), offset + layout.size
    if code == _SHORT_TEXT:
        text, offset = _read_text(data, offset + 2, data[offset + 1])
    elif code == _TEXT:
        text, offset = _read_text(data, offset + _LENGTH.size, _LENGTH.unpack_from(data, offset)[1])
    else:
        raise FrameError(f"there is no header type {code - 256}")
    return Property(text, _STRING), offset


def _read_text(data: bytes, offset: int, length: int) -> tuple[str, int]:
    end = offset + length
    if end > len(data):
        raise FrameError(f"a text should have {length} bytes, of which {len(data) - offset} are there")
    return data[offset:end].decode("utf-8", "replace"), end


def _shown(kind: JmsType, number: float) -> str:
    if kind is _FLOAT:
        # Java shows a `float` as the shortest text that gives the same number in single precision.
        return shown(single(number))
    return shown(number) if kind is _DOUBLE else str(number)
