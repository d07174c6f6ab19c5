"""Message annotations in which JMS clients put facts that have no AMQP field (AMQP JMS mapping, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.connectors.amqp.codec.values import Symbol
from engine.message import BodyType

__all__ = [
    "BODIES",
    "DELIVERY_TIME",
    "DESTINATION",
    "JMS_TYPE",
    "KINDS",
    "MESSAGE",
    "MESSAGE_TYPE",
    "MESSAGE_TYPES",
    "PREFIXES",
    "REPLY_TO",
    "SERIALIZED",
]

MESSAGE_TYPE = Symbol("x-opt-jms-msg-type")
"""Class of the JMS message, a byte. Only JMS clients set it, so it also marks their messages."""
DESTINATION = Symbol("x-opt-jms-dest")
"""Kind of the destination in field `to`, a byte: an index into `KINDS`."""
REPLY_TO = Symbol("x-opt-jms-reply-to")
"""Kind of the destination in field `reply-to`, a byte: an index into `KINDS`."""
JMS_TYPE = Symbol("x-opt-jms-type")
"""The JMSType."""
DELIVERY_TIME = Symbol("x-opt-delivery-time")
"""Earliest time of delivery, milliseconds since 1970."""
SERIALIZED = "application/x-java-serialized-object"
"""Content type of a data section that holds a serialized Java object."""

MESSAGE = 0
"""Message type of a message without a body."""
BODIES: Mapping[int, BodyType] = {
    1: BodyType.OBJECT,
    2: BodyType.MAP,
    3: BodyType.BYTES,
    4: BodyType.STREAM,
    5: BodyType.TEXT,
}
"""Body types by message type; `MESSAGE` is not among them."""
MESSAGE_TYPES: Mapping[BodyType, int] = {kind: number for number, kind in BODIES.items()}
KINDS = ("queue", "topic", "queue", "topic")
"""Kinds of destinations by their number in an annotation; the last two are those of temporary destinations."""
PREFIXES: Mapping[str, str] = {
    "queue://": "queue",
    "topic://": "topic",
    "temp-queue://": "queue",
    "temp-topic://": "topic",
}
"""Kinds of destinations by the prefix that some brokers put before an address."""
