"""Conversion between STOMP frames and the canonical message, in both directions.

The tables of headers were established on Artemis 2.40, whose frames hold more than the specification requires, with its
JMS client as the receiver. `docs/connectors/stomp.md` documents the tables, the facts that a frame does not carry and
the parts of a message that it cannot carry. No header value, however malformed, makes the conversion of a received
frame fail.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.connectors.addresses import kind_and_name
from engine.connectors.base import RESERVED, RefusedError
from engine.connectors.numbers import whole
from engine.connectors.products import ARTEMIS, CLASSIC, COMMANDS, RABBITMQ, Product
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.session import ROUTING
from engine.message import ORIGIN, BodyType, Message
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.base import Outgoing
    from engine.connectors.stomp.frames import StompFrame

__all__ = ["to_frame", "to_message"]

_NATIVE_ID = "NATIVE_MESSAGE_ID"
_MESSAGE_TYPE = "JMS_AMQP_MA_x-opt-jms-msg-type"
_ENCODING = "JMS_AMQP_ORIGINAL_ENCODING"
_AMQP_CONTENT_TYPE = "JMS_AMQP_ContentType"

_FIELDS: Mapping[str, str] = {
    "correlation-id": "JMSCorrelationID",
    "type": "JMSType",
    "priority": "JMSPriority",
    "timestamp": "JMSTimestamp",
    "expires": "JMSExpiration",
    "redelivered": "JMSRedelivered",
    "_AMQ_SCHED_DELIVERY": "JMSDeliveryTime",
    "_AMQ_GROUP_ID": "JMSXGroupID",
    "_AMQ_GROUP_SEQUENCE": "JMSXGroupSeq",
    "JMSMessageID": "JMSMessageID",
    "JMSXDeliveryCount": "JMSXDeliveryCount",
    "JMSXGroupID": "JMSXGroupID",
    "JMSXGroupSeq": "JMSXGroupSeq",
    "JMSXUserID": "JMSXUserID",
}
"""Frame header to JMS field, where the value is copied. `to_message` builds the other fields."""

_NO_PROPERTIES = frozenset(
    {
        # headers of the protocol
        *("subscription", "message-id", "destination", "ack", "content-length", "receipt", "transaction"),
        *("persistent", "reply-to", "destination-type"),
        # requests to Artemis or ActiveMQ for delayed delivery, which do not tell the delivery time
        *("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME"),
        # JMS fields that only the broker may set; a sender could use the same names for properties
        *("JMSDestination", "JMSReplyTo", "JMSCorrelationID", "JMSType", "JMSDeliveryMode", "JMSPriority"),
        *("JMSTimestamp", "JMSDeliveryTime", "JMSExpiration", "JMSRedelivered"),
        # internal headers of Artemis
        *("__AMQ_CID", "_AMQ_DUPL_ID", "_AMQ_LARGE_SIZE", "_AMQ_ROUTING_TYPE", "ingress-timestamp"),
        *(_NATIVE_ID, _ENCODING),
        *("JMS_AMQP_HEADER", "JMS_AMQP_HEADERDURABLE", "JMS_AMQP_HEADERPRIORITY", _MESSAGE_TYPE),
        *("JMS_AMQP_MA_x-opt-jms-dest", "JMS_AMQP_MA_x-opt-jms-reply-to"),
    }
)
_PRODUCT_COMMANDS: Mapping[Product, re.Pattern[str]] = {
    CLASSIC: re.compile("(?:transformation|transformation-error|amq-msg-type)$"),
    # Properties that say how to make the queue, who else gets the message, and what to compare with the login.
    RABBITMQ: re.compile("x-|(?:durable|auto-delete|exclusive|expiration|user-id|cluster-id|CC|BCC)$"),
}
"""Patterns of the properties, besides `COMMANDS`, that command a broker how to treat a message or a queue."""
_NO_COMMANDS = re.compile("(?!)")
_KNOWN: Mapping[str, str] = dict.fromkeys(_NO_PROPERTIES, "") | dict(_FIELDS)
"""Frame header to JMS field, or to the empty string if the header is dropped. A header that is not a key here is a
property, or reserved for bridges."""
_DESTINATION = re.compile(r"^(?:/?(?:temp-)?(queue|topic)(?:://|/))?(.*)$", re.DOTALL)

# Body types of messages that Artemis received over AMQP: by the sender's annotation x-opt-jms-msg-type (JMS mapping of
# AMQP, 3.2.3), and by Artemis's header for the original encoding.
_BY_MESSAGE_TYPE = {
    "1": BodyType.OBJECT,
    "2": BodyType.MAP,
    "3": BodyType.BYTES,
    "4": BodyType.STREAM,
    "5": BodyType.TEXT,
}
_BY_ENCODING = {"3": BodyType.STREAM, "7": BodyType.MAP, "8": BodyType.STREAM}
_SERIALIZED = "application/x-java-serialized-object"
_TEXTS = {"JMSCorrelationID": "correlation-id", "JMSType": "type", "JMSXGroupID": "JMSXGroupID"}
_MOST_PRIORITY = 9
_MOST_INT = 2**31 - 1
_MOST_LONG = 2**63 - 1


def _is_property(name: str) -> bool:
    """Returns True if a header of that name is a property of the message, so that a sink can send one by that name."""
    return name not in _KNOWN and not name.startswith(RESERVED)


def to_message(frame: StompFrame, kind: str, source: str, *, artemis: bool) -> Message:
    """Returns the canonical message of a MESSAGE frame; `kind` of its subscription is `queue` or `topic`."""
    fields: dict[str, str] = {}
    properties: dict[str, Property] = {}
    for name, value in frame.headers.items():
        field = _KNOWN.get(name)
        if field:
            fields.setdefault(field, value)
        elif field is None and not name.startswith(RESERVED):
            properties[name] = Property(value)
    _complete(fields, frame.headers, kind)
    origins = frame.headers.get(ORIGIN)
    return Message(
        frame.body,
        _body_type(frame, artemis=artemis),
        fields,
        properties,
        source,
        () if origins is None else tuple(origins.split(",")),
    )


def _complete(fields: dict[str, str], headers: Mapping[str, str], kind: str) -> None:
    if not fields.get("JMSMessageID"):
        # An empty id says nothing, and redelivery is recognised by the message id.
        fields["JMSMessageID"] = headers.get(_NATIVE_ID) or _message_id(headers.get("message-id", ""))
    fields["JMSDestination"] = f"{kind}:{_parse(headers.get('destination', ''))[1]}"
    if (persistent := headers.get("persistent")) is not None:
        fields["JMSDeliveryMode"] = "PERSISTENT" if persistent.lower() == "true" else "NON_PERSISTENT"
    if reply_to := headers.get("reply-to"):
        reply_kind, name = _parse(reply_to)
        fields["JMSReplyTo"] = f"{reply_kind or 'queue'}:{name}"


@lru_cache(maxsize=256)
def _parse(destination: str) -> tuple[str, str]:
    """Splits a destination into kind, empty if it has none, and bare name.

    The name is `orders` in `orders`, `/queue/orders`, `queue://orders` and `temp-queue://orders`.
    """
    found = _DESTINATION.match(destination)
    return (found[1] or "", found[2]) if found else ("", destination)


def _message_id(broker_id: str) -> str:
    """Returns a JMSMessageID for the broker's message-id, with the prefix `ID:`.

    Artemis writes the consumer and a comma in front of the id; that part is removed.
    """
    bare = broker_id.rpartition(",")[2]
    return bare if bare.startswith("ID:") else f"ID:{bare}"


def _body_type(frame: StompFrame, *, artemis: bool) -> BodyType:
    headers = frame.headers
    content_type = headers.get("content-type", headers.get(_AMQP_CONTENT_TYPE, ""))
    if found := _BY_MESSAGE_TYPE.get(headers.get(_MESSAGE_TYPE, "")):
        return found
    if found := _BY_ENCODING.get(headers.get(_ENCODING, "")):
        return found
    if content_type.startswith(_SERIALIZED):
        return BodyType.OBJECT
    if _binary(headers, content_type, artemis=artemis):
        return BodyType.BYTES
    # A truncated body may end within a character, so it is not checked for UTF-8.
    return BodyType.TEXT if frame.size > len(frame.body) else BodyType.of(frame.body)


def _binary(headers: Mapping[str, str], content_type: str, *, artemis: bool) -> bool:
    """Returns True if the message was sent as bytes.

    By convention of brokers, and in the specification's examples, a bytes message has a content-length and a text
    message has none. Artemis writes it for both: for bytes before the message-id, for text at the end of the headers.
    """
    if "content-length" not in headers or content_type.startswith("text/"):
        return False
    if not artemis:
        return True
    for name in headers:
        if name in ("content-length", "message-id"):
            return name == "content-length"
    return True


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
    commands = _PRODUCT_COMMANDS.get(product, _NO_COMMANDS)
    for name, value in message.properties.items():
        if _is_property(name) and not COMMANDS.match(name) and not commands.match(name):
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
