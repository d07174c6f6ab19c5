"""The AMQPNative transformers, which carry an encoded AMQP message as the body of a BytesMessage.

The message is not decoded, so no route and no selector can refer to its contents.
"""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from engine.connectors.base import RefusedError
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from routes.transformers import TransformerSettings

__all__ = ["NativeInbound", "NativeOutbound", "new_message_id"]

_MOST_FORMAT = (1 << 32) - 1


def new_message_id() -> str:
    """Returns a new, globally unique JMSMessageID."""
    return f"ID:{_PROCESS}:{next(_NUMBERS)}"


_PROCESS = uuid4()
_NUMBERS = count(1)


class NativeInbound:
    """Converts AMQP messages to JMS messages."""

    def __init__(self, settings: TransformerSettings) -> None:
        self._settings = settings

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """Wraps an encoded message into a BytesMessage. Never fails."""
        settings = self._settings
        now = time.time_ns() // 1_000_000
        fields = {
            "JMSMessageID": new_message_id(),
            "JMSDestination": address,
            "JMSTimestamp": str(now),
            "JMSDeliveryMode": settings.default_delivery_mode,
            "JMSPriority": str(settings.default_priority),
        }
        if settings.default_ttl_ms > 0:
            fields["JMSExpiration"] = str(now + settings.default_ttl_ms)
        properties = {
            f"{settings.prefix_vendor}MESSAGE_FORMAT": Property(str(message_format), JmsType.LONG),
            f"{settings.prefix_vendor}NATIVE": Property("true", JmsType.BOOLEAN),
        }
        return Message(encoded, BodyType.BYTES, fields, properties, source)


class NativeOutbound:
    """Converts JMS messages to AMQP messages."""

    def __init__(self, settings: TransformerSettings) -> None:
        self._format = f"{settings.prefix_vendor}MESSAGE_FORMAT"
        self._native = f"{settings.prefix_vendor}NATIVE"

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        """Returns the encoded message that a BytesMessage holds, addresses unchanged, and its message format.

        Raises:
            RefusedError: the message is no BytesMessage, or its properties do not mark it as an AMQP message of some
                format.
        """
        if message.body_type is not BodyType.BYTES:
            raise RefusedError(f"transformer AMQPNative sends bytes messages only, and this is a {message.body_type}")
        native = message.properties.get(self._native)
        if native is None or native.text != "true" or native.type not in (None, JmsType.BOOLEAN):
            raise RefusedError(f"transformer AMQPNative needs property {self._native} to be true")
        found = message.properties.get(self._format)
        if found is None or not (found.text.isascii() and found.text.isdecimal() and len(found.text) <= 10):
            raise RefusedError(f"transformer AMQPNative needs the message format as a number in {self._format}")
        if int(found.text) > _MOST_FORMAT:
            raise RefusedError(f"{self._format} is {found.text}, larger than any message format")
        return message.body, int(found.text)
