"""Message transformers: AMQP messages become JMS messages, and the other way."""

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
    """From AMQP to JMS."""

    def to_message(self, encoded: bytes, message_format: int, address: str, source: str) -> Message:
        """The canonical message; `address` is where it was received from, `queue:NAME` or `topic:NAME`.

        Raises:
            TransformError: it cannot be read.
        """


class Outbound(Protocol):
    """From JMS to AMQP."""

    def encoded(self, message: Message, address: str, reply_to: str | None) -> tuple[bytes, int]:
        """The encoded message and its message format; addresses are written as in routes: `queue/NAME`, `topic/NAME`.

        Raises:
            RefusedError: AMQP cannot carry it.
        """


def inbound(settings: TransformerSettings) -> Inbound:
    """The transformer with these settings, for all messages.

    Raises:
        BridgeError: there is no such name translator.
    """
    return NativeInbound(settings) if settings.transformer is Transformer.AMQP_NATIVE else JmsMappingInbound(settings)


def outbound(settings: TransformerSettings) -> Outbound:
    """The transformer with these settings, for all messages.

    Raises:
        BridgeError: there is no such name translator.
    """
    return NativeOutbound(settings) if settings.transformer is Transformer.AMQP_NATIVE else JmsMappingOutbound(settings)


def inbound_of(transformers: Transformers) -> Inbound:
    """All transformers of a source: each message goes to the one for its destination and message format.

    Raises:
        BridgeError: there is no such name translator.
    """
    return _InboundChoice(transformers)


def outbound_of(transformers: Transformers) -> Outbound:
    """All transformers of a sink: each message goes to the one for where it is sent and its message format.

    Raises:
        BridgeError: there is no such name translator.
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
        """The message format that it came in, 0 where it did not come by AMQP."""
        for name in self._formats:
            found = message.properties.get(name)
            if found is not None and found.text.isascii() and found.text.isdecimal() and len(found.text) <= _DIGITS:
                return int(found.text)
        return 0
