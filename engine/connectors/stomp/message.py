"""Conversion between STOMP frames and the canonical message, in both directions.

The tables of headers were established on Artemis 2.40, whose frames hold more than the specification requires, with its
JMS client as the receiver; differences of other brokers stand in `traits`. `docs/connectors/stomp.md` documents
the tables, the facts that a frame does not carry and the parts of a message that it cannot carry. No header value,
however malformed, makes the conversion of a received frame fail.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from engine.connectors.addresses import kind_and_name, parsed
from engine.connectors.base import RESERVED, RefusedError
from engine.connectors.numbers import whole
from engine.connectors.products import COMMANDS
from engine.connectors.stomp.frames import escape
from engine.connectors.stomp.modified_utf8 import from_modified_utf8, to_modified_utf8
from engine.connectors.stomp.traits import ORIGINS, PlainBody
from engine.message import BODY_TYPES, NO_BODY, NULL_BODY, BodyType, Message
from engine.property_names import ANY, not_kept
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.stomp.frames import StompFrame
    from engine.connectors.stomp.traits import StompTraits

__all__ = ["to_frame", "to_message"]

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

_INTERNAL = frozenset(
    {
        *("__AMQ_CID", "_AMQ_DUPL_ID", "_AMQ_LARGE_SIZE", "_AMQ_ROUTING_TYPE", "ingress-timestamp"),
        *("NATIVE_MESSAGE_ID", _ENCODING),
        *("JMS_AMQP_HEADER", "JMS_AMQP_HEADERDURABLE", "JMS_AMQP_HEADERPRIORITY", _MESSAGE_TYPE),
        *("JMS_AMQP_MA_x-opt-jms-dest", "JMS_AMQP_MA_x-opt-jms-reply-to"),
    }
)
"""Headers of Artemis's own."""
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
    }
)
_WITHOUT_TEXT = (NULL_BODY, NO_BODY)
_KNOWN: Mapping[str, str] = dict.fromkeys(_NO_PROPERTIES | _INTERNAL, "") | dict(_FIELDS)
"""Frame header to JMS field, or to the empty string if the header is dropped. A header that is not a key here is a
property, or reserved for bridges."""
_DESTINATION = re.compile(
    r"^(?:/?(?:remote-)?(?:temp-)?(queue|topic)(?:://|/)|/(?:reply-|amq/)queue/)?(.*)$", re.DOTALL
)

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
_OCTETS = "application/octet-stream"
_TEXTS = {"JMSCorrelationID": "correlation-id", "JMSType": "type", "JMSXGroupID": "JMSXGroupID"}
_DEFAULT_PRIORITY, _MOST_PRIORITY = "4", 9
_MOST_INT = 2**31 - 1
_LONGEST_COUNT = 10
_MOST_LONG = 2**63 - 1


def _is_property(name: str) -> bool:
    """Returns True if a header of that name is a property of the message, so that a sink can send one by that name."""
    return name not in _KNOWN and not name.startswith(RESERVED)


def to_message(frame: StompFrame, kind: str, source: str, traits: StompTraits) -> Message:
    """Returns the canonical message of a MESSAGE frame; `kind` of its subscription is `queue` or `topic`."""
    fields: dict[str, str] = {}
    properties: dict[str, Property] = {}
    for name, value in frame.headers.items():
        field = _KNOWN.get(name)
        if field:
            fields.setdefault(field, value)
        elif field is None and not (own := traits.property_names.decoded(name)).startswith(RESERVED):
            properties[own] = Property(value)
    if traits.native_id:
        properties.pop(traits.native_id, None)
    if traits.transformation:
        properties.pop("transformation", None)
    _count(fields, [properties.pop(name).text for name in traits.returns if name in properties])
    _complete(fields, frame.headers, kind, traits)
    body_type = _body_type(frame, traits)
    body = frame.body
    if traits.sends_modified_utf8 and body_type is BodyType.BYTES and "content-length" not in frame.headers:
        body = from_modified_utf8(body)
        body_type = BodyType.of(body)
    origins = next((frame.headers[name] for name in ORIGINS if name in frame.headers), None)
    body_types = "" if body else next((frame.headers[name] for name in _marks(traits) if name in frame.headers), "")
    if body_types in _WITHOUT_TEXT:
        body_type = BodyType.TEXT
    else:
        body_types = ""
    come = () if origins is None else tuple(origins.split(","))
    return Message(body, body_type, fields, properties, source, come, body_types)


def _marks(traits: StompTraits) -> tuple[str, str]:
    """Returns the headers that tell a message without a text, as a sink and as another part of a bridge write it."""
    return traits.property_names.encoded(BODY_TYPES), BODY_TYPES


def _count(fields: dict[str, str], returns: Sequence[str]) -> None:
    """Sets the number of deliveries, by the greatest of the counts of those before this one."""
    counts = [int(each) for each in returns if each.isascii() and each.isdigit() and len(each) < _LONGEST_COUNT]
    if counts:
        fields["JMSXDeliveryCount"] = str(max(counts) + 1)


def _complete(fields: dict[str, str], headers: Mapping[str, str], kind: str, traits: StompTraits) -> None:
    # An empty id says nothing, and redelivery is recognised by the message id.
    broker_id = headers.get(traits.native_id) or (headers.get("message-id") if traits.is_message_id else None)
    message_id = fields.pop("JMSMessageID", None) or (_message_id(broker_id) if broker_id else None)
    if message_id:
        fields["JMSMessageID"] = message_id
    fields["JMSDestination"] = f"{kind}:{_parse(headers.get('destination', ''), traits.is_quoted)[1]}"
    if (persistent := headers.get("persistent")) is not None:
        fields["JMSDeliveryMode"] = "PERSISTENT" if persistent.lower() == "true" else "NON_PERSISTENT"
    elif traits.absent_delivery_mode:
        fields["JMSDeliveryMode"] = traits.absent_delivery_mode
    if reply_to := headers.get("reply-to"):
        reply_kind, name = _parse(reply_to, traits.is_quoted)
        fields["JMSReplyTo"] = f"{reply_kind or 'queue'}:{name}"


@lru_cache(maxsize=256)
def _parse(destination: str, is_quoted: bool) -> tuple[str, str]:
    """Splits a destination into kind, empty if it has none, and bare name.

    The name is `orders` in `orders`, `/queue/orders`, `queue://orders`, `temp-queue://orders` and
    `/remote-temp-queue/orders`.
    """
    match = _DESTINATION.match(destination)
    kind, name = (match[1] or "", match[2]) if match else ("", destination)
    return kind, unquote(name) if is_quoted else name


def _message_id(broker_id: str) -> str:
    """Returns a JMSMessageID for the broker's message-id, with the prefix `ID:`.

    Artemis writes the consumer and a comma in front of the id; that part is removed.
    """
    bare = broker_id.rpartition(",")[2]
    return bare if bare.startswith("ID:") else f"ID:{bare}"


def _body_type(frame: StompFrame, traits: StompTraits) -> BodyType:
    headers = frame.headers
    content_type = headers.get("content-type", headers.get(_AMQP_CONTENT_TYPE, ""))
    if body_type := _BY_MESSAGE_TYPE.get(headers.get(_MESSAGE_TYPE, "")):
        return body_type
    if body_type := _BY_ENCODING.get(headers.get(_ENCODING, "")):
        return body_type
    if content_type.startswith(_SERIALIZED):
        return BodyType.OBJECT
    if _binary(headers, content_type, traits.plain_body):
        return BodyType.BYTES
    # A truncated body may end within a character, so it is not checked for UTF-8.
    return BodyType.TEXT if frame.size > len(frame.body) else BodyType.of(frame.body)


def _binary(headers: Mapping[str, str], content_type: str, sign: PlainBody) -> bool:
    """Returns True if the message was sent as bytes, as far as the frame tells it."""
    if "content-length" not in headers or content_type.startswith("text/"):
        return False
    if sign is PlainBody.CONTENT:
        return content_type == _OCTETS
    if sign is PlainBody.LENGTH:
        return True
    for name in headers:
        if name in ("content-length", "message-id"):
            return name == "content-length"
    return True


def to_frame(outgoing: Outgoing, traits: StompTraits) -> bytes:
    """Returns a complete SEND frame, which requests a receipt with the message's number as its id.

    Raises:
        RefusedError: a header has a NUL character, which STOMP cannot carry, or a property has a name that the broker
            does not take.
    """
    message = outgoing.message
    headers = _destination(outgoing.address, traits)
    headers["receipt"] = str(outgoing.number)
    if traits.sent_id:
        headers[traits.sent_id] = outgoing.id
    headers |= _fields(message, traits)
    if reply := _reply_address(outgoing, traits):
        headers["reply-to"] = traits.spelled_reply(*reply)
    if message.origins:
        headers[traits.origin] = ",".join(message.origins)
    body = message.body
    if _goes_as_text(message, traits):
        body = to_modified_utf8(body) if traits.takes_modified_utf8 else body
    else:
        # A frame without a content-length is a text message, and its body ends at the first NUL.
        headers["content-length"] = str(len(body))
        if traits.marks_bytes:
            headers["content-type"] = _OCTETS
    if message.body_types in _WITHOUT_TEXT and message.body_type is BodyType.TEXT:
        headers[traits.property_names.encoded(BODY_TYPES)] = message.body_types
    headers |= _properties(message, traits)
    lines = "".join([f"{escape(name)}:{escape(text)}\n" for name, text in headers.items()])
    if "\0" in lines:
        raise RefusedError(_unfit(headers))
    return b"".join((b"SEND\n", lines.encode("utf-8", "replace"), b"\n", body, b"\0"))


def _properties(message: Message, traits: StompTraits) -> dict[str, str]:
    """Returns the headers for the properties of a message, under names that the broker takes."""
    headers: dict[str, str] = {}
    for name, value in message.named().items():
        if COMMANDS.match(name):
            continue
        if traits.commands and traits.commands.match(name):
            not_kept(name, "the broker would take it for a command")
            continue
        spelling = traits.property_names.encoded(name)
        if _is_property(spelling) and (spelling or traits.property_names is ANY):
            headers[spelling] = value.text
        elif not name.startswith(RESERVED) and name not in _INTERNAL:
            not_kept(name, "the broker has another meaning for this header" if name else "the name is empty")
    return headers


def _reply_address(outgoing: Outgoing, traits: StompTraits) -> tuple[str, str] | None:
    """Returns kind and name of the reply address: that of the bridge for a request, else JMSReplyTo; None without."""
    if outgoing.reply_to is not None:
        return kind_and_name(outgoing.reply_to)
    reply = parsed(outgoing.message.headers.get("JMSReplyTo", ""))
    # A broker that refuses the name would end the connection; the queue is one of another broker.
    return None if reply and traits.names and not traits.names.fullmatch(reply[1]) else reply


def _destination(address: str, traits: StompTraits) -> dict[str, str]:
    kind, name = kind_and_name(address)
    headers = {"destination": traits.spelled(kind, name)}
    return headers | {"destination-type": traits.kinds[kind]} if traits.kinds else headers


def _fields(message: Message, traits: StompTraits) -> dict[str, str]:
    """Returns frame headers for the JMS fields that a sender may set.

    Fields whose value is not a valid number are omitted, since Artemis would refuse the frame.
    """
    fields, now = message.headers, time.time() * 1000
    headers = {_TEXTS[name]: text for name, text in fields.items() if name in _TEXTS}
    if fields.get("JMSDeliveryMode") == "NON_PERSISTENT":
        headers |= {"persistent": "false", **traits.with_non_persistent}
    else:
        headers["persistent"] = "true"
    if (priority := _number(fields, "JMSPriority", _MOST_PRIORITY)) is not None:
        headers["priority"] = str(priority)
    elif traits.needs_priority:
        headers["priority"] = _DEFAULT_PRIORITY
    if expiration := _number(fields, "JMSExpiration", _MOST_LONG):
        if traits.is_expires_absolute:
            headers["expires"] = str(expiration)
        if traits.lifetime:
            # A message that has expired by now has one millisecond left, so that the broker treats it as expired.
            headers[traits.lifetime] = str(max(int(expiration - now), 1))
    if (sequence := _number(fields, "JMSXGroupSeq", _MOST_INT)) is not None:
        headers[traits.group_sequence] = str(sequence)
    if traits.scheduled and (delivery := _number(fields, "JMSDeliveryTime", _MOST_LONG)) and delivery > now:
        headers[traits.scheduled] = str(delivery)
    return headers


def _number(fields: Mapping[str, str], name: str, most: int) -> int | None:
    number = whole(fields.get(name, ""))
    return number if number is not None and number <= most else None


def _goes_as_text(message: Message, traits: StompTraits) -> bool:
    if message.body_type is not BodyType.TEXT or BodyType.of(message.body) is not BodyType.TEXT:
        return False
    return traits.takes_modified_utf8 or 0 not in message.body


def _unfit(headers: Mapping[str, str]) -> str:
    name = next(name for name, text in headers.items() if "\0" in name or "\0" in text)
    return f"header {name[:100]!r} has a NUL character, which STOMP cannot carry"
