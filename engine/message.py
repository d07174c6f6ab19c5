"""The canonical message, and its form as a Kafka record: what the journal holds and what routes publish.

The record is the message: value = body, key = what keeps related messages in order, headers = text. Standard JMS
fields and properties stand under `jms.<name>`, the bridge's own facts under `jmsbridge.<name>`. Connectors make
messages, `journal` writes them, Spark reads the records; nothing here knows any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from types import MappingProxyType

from routes.immutable import immutable
from routes.properties import HEADER_FIELDS, Property, decode_types, encode_types

__all__ = [
    "BODY",
    "BODY_TYPES",
    "DESTINATION",
    "LARGE_BYTES",
    "ORIGIN",
    "POSITION",
    "REPLAYS",
    "ROUTE",
    "SIZE",
    "SOURCE",
    "TYPES",
    "BodyType",
    "Message",
    "Record",
]

ORIGIN = "jmsbridge.origin"
"""`bridge.id` of a bridge that routed the message; one header for each bridge it came through."""
POSITION = "jmsbridge.position"
"""`topic:partition:offset` of the journal record that an output record was made from."""
SOURCE = "jmsbridge.source"
"""Name of the source that took the message in."""
BODY = "jmsbridge.body"
"""The JMS body type, see `BodyType`."""
TYPES = "jmsbridge.types"
"""The declared types of properties, see `routes.properties.encode_types`."""
BODY_TYPES = "jmsbridge.body-types"
"""The types of the values in a map, stream or object body, see `engine.codecs.structured`."""
DESTINATION = "jmsbridge.destination"
"""Where a sink sends the message; only on the records between the router and sinks."""
ROUTE = "jmsbridge.route"
"""Name of the route that chose it; on those records, and on dead letters."""
REPLAYS = "jmsbridge.replays"
"""How often the message was replayed as a dead letter; only on those that were."""
SIZE = "jmsbridge.size"
"""Bytes of key, value and headers; only on records of `LARGE_BYTES` and more, so that the router need not measure."""
LARGE_BYTES = 256 * 1024
"""From this size on a journal record carries `SIZE`."""

_JMS = "jms."
_BARE = slice(len(_JMS), None)
_EMPTY: Mapping[str, str] = MappingProxyType({})
_MILLISECONDS = re.compile("[0-9]{1,18}")


class BodyType(StrEnum):
    """What kind of JMS message it is; only text and bytes can be routed as they are."""

    TEXT = "text"
    BYTES = "bytes"
    MAP = "map"
    STREAM = "stream"
    OBJECT = "object"

    @staticmethod
    def of(body: bytes) -> BodyType:
        """Text where a body is UTF-8, else bytes: for a wire that does not say."""
        try:
            body.decode()
        except UnicodeDecodeError:
            return BodyType.BYTES
        return BodyType.TEXT


_BODY_TYPES: Mapping[bytes, BodyType] = {kind.encode(): kind for kind in BodyType}


@immutable
class Record:
    """A Kafka record's content, without a place in a topic."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def header(self, name: str) -> str | None:
        """The first header of that name as text, U+FFFD for what is no UTF-8; None without one or its value."""
        for key, value in self.headers:
            if key == name:
                return None if value is None else value.decode("utf-8", "replace")
        return None

    @property
    def size(self) -> int:
        """Bytes of key, value and headers, without Kafka's own framing."""
        headers = sum(len(name.encode()) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


@immutable
class Message:
    """One JMS message, whatever system it came from."""

    body: bytes = b""
    """Text as UTF-8, bytes as they came; map, stream and object as JSON where their source could read them."""
    body_type: BodyType = BodyType.TEXT
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Standard fields by their JMS names (`routes.properties.HEADER_FIELDS`), values as text; absent ones left out."""
    properties: Mapping[str, Property] = field(default_factory=dict)
    """JMS properties by name."""
    source: str = ""
    """Name of the source that took it in; empty if none did."""
    origins: tuple[str, ...] = ()
    """Bridges that routed it already, oldest first."""
    body_types: str = ""
    """What the body of a map, stream or object message does not tell, see `engine.codecs.structured`; else empty."""

    def lookup(self, name: str) -> Property | None:
        """The value a predicate sees under a JMS field or property name; None if the message has none."""
        if name in HEADER_FIELDS:
            text = self.headers.get(name)
            return None if text is None else Property(text, HEADER_FIELDS[name])
        return self.properties.get(name)

    @property
    def key(self) -> str | None:
        """What keeps related messages in one partition: group, else correlation id, else message id."""
        known = self.headers.get
        return known("JMSXGroupID") or known("JMSCorrelationID") or known("JMSMessageID") or None

    @property
    def expiration_ms(self) -> int:
        """JMSExpiration in milliseconds since 1970; 0 if it never expires, or the field is no such number."""
        text = self.headers.get("JMSExpiration", "0")
        return int(text) if text != "0" and _MILLISECONDS.fullmatch(text) else 0

    def to_record(self, trace: Mapping[str, str] = _EMPTY) -> Record:
        """The Kafka record that the journal holds. Never fails: a header name or text may hold anything.

        `trace` is the context in which the message goes on, by the names of its headers (`engine.trace_context`).
        """
        # `encode` with `replace`: a lone surrogate is the one thing UTF-8 cannot hold; a wire that allowed it must not
        # stop the source.
        headers = [(_JMS + name, text.encode("utf-8", "replace")) for name, text in self.headers.items()]
        typed = []
        for name, value in self.properties.items():
            headers.append((_JMS + name, value.text.encode("utf-8", "replace")))
            if value.type is not None:
                typed.append((name, value.type))
        if typed:
            headers.append((TYPES, encode_types(typed).encode("utf-8", "replace")))
        headers.append((BODY, self.body_type.encode()))
        if self.body_types:
            headers.append((BODY_TYPES, self.body_types.encode("utf-8", "replace")))
        if self.source:
            headers.append((SOURCE, self.source.encode("utf-8", "replace")))
        headers += [(ORIGIN, origin.encode("utf-8", "replace")) for origin in self.origins]
        if trace:
            headers += [(name, text.encode()) for name, text in trace.items()]
        key = self.key
        record = Record(None if key is None else key.encode("utf-8", "replace"), self.body, tuple(headers))
        # Measuring costs as much as the rest; a character of a name has at most four bytes.
        most = len(self.body) + 4 * sum([len(name) + len(value) for name, value in headers])
        if most < LARGE_BYTES or record.size < LARGE_BYTES:
            return record
        return replace(record, headers=(*record.headers, (SIZE, str(record.size).encode())))

    @staticmethod
    def from_record(record: Record) -> Message:
        """The message in a journal or output record.

        Never fails. The first of several headers of one name wins, as in Spark; headers of other systems are left
        out; a header without a value is no property; bytes that are no UTF-8 become U+FFFD; a body type that is not
        one reads as bytes, and a record without one as text where its value is UTF-8, else as bytes.
        """
        first = dict(record.headers)
        if repeated := len(first) < len(record.headers):
            first.update(reversed(record.headers))
        types = decode_types((first.get(TYPES) or b"").decode("utf-8", "replace"))
        headers: dict[str, str] = {}
        properties: dict[str, Property] = {}
        for name, value in first.items():
            if value is None or not name.startswith(_JMS):
                continue
            bare, text = name[_BARE], value.decode("utf-8", "replace")
            if bare in HEADER_FIELDS:
                headers[bare] = text
            else:
                properties[bare] = Property(text, types.get(bare))
        body = record.value or b""
        source = first.get(SOURCE)
        body_types = first.get(BODY_TYPES)
        return Message(
            body,
            _body_type(first.get(BODY), body),
            headers,
            properties,
            source.decode("utf-8", "replace") if source else "",
            _origins(record.headers if repeated else [(ORIGIN, first.get(ORIGIN))]),
            body_types.decode("utf-8", "replace") if body_types else "",
        )


def _origins(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, ...]:
    return tuple([value.decode("utf-8", "replace") for name, value in headers if name == ORIGIN and value is not None])


def _body_type(declared: bytes | None, body: bytes) -> BodyType:
    return BodyType.of(body) if declared is None else _BODY_TYPES.get(declared, BodyType.BYTES)
