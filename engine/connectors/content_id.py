"""Ids of messages that have none of their own: made up, or made of the content."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from engine.message import Message

__all__ = ["content_id", "identified", "is_made_up", "new_message_id"]

_MADE_UP = f"ID:{uuid4()}:"
"""Beginning of the message ids that this process makes up."""
_NUMBERS = count(1)

_OF_THE_DELIVERY = frozenset(
    {"JMSMessageID", "JMSRedelivered", "JMSXDeliveryCount", "JMSExpiration", "JMS_AMQP_FirstAcquirer"}
)
"""Fields and properties that differ between two deliveries of a message: made up, or counted by the broker. An
expiration may be computed from a time to live."""


def identified(message: Message, *, by_content: bool) -> tuple[Message, bool]:
    """Returns the message with an id, and True if the id stays the same when the message is delivered again.

    A message without an id gets one that is made up, or made of its content if `by_content`.
    """
    if message.headers.get("JMSMessageID"):
        return message, True
    made = content_id(message) if by_content else new_message_id()
    return replace(message, headers={**message.headers, "JMSMessageID": made}), by_content


def new_message_id() -> str:
    """Returns a new, globally unique JMSMessageID."""
    return f"{_MADE_UP}{next(_NUMBERS)}"


def is_made_up(message_id: str | None) -> bool:
    """Returns True if an id is one of `new_message_id` in this process."""
    return message_id is not None and message_id.startswith(_MADE_UP)


def content_id(message: Message) -> str:
    """Returns an id that messages with equal bodies, fields and properties share, whichever delivery they come from."""
    facts = [*message.headers.items(), *((name, value.text) for name, value in message.properties.items())]
    kept = sorted((name, text) for name, text in facts if name not in _OF_THE_DELIVERY)
    digest = blake2b(ascii(kept).encode(), digest_size=16)
    digest.update(message.body)
    return f"ID:content-{digest.hexdigest()}"
