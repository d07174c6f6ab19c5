"""Message transformers: convert AMQP messages to JMS messages and back; each destination and format may have its own.

The JMSMapping transformers are in `inbound` and `outbound`. The AMQPNative transformers, here, carry an encoded AMQP
message as the body of a BytesMessage. They do not decode it, so no route and no selector can refer to its contents.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from engine.connectors.addresses import is_pattern
from engine.connectors.amqp.codec.sections import decode
from engine.connectors.amqp.codec.values import AmqpError
from engine.connectors.amqp.inbound import JmsMappingInbound, TransformError
from engine.connectors.amqp.outbound import JmsMappingOutbound
from engine.connectors.amqp.traits import SPECIFIED
from engine.connectors.amqp.transformer_settings import Transformer, TransformerSettings
from engine.connectors.base import RefusedError
from engine.connectors.content_id import new_message_id
from engine.message import BodyType, Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from engine.connectors.amqp.traits import AmqpTraits
    from engine.connectors.amqp.transformer_settings import Transformers

__all__ = [
    "Inbound",
    "Outbound",
    "TransformError",
    "TransformerSettings",
    "inbound",
    "inbound_of",
    "outbound",
    "outbound_of",
    "translated_selector",
]

_MOST_FORMAT = (1 << 32) - 1
_MOST_CHOSEN = 1000
_QPID_FIELDS: Mapping[str, str] = {
    "amqp.durable": "JMSDeliveryMode",
    "amqp.delivery_mode": "JMSDeliveryMode",
    "amqp.priority": "JMSPriority",
    "amqp.ttl": "JMSExpiration",
    "amqp.first_acquirer": "JMS_AMQP_FirstAcquirer",
    "amqp.delivery_count": "JMSXDeliveryCount",
    "amqp.redelivered": "JMSRedelivered",
    "amqp.message_id": "JMSMessageID",
    "amqp.user_id": "JMSXUserID",
    "amqp.to": "JMSDestination",
    "amqp.subject": "JMS_AMQP_Subject",
    "amqp.reply_to": "JMSReplyTo",
    "amqp.correlation_id": "JMSCorrelationID",
    "amqp.content_type": "JMS_AMQP_ContentType",
    "amqp.content_encoding": "JMS_AMQP_ContentEncoding",
    "amqp.absolute_expiry_time": "JMSExpiration",
    "amqp.creation_time": "JMSTimestamp",
    "amqp.group_id": "JMSXGroupID",
    "amqp.group_sequence": "JMSXGroupSeq",
    "amqp.reply_to_group_id": "JMS_AMQP_ReplyToGroupID",
    "amqp.annotation": "JMSType",
    "amqp.jms_type": "JMSType",
}
"""JMS names by the name that Apache Qpid gives each AMQP field, as the default transformer maps the fields.

Qpid's brokers also know `delivery_mode`, `redelivered` and `jms_type`, and its JMS client `annotation`.
"""

_TOKEN = re.compile(
    r"'(?:[^']|'')*'?|\"[^\"]*\"?|(?P<durable>amqp\.durable)\s*(?P<operator>=|<>)\s*(?P<flag>true|false)\b"
    r"|(?P<name>(?:[^\W\d]|\$)[\w$]*(?:\.[\w$]+)*)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"^/?(queue|topic)/")
_DIGITS = 10


class _NativeInbound:
    """Converts AMQP messages to JMS messages."""

    def __init__(self, settings: TransformerSettings) -> None:
        self._settings = settings

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """Wraps an encoded message into a BytesMessage. Never fails."""
        settings = self._settings
        now = time.time_ns() // 1_000_000
        fields = {
            "JMSMessageID": new_message_id(),
            "JMSDestination": _addressed(encoded, address) if is_pattern(address) else address,
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


def _addressed(encoded: bytes, pattern: str) -> str:
    """Returns the destination that a message names itself, as it came by a pattern; the pattern if it names none."""
    try:
        properties = decode(encoded).properties
    except AmqpError:
        return pattern
    address = properties.to if properties is not None else None
    return SPECIFIED.destination(address, None, pattern.partition(":")[0]) if address else pattern


class _NativeOutbound:
    """Converts JMS messages to AMQP messages."""

    def __init__(self, settings: TransformerSettings) -> None:
        self._format = f"{settings.prefix_vendor}MESSAGE_FORMAT"
        self._native = f"{settings.prefix_vendor}NATIVE"

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        """Returns the encoded message that a BytesMessage holds, addresses unchanged, and its message format.

        Raises:
            RefusedError: the message is not a BytesMessage, or its properties do not mark it as an AMQP message of some
                format.
        """
        if message.body_type is not BodyType.BYTES:
            raise RefusedError(f"transformer AMQPNative sends bytes messages only, and this is a {message.body_type}")
        native = message.properties.get(self._native)
        if native is None or native.text != "true" or native.type not in (None, JmsType.BOOLEAN):
            raise RefusedError(f"transformer AMQPNative needs property {self._native} to be true")
        value = message.properties.get(self._format)
        if value is None or not (value.text.isascii() and value.text.isdecimal() and len(value.text) <= 10):
            raise RefusedError(f"transformer AMQPNative needs the message format as a number in {self._format}")
        if int(value.text) > _MOST_FORMAT:
            raise RefusedError(f"{self._format} is {value.text}, larger than any message format")
        return message.body, int(value.text)


def translated_selector(selector: str) -> str:
    """Selector with the JMS names of AMQP fields: `amqp.priority = 4` becomes `JMSPriority = 4`.

    JMS has a text where AMQP has a flag, so `amqp.durable = TRUE` becomes `JMSDeliveryMode = 'PERSISTENT'`. Everything
    else stays as it is, also names in literals.
    """
    return _TOKEN.sub(_translated, selector)


def _translated(token: re.Match[str]) -> str:
    if token["durable"]:
        mode = "PERSISTENT" if token["flag"].lower() == "true" else "NON_PERSISTENT"
        return f"JMSDeliveryMode {token['operator']} '{mode}'"
    return _QPID_FIELDS.get(token["name"] or "", token[0])


class Inbound(Protocol):
    """Converter of AMQP messages to JMS messages."""

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """Canonical message of an encoded AMQP message.

        `address` is the destination that the message was received from, `queue:NAME` or `topic:NAME`; `source` is the
        name of the source.

        Raises:
            TransformError: the message cannot be read.
        """


class Outbound(Protocol):
    """Converter of JMS messages to AMQP messages."""

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        """Encoded message and its message format.

        `address` and `reply_to` are written as in routes: `queue/NAME`, `topic/NAME`.

        Raises:
            RefusedError: AMQP cannot carry the message.
        """


def inbound(settings: TransformerSettings, traits: AmqpTraits = SPECIFIED) -> Inbound:
    """Inbound transformer with these settings, for messages of every destination and format of a broker.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    if settings.transformer is Transformer.AMQP_NATIVE:
        return _NativeInbound(settings)
    return JmsMappingInbound(settings, traits)


def outbound(settings: TransformerSettings, traits: AmqpTraits = SPECIFIED) -> Outbound:
    """Outbound transformer with these settings, for messages of every destination and format to a broker.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    if settings.transformer is Transformer.AMQP_NATIVE:
        return _NativeOutbound(settings)
    return JmsMappingOutbound(settings, traits)


def inbound_of(transformers: Transformers, traits: AmqpTraits = SPECIFIED) -> Inbound:
    """Inbound transformer of a source, which chooses one of the source's for each destination and message format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return _InboundChoice(transformers, traits)


def outbound_of(transformers: Transformers, traits: AmqpTraits = SPECIFIED) -> Outbound:
    """Outbound transformer of a sink, which chooses one of the sink's for each destination and message format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return _OutboundChoice(transformers, traits)


class _InboundChoice:
    def __init__(self, transformers: Transformers, traits: AmqpTraits) -> None:
        self._transformers = transformers
        self._made = {settings: inbound(settings, traits) for settings in transformers.all}
        self._chosen: dict[tuple[str, int], Inbound] = {}

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        chosen = self._chosen.get((address, message_format)) or self._choose(address, message_format)
        return chosen.to_message(encoded, message_format, address, source)

    def _choose(self, address: str, message_format: int) -> Inbound:
        settings = self._transformers.settings(address, message_format)
        if settings is None:
            raise TransformError(f"there is no transformer for message format {message_format} from {address}")
        if len(self._chosen) >= _MOST_CHOSEN:
            self._chosen.clear()
        self._chosen[address, message_format] = self._made[settings]
        return self._made[settings]


class _OutboundChoice:
    def __init__(self, transformers: Transformers, traits: AmqpTraits) -> None:
        self._transformers = transformers
        self._made = {settings: outbound(settings, traits) for settings in transformers.all}
        self._formats = {f"{settings.prefix_vendor}MESSAGE_FORMAT" for settings in transformers.all}

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        destination = _ADDRESS.sub(r"\1:", address, count=1)
        chosen = self._transformers.settings(destination, self._format(message))
        settings = chosen or self._transformers.settings(destination, 0)
        assert settings is not None
        return self._made[settings].encoded(message, address, reply_to)

    def _format(self, message: Message) -> int:
        """Message format in which the message came in; 0 if it did not come over AMQP."""
        for name in self._formats:
            value = message.properties.get(name)
            if value is not None and value.text.isascii() and value.text.isdecimal() and len(value.text) <= _DIGITS:
                return int(value.text)
        return 0
