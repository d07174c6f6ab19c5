"""Message transformers: AMQP messages become JMS messages, and the other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from routes.transformers import TransformerSettings

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


class TransformError(ValueError):
    """An AMQP message cannot be read as its transformer should. One line for users."""


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
    """The transformer with these settings, for all messages."""
    raise NotImplementedError


def outbound(settings: TransformerSettings) -> Outbound:
    """The transformer with these settings, for all messages."""
    raise NotImplementedError


def inbound_of(transformers: Transformers) -> Inbound:
    """All transformers of a source; each message goes to that for its destination and message format."""
    raise NotImplementedError


def outbound_of(transformers: Transformers) -> Outbound:
    """All transformers of a sink."""
    raise NotImplementedError


def translated_selector(selector: str) -> str:
    """A selector with the JMS names of fields in place of Qpid's AMQP names, `amqp.priority` as `JMSPriority`."""
    raise NotImplementedError
