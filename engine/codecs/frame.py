"""What a bridge frame holds: a body, and headers with types, some of which are JMS fields under names of their own.

NATS had no headers when the Java bridge was made, so it puts them before the body, in one of two forms: `json_frame`
and `typed_frame`. Both check the body, and the first its headers, with the same hash. Only typed frames of release 1.0
have a correlation id.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import field
from math import isfinite

import numpy as np

from engine.message import BodyType, Message
from routes.immutable import immutable
from routes.predicate.numbers import INTEGER_TEXT, NUMBER_TEXT, SPECIAL_TEXT
from routes.properties import JmsType, Property

__all__ = [
    "BOOLEANS",
    "FIELDS",
    "FIELDS_1_0",
    "PARSERS",
    "PART",
    "Frame",
    "FrameError",
    "checksum",
    "from_message",
    "shown",
    "to_message",
]


class FrameError(ValueError):
    """Bytes are not the frame that they begin as, or a message does not fit into one. One line for users."""


@immutable
class Frame:
    """A message as NATS carries it."""

    body: bytes = b""
    headers: Mapping[str, Property] = field(default_factory=dict)
    """By name; JMS fields under those of `FIELDS` or `FIELDS_1_0`."""


FIELDS: Mapping[str, tuple[str, JmsType]] = {
    "BRIDGE_deliveryTime": ("JMSDeliveryTime", JmsType.LONG),
    "BRIDGE_mode": ("JMSDeliveryMode", JmsType.INT),
    "BRIDGE_expirationTime": ("JMSExpiration", JmsType.LONG),
    "BRIDGE_timestamp": ("JMSTimestamp", JmsType.LONG),
    "BRIDGE_type": ("JMSType", JmsType.STRING),
    "BRIDGE_priority": ("JMSPriority", JmsType.INT),
    "BRIDGE_redelivered": ("JMSRedelivered", JmsType.BOOLEAN),
}
"""The names in a frame: the JMS field of each, and its type on the wire."""
FIELDS_1_0: Mapping[str, tuple[str, JmsType]] = {
    **FIELDS,
    "BRIDGE_correlation_id": ("JMSCorrelationID", JmsType.STRING),
}
"""The names in a frame of release 1.0."""


def _whole(bits: int) -> Callable[[str], int]:
    bounds = range(-(1 << bits - 1), 1 << bits - 1)

    def parse(text: str) -> int:
        if not _INTEGER.fullmatch(text) or (number := int(text)) not in bounds:
            raise ValueError(text)
        return number

    return parse


def _real(text: str) -> float:
    if not _REAL.fullmatch(text):
        raise ValueError(text)
    return float(text)


_INTEGER = re.compile(INTEGER_TEXT)
_REAL = re.compile(f"{NUMBER_TEXT}|{SPECIAL_TEXT}")
PARSERS: Mapping[JmsType | None, Callable[[str], int | float]] = {
    JmsType.BYTE: _whole(8),
    JmsType.SHORT: _whole(16),
    JmsType.INT: _whole(32),
    JmsType.LONG: _whole(64),
    JmsType.FLOAT: _real,
    JmsType.DOUBLE: _real,
}
"""Readers of the texts of numbers, as in predicates; ValueError where a text is no number of the type."""
BOOLEANS: Mapping[str, bool] = {"true": True, "false": False}
"""Boolean values by their text in lower case, as in predicates."""
PART = struct.Struct(">iI")
"""What stands before the body, and before headers in JSON: length and checksum."""

_MODES = {"1": "NON_PERSISTENT", "2": "PERSISTENT"}
_MODE_NUMBERS = {name: number for number, name in _MODES.items()}
_NUMBER = re.compile(r"\d{1,19}", re.ASCII)
_PRIORITIES = range(10)
_TIMES = range(1, 1 << 63)
_NO_TYPE = "NO_TYPE"
_NOT_SET = "-1"
_RESERVED = "JMS"

_BYTE = np.dtype(np.uint8)
_CHUNK = 4096
_MASK = 0xFFFFFFFF


def _powers() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """31 to the power of 4095, ..., 1, 0, modulo 2 to the power of 32."""
    found, power = [], 1
    for _ in range(_CHUNK):
        found.append(power)
        power = power * 31 & _MASK
    # As floating point, for which NumPy is fastest; still exact, as 4096 products under 2**40 have a sum under 2**52.
    return np.array(found[::-1], dtype=np.float64)


_POWERS = _powers()
_CHUNK_POWER = pow(31, _CHUNK, 1 << 32)


def checksum(data: bytes) -> int:
    """Java's `Arrays.hashCode` with unsigned bytes and a start of 0, as an unsigned 32-bit number."""
    if not data:
        return 0
    first = len(data) % _CHUNK
    total = int(np.frombuffer(data, _BYTE, first).dot(_POWERS[_CHUNK - first :])) & _MASK
    for start in range(first, len(data), _CHUNK):
        chunk = int(np.frombuffer(data, _BYTE, _CHUNK, start).dot(_POWERS))
        total = total * _CHUNK_POWER + chunk & _MASK
    return total


def shown(number: float) -> str:
    """A number with a fraction as the text of a property."""
    return repr(number) if isfinite(number) else Property.of(number).text


def to_message(frame: Frame, source: str = "", known: Mapping[str, tuple[str, JmsType]] = FIELDS) -> Message:
    """The canonical message of a frame; its body is text where it is UTF-8: a frame does not say.

    `known` has the names of fields: `FIELDS` or `FIELDS_1_0`. A header with an empty name is left out: JMS has no such
    property (Jakarta Messaging 3.1, 3.5.1).
    """
    fields: dict[str, str] = {}
    properties: dict[str, Property] = {}
    for name, value in frame.headers.items():
        if (meaning := known.get(name)) is None:
            if name:
                properties[name] = value
        elif (text := _field(*meaning, value.text)) is not None:
            fields[meaning[0]] = text
    return Message(frame.body, BodyType.of(frame.body), fields, properties, source)


def from_message(message: Message, known: Mapping[str, tuple[str, JmsType]] = FIELDS) -> Frame:
    """The frame of a message: its fields as far as `known` has them, and its properties but those of JMS itself."""
    headers: dict[str, Property] = {}
    for name, (jms_name, kind) in known.items():
        text = message.headers.get(jms_name)
        if text is not None and (wire := _wire(jms_name, kind, text)) is not None:
            headers[name] = Property(wire, kind)
    own = {
        name: value
        for name, value in message.properties.items()
        if name and not name.startswith(_RESERVED) and name not in known
    }
    return Frame(message.body, headers | own)


def _field(name: str, kind: JmsType, text: str) -> str | None:
    """The value of a JMS field; None where the frame says that the message has none."""
    if name == "JMSDeliveryMode":
        return _MODES.get(text)
    if name == "JMSCorrelationID":
        return text if text.strip() else None
    return None if text == (_NO_TYPE if kind is JmsType.STRING else _NOT_SET) else text


def _wire(name: str, kind: JmsType, text: str) -> str | None:
    """The value of a field in a frame; None for what need not be sent: the Java bridge leaves out what is not set."""
    if name == "JMSDeliveryMode":
        return _MODE_NUMBERS.get(text)
    if name == "JMSRedelivered":
        return "true" if text == "true" else None
    if kind is JmsType.STRING:
        return text
    if not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return str(number) if number in (_PRIORITIES if name == "JMSPriority" else _TIMES) else None
