"""The frame of the Java NATS bridge: a body and typed headers, some of which are JMS fields under other names.

NATS had no headers when the Java bridge was written, so it puts them before the body, in one of two encodings:
`json_frame` and `typed_frame`. Both carry a checksum of the body, and JSON frames another one of the headers, by the
same hash. Only typed frames of release 1.0 have a correlation id. This module converts frames to canonical messages and
back; the other two convert frames to bytes and back.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import field

import numpy as np

from engine.message import BodyType, Message
from routes.immutable import immutable
from routes.properties import JmsType, Property

__all__ = [
    "FIELDS",
    "FIELDS_1_0",
    "PART",
    "FrameError",
    "HeaderFrame",
    "checksum",
    "from_message",
    "to_message",
]


class FrameError(ValueError):
    """Bytes only begin like a frame, or a message does not fit into a frame. The text is one line for users."""


@immutable
class HeaderFrame:
    """A message in the form that the Java bridge sends over NATS."""

    body: bytes = b""
    headers: Mapping[str, Property] = field(default_factory=dict)
    """Headers by name; JMS fields have the names in `FIELDS` or `FIELDS_1_0`."""


FIELDS: Mapping[str, tuple[str, JmsType]] = {
    "BRIDGE_deliveryTime": ("JMSDeliveryTime", JmsType.LONG),
    "BRIDGE_mode": ("JMSDeliveryMode", JmsType.INT),
    "BRIDGE_expirationTime": ("JMSExpiration", JmsType.LONG),
    "BRIDGE_timestamp": ("JMSTimestamp", JmsType.LONG),
    "BRIDGE_type": ("JMSType", JmsType.STRING),
    "BRIDGE_priority": ("JMSPriority", JmsType.INT),
    "BRIDGE_redelivered": ("JMSRedelivered", JmsType.BOOLEAN),
}
"""JMS field and wire type of each reserved header name."""
FIELDS_1_0: Mapping[str, tuple[str, JmsType]] = {
    **FIELDS,
    "BRIDGE_correlation_id": ("JMSCorrelationID", JmsType.STRING),
}
"""JMS field and wire type of each reserved header name in frames of release 1.0."""
PART = struct.Struct(">iI")
"""Length and checksum that stand before the body, and in JSON frames also before the headers."""

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
    """Returns 31 to the powers 4095, ..., 1, 0, each modulo 2 to the power of 32."""
    powers, power = [], 1
    for _ in range(_CHUNK):
        powers.append(power)
        power = power * 31 & _MASK
    # NumPy is fastest with floating point, which is still exact here: 4096 products below 2**40 have a sum below 2**52.
    return np.array(powers[::-1], dtype=np.float64)


_POWERS = _powers()
_CHUNK_POWER = pow(31, _CHUNK, 1 << 32)


def checksum(data: bytes) -> int:
    """Computes Java's `Arrays.hashCode` of unsigned bytes with start value 0, as an unsigned 32-bit number."""
    if not data:
        return 0
    first = len(data) % _CHUNK
    total = int(np.frombuffer(data, _BYTE, first).dot(_POWERS[_CHUNK - first :])) & _MASK
    for start in range(first, len(data), _CHUNK):
        chunk = int(np.frombuffer(data, _BYTE, _CHUNK, start).dot(_POWERS))
        total = total * _CHUNK_POWER + chunk & _MASK
    return total


def to_message(frame: HeaderFrame, source: str = "", known: Mapping[str, tuple[str, JmsType]] = FIELDS) -> Message:
    """Makes the canonical message of a frame. Frames do not tell text from bytes: a body that is UTF-8 becomes text.

    `known` is `FIELDS` or `FIELDS_1_0`. A header with an empty name is left out: JMS has no such property (Jakarta
    Messaging 3.1, 3.5.1).
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


def from_message(message: Message, known: Mapping[str, tuple[str, JmsType]] = FIELDS) -> HeaderFrame:
    """Makes the frame of a message from the JMS fields that `known` names, and all properties but those of JMS."""
    headers: dict[str, Property] = {}
    for name, (jms_name, kind) in known.items():
        text = message.headers.get(jms_name)
        if text is not None and (wire := _wire(jms_name, kind, text)) is not None:
            headers[name] = Property(wire, kind)
    own = {
        name: value
        for name, value in message.named().items()
        if name and not name.startswith(_RESERVED) and name not in known
    }
    return HeaderFrame(message.body, headers | own)


def _field(name: str, kind: JmsType, text: str) -> str | None:
    """Returns the text of a JMS field from its text in a frame; None where the frame says that the field is not set."""
    if name == "JMSDeliveryMode":
        return _MODES.get(text)
    if name == "JMSCorrelationID":
        return text if text.strip() else None
    return None if text == (_NO_TYPE if kind is JmsType.STRING else _NOT_SET) else text


def _wire(name: str, kind: JmsType, text: str) -> str | None:
    """Returns the text of a JMS field for a frame; None to leave it out, as the Java bridge does with unset fields."""
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
