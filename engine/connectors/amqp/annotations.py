"""The message annotations by which JMS clients tell one another what AMQP has no field for (AMQP JMS mapping, 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from engine.codecs.amqp.values import Symbol
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
"""The class of JMS message, a byte; whoever sets it is a JMS client."""
DESTINATION = Symbol("x-opt-jms-dest")
"""The kind of the destination in `to`, a byte."""
REPLY_TO = Symbol("x-opt-jms-reply-to")
"""The same of `reply-to`."""
JMS_TYPE = Symbol("x-opt-jms-type")
"""The JMSType."""
DELIVERY_TIME = Symbol("x-opt-delivery-time")
"""When the message is to be delivered, milliseconds since 1970."""
SERIALIZED = "application/x-java-serialized-object"
"""Content type of a data section with an object."""

MESSAGE = 0
"""The message type of a message without a body."""
BODIES: Mapping[int, BodyType] = {
    1: BodyType.OBJECT,
    2: BodyType.MAP,
    3: BodyType.BYTES,
    4: BodyType.STREAM,
    5: BodyType.TEXT,
}
"""The other message types."""
MESSAGE_TYPES: Mapping[BodyType, int] = {kind: number for number, kind in BODIES.items()}
KINDS = ("queue", "topic", "queue", "topic")
"""By kind of destination; the last two are temporary."""
PREFIXES: Mapping[str, str] = {
    "queue://": "queue",
    "topic://": "topic",
    "temp-queue://": "queue",
    "temp-topic://": "topic",
}
"""How brokers write the kind into an address."""
