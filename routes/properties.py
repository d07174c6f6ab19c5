"""JMS property values as the wire carries them: text, and the type if the wire has types.

A Kafka header holds bytes, so a message keeps each value as text, and the declared types apart, in the
`jmsbridge.types` header. The predicate evaluator, the Column compiler and the codecs all read values through this
module, so that a value means the same everywhere.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "HEADER_FIELDS",
    "NUMBERS",
    "SEED_NAMES",
    "JmsType",
    "Property",
    "decode_types",
    "encode_type_name",
    "encode_types",
]


class JmsType(StrEnum):
    """Types of JMS properties (Jakarta Messaging 3.1, 3.5.4), and bytes, which AMQP adds."""

    BOOLEAN = "boolean"
    BYTE = "byte"
    SHORT = "short"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BYTES = "bytes"


NUMBERS = (JmsType.BYTE, JmsType.SHORT, JmsType.INT, JmsType.LONG, JmsType.FLOAT, JmsType.DOUBLE)
"""The numeric types."""


@immutable
class Property:
    """A value: its text, and its type if declared."""

    text: str
    """`true`/`false`; decimal digits; `repr` of a float, `NaN`, `Infinity`, `-Infinity`; text; base64 of bytes."""
    type: JmsType | None = None
    """None if the wire has no types (STOMP, NATS headers): the value then compares by the literal's type."""

    @staticmethod
    def of(value: bool | int | float | str) -> Property:
        """Makes the property of a Python value, as boolean, long, double or string."""
        if isinstance(value, bool):
            return Property("true" if value else "false", JmsType.BOOLEAN)
        if isinstance(value, int):
            return Property(str(value), JmsType.LONG)
        if isinstance(value, float):
            text = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
            return Property(text, JmsType.DOUBLE)
        return Property(value, JmsType.STRING)


HEADER_FIELDS: Mapping[str, JmsType] = {
    "JMSMessageID": JmsType.STRING,
    "JMSDestination": JmsType.STRING,
    "JMSCorrelationID": JmsType.STRING,
    "JMSReplyTo": JmsType.STRING,
    "JMSType": JmsType.STRING,
    "JMSDeliveryMode": JmsType.STRING,
    "JMSPriority": JmsType.INT,
    "JMSTimestamp": JmsType.LONG,
    "JMSDeliveryTime": JmsType.LONG,
    "JMSExpiration": JmsType.LONG,
    "JMSRedelivered": JmsType.BOOLEAN,
    "JMSXGroupID": JmsType.STRING,
    "JMSXGroupSeq": JmsType.INT,
    "JMSXDeliveryCount": JmsType.INT,
    "JMSXUserID": JmsType.STRING,
}
"""The standard fields, whose types the specification fixes. JMSDeliveryMode is text, PERSISTENT or NON_PERSISTENT, as
selectors see it (Jakarta Messaging 3.1, 3.8.1.3). JMSDestination and JMSReplyTo read `queue:NAME` or `topic:NAME`."""

SEED_NAMES: Mapping[str, str] = {
    "MessageId": "JMSMessageID",
    "CorrelationId": "JMSCorrelationID",
    "Destination": "JMSDestination",
    "ReplyTo": "JMSReplyTo",
    "Type": "JMSType",
    "DeliveryMode": "JMSDeliveryMode",
    "Priority": "JMSPriority",
    "Timestamp": "JMSTimestamp",
    "DeliveryTime": "JMSDeliveryTime",
    "Expiration": "JMSExpiration",
    "Redelivered": "JMSRedelivered",
}
"""The short spelling of the standard fields: `msg.header.CorrelationId`, and `jms.CorrelationId` in header style
short."""

_RESERVED = re.compile("[%,=]")


def encode_type_name(name: str) -> str:
    """Returns a property name as it stands in the types header: `%`, `,` and `=` percent-encoded, others unchanged."""
    if "%" not in name and "," not in name and "=" not in name:
        return name
    return _RESERVED.sub(lambda match: f"%{ord(match[0]):02X}", name)


def encode_types(types: Iterable[tuple[str, JmsType]]) -> str:
    """Returns the value of the `jmsbridge.types` header: `name=type` pairs joined by commas."""
    return ",".join([encode_type_name(name) + "=" + kind for name, kind in types])


def decode_types(text: str) -> Mapping[str, JmsType]:
    """Returns the declared types in a `jmsbridge.types` header; of several for a name, the first wins.

    A pair that `encode_types` would not write so is left out: Spark looks for exactly its own spelling.
    """
    if not text:
        return _NO_TYPES
    return _known_types(text) if len(text) <= _LONGEST_KNOWN else _decoded_types(text)


def _decoded_types(text: str) -> Mapping[str, JmsType]:
    types: dict[str, JmsType] = {}
    for pair in text.split(","):
        encoded, separator, kind = pair.rpartition("=")
        name = unquote(encoded)
        if separator and kind in JmsType.__members__.values() and encode_type_name(name) == encoded:
            types.setdefault(name, JmsType(kind))
    return MappingProxyType(types)


_NO_TYPES: Mapping[str, JmsType] = MappingProxyType({})
_LONGEST_KNOWN = 1000
_known_types = lru_cache(1000)(_decoded_types)
"""Messages of one kind declare the same types, and decoding them takes as long as the rest of a message."""
