"""Message transformers: convert AMQP messages to JMS messages and back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from engine.connectors.amqp.inbound import JmsMappingInbound, TransformError
from engine.connectors.amqp.native import NativeInbound, NativeOutbound
from engine.connectors.amqp.outbound import JmsMappingOutbound
from engine.connectors.amqp.selectors import translated_selector
from routes.transformers import Transformer, TransformerSettings

if TYPE_CHECKING:
    from engine.message import Message
    from routes.transformers import Transformers

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


_ADDRESS = re.compile(r"^/?(queue|topic)/")
_DIGITS = 10


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


def inbound(settings: TransformerSettings) -> Inbound:
    """Inbound transformer with these settings, for messages of every destination and format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return NativeInbound(settings) if settings.transformer is Transformer.AMQP_NATIVE else JmsMappingInbound(settings)


def outbound(settings: TransformerSettings) -> Outbound:
    """Outbound transformer with these settings, for messages of every destination and format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return NativeOutbound(settings) if settings.transformer is Transformer.AMQP_NATIVE else JmsMappingOutbound(settings)


def inbound_of(transformers: Transformers) -> Inbound:
    """Inbound transformer of a source, which chooses one of the source's for each destination and message format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return _InboundChoice(transformers)


def outbound_of(transformers: Transformers) -> Outbound:
    """Outbound transformer of a sink, which chooses one of the sink's for each destination and message format.

    Raises:
        BridgeError: there is no name translator of the configured name.
    """
    return _OutboundChoice(transformers)


class _InboundChoice:
    def __init__(self, transformers: Transformers) -> None:
        self._transformers = transformers
        self._made = {settings: inbound(settings) for settings in transformers.all}

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        settings = self._transformers.settings(address, message_format)
        if settings is None:
            raise TransformError(f"there is no transformer for message format {message_format} from {address}")
        return self._made[settings].to_message(encoded, message_format, address, source)


class _OutboundChoice:
    def __init__(self, transformers: Transformers) -> None:
        self._transformers = transformers
        self._made = {settings: outbound(settings) for settings in transformers.all}
        self._formats = {f"{settings.prefix_vendor}MESSAGE_FORMAT" for settings in transformers.all}

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        destination = _ADDRESS.sub(r"\1:", address, count=1)
        found = self._transformers.settings(destination, self._format(message))
        settings = found or self._transformers.settings(destination, 0)
        assert settings is not None
        return self._made[settings].encoded(message, address, reply_to)

    def _format(self, message: Message) -> int:
        """Message format in which the message came in; 0 if it did not come over AMQP."""
        for name in self._formats:
            found = message.properties.get(name)
            if found is not None and found.text.isascii() and found.text.isdecimal() and len(found.text) <= _DIGITS:
                return int(found.text)
        return 0
