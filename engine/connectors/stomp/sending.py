"""Conversion of the canonical message to a STOMP SEND frame; `message` has the other direction.

The headers were established on Artemis 2.40, with its JMS client as the receiver. `docs/connectors/stomp.md` documents
them, and the parts of a message that a frame cannot carry.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.connectors.addresses import kind_and_name
from engine.connectors.base import RefusedError
from engine.connectors.numbers import whole
from engine.connectors.products import ARTEMIS, COMMANDS
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.message import is_property
from engine.connectors.stomp.session import ROUTING
from engine.message import ORIGIN, BodyType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.base import Outgoing
    from engine.connectors.products import Product
    from engine.message import Message

__all__ = ["to_frame"]

_TEXTS = {"JMSCorrelationID": "correlation-id", "JMSType": "type", "JMSXGroupID": "JMSXGroupID"}
_MOST_PRIORITY = 9
_MOST_INT = 2**31 - 1
_MOST_LONG = 2**63 - 1


def to_frame(outgoing: Outgoing, product: Product) -> bytes:
    """Returns a complete SEND frame, which requests a receipt with the message's number as its id.

    Raises:
        RefusedError: a header has a NUL character, which STOMP cannot carry.
    """
    message, artemis = outgoing.message, product is ARTEMIS
    headers = _destination(outgoing.address, artemis=artemis)
    headers["receipt"] = str(outgoing.number)
    if artemis:
        headers["_AMQ_DUPL_ID"] = outgoing.id
    headers |= _fields(message.headers, artemis=artemis)
    if outgoing.reply_to is not None:
        kind, name = kind_and_name(outgoing.reply_to)
        # From a bare name, JMS clients of Artemis would make a destination that is neither queue nor topic.
        headers["reply-to"] = f"{kind}://{name}" if artemis else f"/{kind}/{name}"
    if message.origins:
        headers[ORIGIN] = ",".join(message.origins)
    # A frame without a content-length is a text message, and its body ends at the first NUL.
    if not _goes_as_text(message):
        headers["content-length"] = str(len(message.body))
    for name, value in message.properties.items():
        if is_property(name) and not COMMANDS.match(name) and not product.stomp_commands.match(name):
            headers[name] = value.text
    lines = "".join([f"{escape(name)}:{escape(text)}\n" for name, text in headers.items()])
    if "\0" in lines:
        raise RefusedError(_unfit(headers))
    return b"".join((b"SEND\n", lines.encode("utf-8", "replace"), b"\n", message.body, b"\0"))


def _destination(address: str, *, artemis: bool) -> dict[str, str]:
    kind, name = kind_and_name(address)
    if artemis:
        return {"destination": name, "destination-type": ROUTING[kind]}
    return {"destination": f"/{kind}/{name}"}


def _fields(fields: Mapping[str, str], *, artemis: bool) -> dict[str, str]:
    """Returns frame headers for the JMS fields that a sender may set.

    Fields whose value is not a valid number are omitted, since Artemis would refuse the frame.
    """
    headers = {_TEXTS[name]: text for name, text in fields.items() if name in _TEXTS}
    headers["persistent"] = "false" if fields.get("JMSDeliveryMode") == "NON_PERSISTENT" else "true"
    if (priority := _number(fields, "JMSPriority", _MOST_PRIORITY)) is not None:
        headers["priority"] = str(priority)
    if expiration := _number(fields, "JMSExpiration", _MOST_LONG):
        headers["expires"] = str(expiration)
    if (sequence := _number(fields, "JMSXGroupSeq", _MOST_INT)) is not None:
        headers["_AMQ_GROUP_SEQUENCE" if artemis else "JMSXGroupSeq"] = str(sequence)
    if artemis and (delivery := _number(fields, "JMSDeliveryTime", _MOST_LONG)) and delivery > time.time() * 1000:
        headers["AMQ_SCHEDULED_TIME"] = str(delivery)
    return headers


def _number(fields: Mapping[str, str], name: str, most: int) -> int | None:
    number = whole(fields.get(name, ""))
    return number if number is not None and number <= most else None


def _goes_as_text(message: Message) -> bool:
    body = message.body
    return message.body_type is BodyType.TEXT and 0 not in body and BodyType.of(body) is BodyType.TEXT


def _unfit(headers: Mapping[str, str]) -> str:
    name = next(name for name, text in headers.items() if "\0" in name or "\0" in text)
    return f"header {name[:100]!r} has a NUL character, which STOMP cannot carry"
