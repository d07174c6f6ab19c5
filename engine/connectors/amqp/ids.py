"""Message ids and correlation ids in AMQP (strings, UUIDs, numbers or bytes) and in JMS (texts, often with `ID:`).

The texts are those of Apache Qpid JMS, so its clients see the same id whether a message comes by the bridge or not:

    AMQP                         JMS
    string ID:abc                ID:abc
    string abc                   ID:AMQP_NO_PREFIX:abc (as a correlation id abc)
    string ID:AMQP_UUID:…        ID:AMQP_STRING:ID:AMQP_UUID:…
    uuid                         ID:AMQP_UUID:2f9b…
    ulong                        ID:AMQP_ULONG:42
    binary                       ID:AMQP_BINARY:0A1F
"""

from __future__ import annotations

import re
from uuid import UUID

from engine.connectors.amqp.codec.values import ULong

__all__ = ["Id", "correlation_id", "message_id", "to_amqp"]

Id = str | UUID | ULong | bytes

_ID = "ID:"
_UUID, _ULONG, _BINARY = "ID:AMQP_UUID:", "ID:AMQP_ULONG:", "ID:AMQP_BINARY:"
_STRING, _NO_PREFIX = "ID:AMQP_STRING:", "ID:AMQP_NO_PREFIX:"
_ENCODED = (_UUID, _ULONG, _BINARY, _STRING, _NO_PREFIX)
_UUID_TEXT = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_HEX = re.compile("(?:[0-9A-Fa-f]{2})*")
_MOST_ULONG = (1 << 64) - 1


def message_id(value: Id) -> str:
    """Converts an AMQP message-id to a JMSMessageID."""
    if isinstance(value, str) and not value.startswith(_ID):
        return _NO_PREFIX + value
    return correlation_id(value)


def correlation_id(value: Id) -> str:
    """Converts an AMQP correlation-id to a JMSCorrelationID."""
    if isinstance(value, str):
        return _STRING + value if value.startswith(_ENCODED) else value
    if isinstance(value, UUID):
        return f"{_UUID}{value}"
    return f"{_BINARY}{value.hex().upper()}" if isinstance(value, bytes) else f"{_ULONG}{int(value)}"


def to_amqp(text: str) -> Id:
    """Converts a JMS id to an AMQP id. A text that has a prefix of another type but no valid value stays a string."""
    if not text.startswith(_ENCODED):
        return text
    prefix = next(each for each in _ENCODED if text.startswith(each))
    rest = text[len(prefix) :]
    if prefix in (_STRING, _NO_PREFIX):
        return rest
    if prefix == _UUID:
        return UUID(rest) if _UUID_TEXT.fullmatch(rest) else text
    if prefix == _ULONG:
        number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) <= len(str(_MOST_ULONG)) else -1
        return ULong(number) if 0 <= number <= _MOST_ULONG else text
    return bytes.fromhex(rest) if _HEX.fullmatch(rest) else text
