"""Conversion of a Kafka record to the canonical message; `docs/connectors/kafka.md` documents the mapping.

The headers of a record that a bridge has published describe the original message, in any style of `routing.headers`. A
record of another program gets its JMS fields from its topic, partition, offset, key and timestamp, and its headers
become properties of the same names.
"""

from __future__ import annotations

import base64
import re
import struct
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING

from engine.connectors.kafka.settings import MessageType
from engine.jms_values import single
from engine.limits import MOST_HEADERS, too_many_headers
from engine.message import TYPES, BodyType, Message, Record
from engine.property_names import not_kept
from engine.record import key_text
from engine.trace_context import TRACEPARENT, TRACESTATE, of_headers, with_context
from routes.properties import HEADER_FIELDS, SEED_NAMES, JmsType, Property, encode_types
from routes.targets import KAFKA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.connectors.kafka.settings import KafkaSourceConfig

__all__ = ["HOPS", "RecordConverter", "SourceRecord", "as_text"]

HOPS = "JMS_JmsBridge_Hops"
"""Property that counts how often a message has passed through this bridge before; absent if never."""

_PROVIDER = "JMS_JmsBridge_"
"""Prefix of properties that only a bridge may set."""
_OWN = "JMS_Kafka_"
_JMS = "jms."
_BRIDGE = "jmsbridge."
_STALE = frozenset({"JMSDestination", "JMSRedelivered", "JMSXDeliveryCount"})
"""Fields that describe how the publishing bridge received the message; they are not taken over."""
_TRACE = frozenset({TRACEPARENT, TRACESTATE})
_NUMBER = re.compile("[0-9]{1,9}")
_INVALID = re.compile(r"[^\w$]|^(?=\d)", re.ASCII)
_INTEGERS: Mapping[str, str] = {JmsType.BYTE: ">b", JmsType.SHORT: ">h", JmsType.INT: ">i", JmsType.LONG: ">q"}
_FLOATS: Mapping[str, str] = {JmsType.FLOAT: ">f", JmsType.DOUBLE: ">d"}
_KINDS = {kind.value: kind for kind in JmsType}

Header = tuple[str, bytes | None]


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """Record with its topic, partition, offset and timestamp."""

    record: Record
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    """Timestamp in milliseconds since 1970; negative if the record has none."""


class RecordConverter:
    """Converter from the records of one source to canonical messages."""

    def __init__(self, source: KafkaSourceConfig, bridge_id: str, *, propagates: bool = True) -> None:
        """Creates the converter.

        With `propagates`, the record's headers `traceparent` and `tracestate` take precedence over `jms.traceparent`.
        """
        self._source = source
        self._bridge = bridge_id
        self._propagates = propagates

    def message(self, received: SourceRecord) -> tuple[Message, str | None]:
        """Returns the canonical message and a fault, None if there is none.

        A fault is the reason why the record cannot be read as configured: its value is not UTF-8 although
        `message.type` is TEXT (the body is then of type bytes), it has more headers than MOST_HEADERS, or it lacks a
        header that the address needs.
        """
        record = as_text(received.record)
        plain = Message.from_record(record)
        fields = {name: text for name, text in plain.headers.items() if name not in _STALE}
        properties = {name: value for name, value in plain.properties.items() if not name.startswith(_PROVIDER)}
        foreign, extra = _foreign(record)
        for name in foreign.keys() & properties.keys() - _TRACE:
            not_kept(name, f"the record has a header {_JMS}{name}, too")
        properties = foreign | properties
        properties |= _place(received)
        if self._propagates and TRACEPARENT in foreign:
            # Tracing agents of Kafka clients set only this header, so a context in `jms.traceparent` is older.
            properties = with_context(properties, of_headers(record.headers))
        _complete(fields, received)
        origins, hops = self._origins(plain)
        if hops:
            properties[HOPS] = Property(str(hops), JmsType.INT)
        body_type, fault = _body_type(plain, self._source.message_type)
        fault = fault or _excess(record)
        address = self._address(received.topic, plain)
        if address is None:
            fault = fault or f"it has not all headers of its address, {self._source.address}"
        else:
            fields["JMSDestination"] = address
        message = Message(
            plain.body,
            body_type,
            fields,
            properties,
            self._source.name,
            origins,
            plain.body_types if body_type is plain.body_type else "",
            plain.has_null_value,
            _spellings(foreign, {*properties, *(name for name, _ in extra)}) | _told(plain, properties),
            _without_own(plain.extra + extra),
        )
        return message, fault

    def _origins(self, plain: Message) -> tuple[tuple[str, ...], int]:
        """Returns the origins of the message, and the number of times this bridge has routed it.

        This bridge is removed from the origins, unless it has routed the message more often than `hops` allows.
        """
        bridge = self._bridge
        before = plain.properties.get(HOPS)
        hops = plain.origins.count(bridge) + (int(before.text) if before and _NUMBER.fullmatch(before.text) else 0)
        if hops > self._source.hops:
            # With its own id among the origins, the router leaves the message out and counts it.
            return plain.origins if bridge in plain.origins else (*plain.origins, bridge), hops
        return tuple(origin for origin in plain.origins if origin != bridge), hops

    def _address(self, topic: str, plain: Message) -> str | None:
        def text_of(name: str) -> str | None:
            if name == KAFKA_TOPIC:
                return topic
            value = plain.lookup(name)
            return None if value is None else value.text

        assert self._source.address is not None
        return self._source.address.fill(text_of)


def _complete(fields: dict[str, str], received: SourceRecord) -> None:
    """Adds the JMS fields that every message has, from key, topic, partition, offset and timestamp of the record."""
    if "JMSCorrelationID" not in fields and received.record.key and (key := _text(received.record.key)):
        fields["JMSCorrelationID"] = key_text(key)
    # An empty id says nothing, and a message is recognised by its id.
    fields["JMSMessageID"] = fields.get("JMSMessageID") or f"ID:{received.topic}:{received.partition}:{received.offset}"
    fields.setdefault("JMSDeliveryMode", "PERSISTENT")
    fields["JMSRedelivered"] = "false"
    if received.timestamp_ms >= 0:
        fields.setdefault("JMSTimestamp", str(received.timestamp_ms))


def _place(received: SourceRecord) -> dict[str, Property]:
    """Returns properties with topic, partition, offset and key of the record."""
    properties = {
        f"{_OWN}Topic": Property(received.topic, JmsType.STRING),
        f"{_OWN}Partition": Property(str(received.partition), JmsType.INT),
        f"{_OWN}Offset": Property(str(received.offset), JmsType.LONG),
    }
    if received.record.key is not None:
        properties[f"{_OWN}Key"] = _property(received.record.key)
    return properties


def _foreign(record: Record) -> tuple[dict[str, Property], tuple[Header, ...]]:
    """Returns the headers set by other programs: properties, and those that no property can hold (`Message.extra`).

    Of a repeated header the first is the property, even if a later one has a value and the first has none.
    """
    properties: dict[str, Property] = {}
    extra: list[Header] = []
    seen: set[str] = set()
    for header, value in record.headers:
        if header.startswith((_JMS, _BRIDGE)):
            continue
        name = _own_name(header)
        if value is None or name in seen:
            if name not in _TRACE:
                extra.append((name, value))
        else:
            properties[name] = _property(value)
        seen.add(name)
    return properties, tuple(extra)


def _own_name(given: str) -> str:
    """Returns the name of the property for a header of another program.

    Names that begin with `JMS` belong to JMS and to bridges, so a `_` precedes them.
    """
    if given and not given.startswith("JMS"):
        return given
    not_kept(given, "a Kafka header without a name" if not given else "names that begin with JMS are reserved")
    return f"_{given}"


def _spellings(foreign: Mapping[str, Property], taken: Collection[str]) -> dict[str, str]:
    """Returns the names of headers by their spelling with underscores, where it stands for one header alone.

    `taken` are the names that mean themselves.
    """
    names: dict[str, str] = {}
    ambiguous: set[str] = set()
    for name in foreign:
        spelling = _identifier(name)
        if spelling in taken or names.setdefault(spelling, name) != name:
            ambiguous.add(spelling)
    return {spelling: name for spelling, name in names.items() if spelling not in ambiguous}


def _told(plain: Message, properties: Mapping[str, Property]) -> dict[str, str]:
    """Returns the names that a record of a bridge tells, as far as they are about properties that the message has."""
    return {
        spelling: name
        for spelling, name in plain.spellings.items()
        if (spelling in properties or name in properties)
        and name not in HEADER_FIELDS
        and not name.startswith((_PROVIDER, _BRIDGE))
    }


def _without_own(extra: tuple[Header, ...]) -> tuple[Header, ...]:
    """Returns the headers without those of which only a bridge may set one."""
    return tuple(header for header in extra if not header[0].startswith((_PROVIDER, _OWN)))


def _excess(record: Record) -> str | None:
    """Returns the reason why a record has too many headers, repeated ones included; None if it has not.

    JMS fields and headers of bridges do not count, so that a message with MOST_HEADERS properties may come back.
    """
    if len(record.headers) <= MOST_HEADERS:
        return None
    return too_many_headers(sum(not _is_own(name) for name, _ in record.headers))


def _is_own(name: str) -> bool:
    return name.startswith(_BRIDGE) or (name.startswith(_JMS) and name.removeprefix(_JMS) in HEADER_FIELDS)


def _identifier(name: str) -> str:
    """Returns a name with `_` for each character that an ASCII identifier of Java cannot have."""
    return (_known_identifier if len(name) <= _LONGEST_KNOWN else _make_identifier)(name)


def _make_identifier(name: str) -> str:
    return _INVALID.sub("_", name)


_LONGEST_KNOWN = 100
_known_identifier = lru_cache(1000)(_make_identifier)
"""Cached `_make_identifier` for short names: programs repeat theirs, and long ones would cost memory."""


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
    if wanted is MessageType.AUTO or plain.has_null_value:
        return plain.body_type, None
    if wanted is MessageType.BYTES:
        return BodyType.BYTES, None
    if BodyType.of(plain.body) is BodyType.TEXT:
        return BodyType.TEXT, None
    return BodyType.BYTES, "its value is not UTF-8, but message.type is TEXT"


def as_text(record: Record) -> Record:
    """Returns the record with its headers in style `text`; `engine.router.plan.headers` has the other direction.

    A field such as `jms.JMSMessageID` means style `text`, and `jms.CorrelationId` without one style `short`: there
    properties may have any name. Else a header such as `jms.int.amount` means style `typed`.
    """
    names = [name[len(_JMS) :] for name, _ in record.headers if name.startswith(_JMS)]
    if any(name.startswith("JMS") for name in names):
        return record
    if any(name in SEED_NAMES for name in names):
        return Record(record.key, record.value, tuple((_long(name), value) for name, value in record.headers))
    if any(name.partition(".")[0] in _KINDS and "." in name for name in names):
        return Record(record.key, record.value, _from_typed(record.headers))
    return record


def _long(name: str) -> str:
    """Returns the header name of style `text` for one of style `short`: `jms.JMSMessageID` for `jms.MessageId`."""
    known = SEED_NAMES.get(name.removeprefix(_JMS)) if name.startswith(_JMS) else None
    return name if known is None else _JMS + known


def _from_typed(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Returns headers of style `typed` in style `text`, with the types in a header of their own.

    If the record already has that header from a bridge, it stays: a bridge lists no type for an untyped property, which
    style `typed` publishes as a string.
    """
    texts: list[Header] = []
    types: list[tuple[str, JmsType]] = []
    for name, value in headers:
        kind, dot, bare = name.removeprefix(_JMS).partition(".")
        if not name.startswith(_JMS) or not dot or kind not in _KINDS:
            texts.append((name, value))
            continue
        texts.append((_JMS + bare, None if value is None else _decoded(value, _KINDS[kind])))
        if value is None:
            continue
        if bare not in HEADER_FIELDS:
            types.append((bare, _KINDS[kind]))
    if types and all(name != TYPES for name, _ in headers):
        texts.append((TYPES, encode_types(types).encode("utf-8", "replace")))
    return tuple(texts)


def _decoded(value: bytes, kind: JmsType) -> bytes:
    """Returns a binary value as text; a value that is not valid for its type stays as it is."""
    try:
        if kind in _INTEGERS:
            return str(struct.unpack(_INTEGERS[kind], value)[0]).encode()
        if kind in _FLOATS:
            return _shown(struct.unpack(_FLOATS[kind], value)[0], kind).encode()
    except struct.error:
        return value
    return base64.b64encode(value) if kind is JmsType.BYTES else value


def _shown(number: float, kind: JmsType) -> str:
    """Formats a number as `Property.text` does; a float as the shortest text that gives the same float."""
    if not isfinite(number):
        return Property.of(number).text
    return repr(single(number) if kind is JmsType.FLOAT else number)
