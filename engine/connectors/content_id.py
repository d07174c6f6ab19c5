"""Ids made of the content of messages, for messages that have no id of their own."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.message import Message

__all__ = ["content_id"]

_OF_THE_DELIVERY = frozenset(
    {"JMSMessageID", "JMSRedelivered", "JMSXDeliveryCount", "JMSExpiration", "JMS_AMQP_FirstAcquirer"}
)
"""Fields and properties that differ between two deliveries of a message: made up, or counted by the broker. An
expiration may be computed from a time to live."""


def content_id(message: Message) -> str:
    """Returns an id that messages with equal bodies, fields and properties share, whichever delivery they come from."""
    facts = [*message.headers.items(), *((name, value.text) for name, value in message.properties.items())]
    kept = sorted((name, text) for name, text in facts if name not in _OF_THE_DELIVERY)
    digest = blake2b(ascii(kept).encode(), digest_size=16)
    digest.update(message.body)
    return f"ID:content-{digest.hexdigest()}"
