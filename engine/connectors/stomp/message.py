"""What the headers of a STOMP MESSAGE frame mean in JMS: one table, and the canonical message made with it.

Found out on Artemis 2.40, whose frames say more than the specification asks for. `docs/connectors/stomp.md` shows the
same table to users and says what a frame cannot tell. Nothing here fails: a header may hold anything.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.message import ORIGIN, BodyType, Message
from routes.properties import Property

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.stomp.frames import Frame

__all__ = ["is_property", "to_message"]

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
"""Frame header to JMS field where the value is the same. The others are made in `to_message`."""

_NO_PROPERTIES = frozenset(
    {
        # the protocol's own
        *("subscription", "message-id", "destination", "ack", "content-length", "receipt", "transaction"),
        *("persistent", "reply-to", "destination-type"),
        # what asks Artemis or ActiveMQ for a delay, without a word of when
        *("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME"),
        # fields that only the broker may set, under a name that a sender could give to a property
        *("JMSDestination", "JMSReplyTo", "JMSCorrelationID", "JMSType", "JMSDeliveryMode", "JMSPriority"),
        *("JMSTimestamp", "JMSDeliveryTime", "JMSExpiration", "JMSRedelivered"),
        # Artemis's notes to itself
        *("__AMQ_CID", "_AMQ_DUPL_ID", "_AMQ_LARGE_SIZE", "_AMQ_ROUTING_TYPE", "ingress-timestamp"),
        *(_NATIVE_ID, _ENCODING),
        *("JMS_AMQP_HEADER", "JMS_AMQP_HEADERDURABLE", "JMS_AMQP_HEADERPRIORITY", _MESSAGE_TYPE),
        *("JMS_AMQP_MA_x-opt-jms-dest", "JMS_AMQP_MA_x-opt-jms-reply-to"),
    }
)
_BRIDGE = ("jmsbridge.", "JMS_JmsBridge_")
"""How names begin that only a bridge may use; no sender from outside can pass for one."""
_KNOWN: Mapping[str, str] = dict.fromkeys(_NO_PROPERTIES, "") | dict(_FIELDS)
"""Frame header to JMS field, empty for none; a header that is not in it is a property, or a bridge's own."""
_DESTINATION = re.compile(r"^(?:/?(?:temp-)?(queue|topic)(?:://|/))?(.*)$", re.DOTALL)

# Of messages that came to Artemis by AMQP: the JMS annotation of their sender (JMS mapping of AMQP, 3.2.3), and how
# Artemis says they were encoded.
_BY_MESSAGE_TYPE = {
    "1": BodyType.OBJECT,
    "2": BodyType.MAP,
    "3": BodyType.BYTES,
    "4": BodyType.STREAM,
    "5": BodyType.TEXT,
}
_BY_ENCODING = {"3": BodyType.STREAM, "7": BodyType.MAP, "8": BodyType.STREAM}
_SERIALIZED = "application/x-java-serialized-object"


def is_property(name: str) -> bool:
    """Whether a header of that name is a property of the message, so that a property can go by that name."""
    return name not in _KNOWN and not name.startswith(_BRIDGE)


def to_message(frame: Frame, kind: str, source: str, *, artemis: bool) -> Message:
    """The canonical message of a MESSAGE frame that came by a subscription of that kind, `queue` or `topic`."""
    fields: dict[str, str] = {}
    properties: dict[str, Property] = {}
    for name, value in frame.headers.items():
        field = _KNOWN.get(name)
        if field:
            fields.setdefault(field, value)
        elif field is None and not name.startswith(_BRIDGE):
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
        # An empty one says nothing, and a message is known again by its id.
        fields["JMSMessageID"] = headers.get(_NATIVE_ID) or _message_id(headers.get("message-id", ""))
    fields["JMSDestination"] = f"{kind}:{_parse(headers.get('destination', ''))[1]}"
    if (persistent := headers.get("persistent")) is not None:
        fields["JMSDeliveryMode"] = "PERSISTENT" if persistent.lower() == "true" else "NON_PERSISTENT"
    if reply_to := headers.get("reply-to"):
        reply_kind, name = _parse(reply_to)
        fields["JMSReplyTo"] = f"{reply_kind or 'queue'}:{name}"


@lru_cache(maxsize=256)
def _parse(destination: str) -> tuple[str, str]:
    """Kind, if it says, and bare name: `orders` of `orders`, `/queue/orders`, `queue://orders`, `temp-queue://orders`."""
    found = _DESTINATION.match(destination)
    return (found[1] or "", found[2]) if found else ("", destination)


def _message_id(broker_id: str) -> str:
    """`ID:` and what identifies the message at the broker; Artemis puts the consumer in front, with a comma."""
    bare = broker_id.rpartition(",")[2]
    return bare if bare.startswith("ID:") else f"ID:{bare}"


def _body_type(frame: Frame, *, artemis: bool) -> BodyType:
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
    # The end of a body that was cut may be half a character.
    return BodyType.TEXT if frame.size > len(frame.body) else BodyType.of(frame.body)


def _binary(headers: Mapping[str, str], content_type: str, *, artemis: bool) -> bool:
    """Whether it was sent as bytes.

    By the habit of brokers, and of the specification's examples, bytes have a content-length and text has none.
    Artemis gives it to both, to bytes as soon as it knows them, to text at the end of the headers.
    """
    if "content-length" not in headers or content_type.startswith("text/"):
        return False
    if not artemis:
        return True
    for name in headers:
        if name in ("content-length", "message-id"):
            return name == "content-length"
    return True
