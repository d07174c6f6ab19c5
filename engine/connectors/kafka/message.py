"""What a Kafka record means in JMS: pure functions. `docs/connectors/kafka.md` shows the same table to users.

Records that a bridge has published say what they were in their headers, in any of the styles of `routing.headers`;
those of other programs get what JMS asks for from their place, key and time.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from engine.connectors.kafka.styles import as_text
from engine.message import BodyType, Message, Record
from engine.trace_context import TRACEPARENT, of_headers, with_context
from routes.model import MessageType
from routes.properties import JmsType, Property
from routes.targets import KAFKA_TOPIC

if TYPE_CHECKING:
    from routes.model import SourceConfig

__all__ = ["HOPS", "Located", "Reader"]

HOPS = "JMS_JmsBridge_Hops"
"""Property of a message that came through this bridge before: how often."""

_PROVIDER = "JMS_JmsBridge_"
"""Properties that only the bridge itself may set."""
_OWN = "JMS_Kafka_"
_JMS = "jms."
_BRIDGE = "jmsbridge."
_STALE = frozenset({"JMSDestination", "JMSRedelivered", "JMSXDeliveryCount"})
"""Fields that say how the message came to the bridge that published it."""
_NUMBER = re.compile("[0-9]{1,9}")
_INVALID = re.compile(r"[^\w$]|^(?=\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Located:
    """A record, and where it stands."""

    record: Record
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """Negative if it has none."""


class Reader:
    """Makes canonical messages of one source's records."""

    def __init__(self, source: SourceConfig, bridge_id: str, *, propagates: bool = True) -> None:
        """`propagates`: a trace context in headers of its own stands before that of `jms.traceparent`."""
        self._source = source
        self._bridge = bridge_id
        self._propagates = propagates

    def message(self, found: Located) -> tuple[Message, str | None]:
        """The message, and why it cannot be read as its source should; then the body is what came, of type bytes."""
        record = as_text(found.record)
        plain = Message.from_record(record)
        fields = {name: text for name, text in plain.headers.items() if name not in _STALE}
        properties = {name: value for name, value in plain.properties.items() if not name.startswith(_PROVIDER)}
        foreign = _foreign(record)
        for name, value in foreign.items():
            properties.setdefault(name, value)
        properties |= _place(found)
        if self._propagates and TRACEPARENT in foreign:
            # Agents of Kafka clients set this header and know of no other: what `jms.traceparent` says is older.
            properties = with_context(properties, of_headers(record.headers))
        _complete(fields, found)
        origins, hops = self._origins(plain)
        if hops:
            properties[HOPS] = Property(str(hops), JmsType.INT)
        body_type, fault = _body_type(plain, self._source.message_type)
        address = self._address(found.topic, plain)
        if address is None:
            fault = fault or f"it has not all headers of its address, {self._source.address}"
        else:
            fields["JMSDestination"] = address
        types = plain.body_types if body_type is plain.body_type else ""
        message = Message(plain.body, body_type, fields, properties, self._source.name, origins, types)
        return message, fault

    def _origins(self, plain: Message) -> tuple[tuple[str, ...], int]:
        """The bridges that routed it, without this one unless that is too often, and how often this one did."""
        own = self._bridge
        before = plain.properties.get(HOPS)
        hops = plain.origins.count(own) + (int(before.text) if before and _NUMBER.fullmatch(before.text) else 0)
        if hops > self._source.hops:
            # The router leaves out, and counts, what it routed itself.
            return plain.origins if own in plain.origins else (*plain.origins, own), hops
        return tuple(origin for origin in plain.origins if origin != own), hops

    def _address(self, topic: str, plain: Message) -> str | None:
        def text_of(name: str) -> str | None:
            if name == KAFKA_TOPIC:
                return topic
            found = plain.lookup(name)
            return None if found is None else found.text

        assert self._source.address is not None
        return self._source.address.fill(text_of)


def _complete(fields: dict[str, str], found: Located) -> None:
    """Adds what every message has, from key, place and time of the record."""
    if "JMSCorrelationID" not in fields and found.record.key and (key := _text(found.record.key)):
        fields["JMSCorrelationID"] = key
    # An empty one says nothing, and a message is known again by its id.
    fields["JMSMessageID"] = fields.get("JMSMessageID") or f"ID:{found.topic}:{found.partition}:{found.offset}"
    fields.setdefault("JMSDeliveryMode", "PERSISTENT")
    fields["JMSRedelivered"] = "false"
    if found.timestamp_ms >= 0:
        fields.setdefault("JMSTimestamp", str(found.timestamp_ms))


def _place(found: Located) -> dict[str, Property]:
    """Where the record stands, and its key."""
    own = {
        f"{_OWN}Topic": Property(found.topic, JmsType.STRING),
        f"{_OWN}Partition": Property(str(found.partition), JmsType.INT),
        f"{_OWN}Offset": Property(str(found.offset), JmsType.LONG),
    }
    if found.record.key is not None:
        own[f"{_OWN}Key"] = _property(found.record.key)
    return own


def _foreign(record: Record) -> dict[str, Property]:
    """Headers of other programs, under names that JMS allows; the first of repeated ones."""
    found: dict[str, Property] = {}
    for name, value in record.headers:
        if value is not None and not name.startswith((_JMS, _BRIDGE)):
            found.setdefault(_identifier(name), _property(value))
    return found


@lru_cache(1000)
def _identifier(name: str) -> str:
    """A header's name as that of a property: what a Java identifier cannot hold becomes `_`."""
    name = _INVALID.sub("_", name) or "_"
    # Names of JMS are JMS' own to give.
    return f"_{name}" if name.startswith("JMS") else name


def _property(value: bytes) -> Property:
    text = _text(value)
    if text is None:
        return Property(base64.b64encode(value).decode(), JmsType.BYTES)
    return Property(text, JmsType.STRING)


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _body_type(plain: Message, wanted: MessageType) -> tuple[BodyType, str | None]:
    if wanted is MessageType.BYTES:
        return BodyType.BYTES, None
    if wanted is MessageType.AUTO:
        return plain.body_type, None
    if BodyType.of(plain.body) is BodyType.TEXT:
        return BodyType.TEXT, None
    return BodyType.BYTES, "its value is no UTF-8, but message.type is TEXT"
