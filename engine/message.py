"""The canonical message, and its form as a Kafka record, in the journal and on published topics.

The record is the message: value = body, key = what keeps related messages in order, headers = text. Standard JMS fields
and properties stand under `jms.<name>`, the bridge's own facts under `jmsbridge.<name>`. Connectors make messages,
`engine.kafka.journal` writes them, Spark reads the records; this module depends on none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from engine.record import ORIGIN, POSITION, Record, key_text
from routes.immutable import immutable
from routes.predicate import evaluate
from routes.predicate.bodies import BOUNDS, Body, BodyOrigin, body_path
from routes.predicate.nodes import ADDRESS
from routes.predicate.values import find
from routes.properties import HEADER_FIELDS, JmsType, Property, decode_types, encode_type_name, encode_types

if TYPE_CHECKING:
    from routes.predicate import Predicate
    from routes.predicate.bodies import Bounds, DocumentReader

__all__ = [
    "BODY",
    "BODY_TYPES",
    "COPY_OF",
    "DESTINATION",
    "LARGE_BYTES",
    "NAMES",
    "NO_BODY",
    "NULL_BODY",
    "ONLY",
    "ORIGIN",
    "POSITION",
    "REPLAYS",
    "ROUTE",
    "SIZE",
    "SOURCE",
    "TARGET",
    "TYPES",
    "BodyType",
    "Message",
    "Record",
    "decode_names",
    "encode_names",
]

SOURCE = "jmsbridge.source"
"""Name of the source that took the message in."""
BODY = "jmsbridge.body"
"""The JMS body type, see `BodyType`."""
TYPES = "jmsbridge.types"
"""The declared types of properties, see `routes.properties.encode_types`."""
BODY_TYPES = "jmsbridge.body-types"
"""The types of the values in a map, stream or object body, see `engine.jms_values`; for a text, `NULL_BODY` or
`NO_BODY`."""
NULL_BODY = "null"
"""Value of `BODY_TYPES` for a text that is null: a JMS TextMessage with null, or a Kafka record with a null value."""
NO_BODY = "none"
"""Value of `BODY_TYPES` for a message without a body: a JMS Message of no other kind."""
NAMES = "jmsbridge.names"
"""Other spellings of property names: `spelling=name` pairs, encoded as in the header `TYPES`."""
DESTINATION = "jmsbridge.destination"
"""Address to which a sink sends the message; only on records that the router writes for sinks."""
ROUTE = "jmsbridge.route"
"""Name of the route that chose the destination; only on records for sinks and on dead letters."""
TARGET = "jmsbridge.target"
"""Number of the destination in its route, and the destination as the route has it; on records for sinks and on dead
letters, if a message can have several publications."""
ONLY = "jmsbridge.only"
"""Number of a destination, and name of its route: the only publication that a replayed message is for."""
REPLAYS = "jmsbridge.replays"
"""Number of times the message was replayed as a dead letter; absent before the first replay."""
COPY_OF = "jmsbridge.copy-of"
"""`topic:partition:offset` of the journal record that this one repeats; on records of `jms-bridge journal replay`."""
SIZE = "jmsbridge.size"
"""Bytes of key, value and headers; only on records of `LARGE_BYTES` and more, so that the router need not measure."""
LARGE_BYTES = 256 * 1024
"""Size in bytes from which a journal record carries the header `SIZE`."""

_JMS = "jms."
_BARE = slice(len(_JMS), None)
_EMPTY: Mapping[str, str] = MappingProxyType({})
_MILLISECONDS = re.compile("[0-9]{1,18}")
_LONGEST_KNOWN_TYPES, _MOST_KNOWN_TYPES = 1000, 1000
_PAIR = 2


class BodyType(StrEnum):
    """Kind of a JMS message by its body; the router can publish only text and bytes unchanged."""

    TEXT = "text"
    BYTES = "bytes"
    MAP = "map"
    STREAM = "stream"
    OBJECT = "object"

    @staticmethod
    def of(body: bytes) -> BodyType:
        """Guesses the kind of a body whose wire format does not declare one: text if it is UTF-8, else bytes."""
        try:
            body.decode()
        except UnicodeDecodeError:
            return BodyType.BYTES
        return BodyType.TEXT


_BODY_TYPES: Mapping[bytes, BodyType] = {kind.encode(): kind for kind in BodyType}
_ENCODED_BODY_TYPES: Mapping[BodyType, bytes] = {kind: encoded for encoded, kind in _BODY_TYPES.items()}


@immutable
class Message:
    """JMS message in a form that is the same for all systems."""

    body: bytes = b""
    """Body as bytes: text in UTF-8, bytes unchanged; map, stream and object as JSON if the source could read them."""
    body_type: BodyType = BodyType.TEXT
    headers: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Standard fields that the message has, by their JMS names (`routes.properties.HEADER_FIELDS`), with values as
    text."""
    properties: Mapping[str, Property] = field(default_factory=dict)
    """JMS properties by name."""
    source: str = ""
    """Name of the source that took the message in; empty for a message that came through no source."""
    origins: tuple[str, ...] = ()
    """`bridge.id` of each bridge that has routed the message, oldest first."""
    body_types: str = ""
    """Value types that the JSON body of a map, stream or object message cannot express, see `engine.jms_values`;
    `NULL_BODY` or `NO_BODY` for a text message that has no text; else empty."""
    has_null_value: bool = False
    """True for a Kafka record with a null value, which deletes its key in a compacted topic; `body` is then empty."""
    spellings: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    """Names that properties have at the system they come from, by a spelling that is a Java identifier. Either of the
    two is the name of a property; routes find it under the spelling, too."""
    extra: tuple[tuple[str, bytes | None], ...] = ()
    """Headers of a Kafka record that no property can hold, by property names: those with a null value, and repeated
    ones after the first. They go to Kafka topics only."""
    documents: DocumentReader | None = field(default=None, compare=False, repr=False)
    """Reader of bodies with a schema; None: they have no values."""
    bounds: Bounds = field(default=BOUNDS, compare=False, repr=False)
    """Sizes beyond which the body has no values."""

    def lookup(self, name: str) -> Property | None:
        """Value that a predicate sees under the name of a JMS field or property; None if the message has none."""
        if name in HEADER_FIELDS:
            text = self.headers.get(name)
            return None if text is None else Property(text, HEADER_FIELDS[name])
        found = self.properties.get(name)
        return self._spelled(name) if found is None and self.spellings else found

    def text_of(self, name: str) -> str | None:
        """Text under the name of a field or property, a path into the body, or `ADDRESS`; None if there is none."""
        path = body_path(name)
        if path is not None:
            return self.content.text_under(path)
        if name != ADDRESS:
            found = self.lookup(name)
            return None if found is None else found.text
        address = find(self.lookup, name)
        return None if address is None else str(address.value)

    @property
    def content(self) -> Body:
        """The body as predicates see it."""
        return Body(None if self.has_null_value else self.body, self.bounds, self.documents, self.origin)

    @property
    def origin(self) -> BodyOrigin:
        """Source and kind of the body, by which the schema of a bare value is known."""
        return BodyOrigin(self.source, self.body_type)

    def fulfils(self, predicate: Predicate) -> bool:
        """True if a predicate of the routing language is true for the message."""
        return evaluate(predicate, self.lookup, self.content) is True

    def _spelled(self, spelling: str) -> Property | None:
        """Returns the property that is not there under its spelling, not even without a value, but under its name."""
        is_there = spelling in self.properties or any(name == spelling for name, _ in self.extra)
        spelled = None if is_there else self.spellings.get(spelling)
        return None if spelled is None else self.properties.get(spelled)

    def named(self) -> Mapping[str, Property]:
        """Returns the properties by the names that they have at the system they come from."""
        if not self.spellings:
            return self.properties
        names = {spelling: name for spelling, name in self.spellings.items() if name not in self.properties}
        return {names.get(name, name): value for name, value in self.properties.items()}

    @property
    def key(self) -> str | None:
        """Record key, which keeps related messages in one partition: group id, else correlation id, else message id.

        For a long id it is the id's digest, see `key_text`.
        """
        known = self.headers.get
        chosen = known("JMSXGroupID") or known("JMSCorrelationID") or known("JMSMessageID")
        return key_text(chosen) if chosen else None

    @property
    def expiration_ms(self) -> int:
        """JMSExpiration in milliseconds since 1970; 0 if the message never expires or the field has another form."""
        text = self.headers.get("JMSExpiration", "0")
        return int(text) if text != "0" and _MILLISECONDS.fullmatch(text) else 0

    def to_record(self, trace: Mapping[str, str] = _EMPTY) -> Record:
        """Makes the Kafka record that the journal holds; never fails, whatever a header name or text contains.

        `trace` is the trace context of the record, as headers by name (`engine.trace_context`).
        """
        properties = self.properties
        try:
            headers: list[tuple[str, bytes | None]] = [
                (_JMS + name, text.encode()) for name, text in self.headers.items()
            ]
            headers += [(_JMS + name, value.text.encode()) for name, value in properties.items()]
            headers += [(_JMS + name, value) for name, value in self.extra]
        except UnicodeEncodeError:
            # UTF-8 cannot hold a lone surrogate, and a wire format that allows one must not stop the source.
            texts = [*self.headers.items(), *((name, value.text) for name, value in properties.items())]
            headers = [(_JMS + name, text.encode("utf-8", "replace")) for name, text in texts]
            headers += [(_JMS + name, value) for name, value in self.extra]
        typed = tuple([(name, value.type) for name, value in properties.items() if value.type is not None])
        if self.spellings:
            headers.append((NAMES, _names(tuple(self.spellings.items()))))
            # Spark looks up the type under the name that a route uses.
            typed += tuple(
                [(each, found.type) for each in self.spellings if (found := self._spelled(each)) and found.type]
            )
        if typed:
            headers.append((TYPES, _types(typed)))
        headers.append((BODY, _ENCODED_BODY_TYPES[self.body_type]))
        if self.body_types:
            headers.append((BODY_TYPES, self.body_types.encode("utf-8", "replace")))
        if self.source:
            headers.append((SOURCE, self.source.encode("utf-8", "replace")))
        if self.origins:
            headers += [(ORIGIN, origin.encode("utf-8", "replace")) for origin in self.origins]
        if trace:
            headers += [(name, text.encode()) for name, text in trace.items()]
        key = self.key
        value = None if self.has_null_value else self.body
        record = Record(None if key is None else key.encode("utf-8", "replace"), value, tuple(headers))
        # Measuring costs as much as everything else here, so an upper bound comes first: a character has at most four
        # bytes, and the key is no longer than the value of a header.
        names = len("".join([name for name, _ in headers]))
        values = len(b"".join([value or b"" for _, value in headers]))
        if len(self.body) + 4 * names + 2 * values < LARGE_BYTES or record.size < LARGE_BYTES:
            return record
        return replace(record, headers=(*record.headers, (SIZE, str(record.size).encode())))

    @staticmethod
    def from_record(record: Record, documents: DocumentReader | None = None, bounds: Bounds = BOUNDS) -> Message:
        """Reads the message from a journal record or published record; never fails.

        Predicates read a body within `bounds`, and one with a schema by `documents`.

        The first of several headers of one name wins, as in Spark; the others and those without a value are `extra`.
        Headers of other systems are left out. Bytes that are not UTF-8 become U+FFFD. A null value reads as a null
        text. An unknown body type reads as bytes; a record without a body type reads as text if its value is UTF-8,
        else as bytes.
        """
        first = dict(record.headers)
        if repeated := len(first) < len(record.headers):
            first.update(reversed(record.headers))
        types = decode_types((first.get(TYPES) or b"").decode("utf-8", "replace"))
        headers: dict[str, str] = {}
        properties: dict[str, Property] = {}
        extra: tuple[tuple[str, bytes | None], ...] = _extra(record.headers) if repeated else ()
        for name, value in first.items():
            if not name.startswith(_JMS):
                continue
            if value is None:
                extra = extra or _extra(record.headers)
                continue
            bare, text = name[_BARE], value.decode("utf-8", "replace")
            if bare in HEADER_FIELDS:
                headers[bare] = text
            else:
                properties[bare] = Property(text, types.get(bare))
        body = record.value or b""
        source = first.get(SOURCE)
        body_types = first.get(BODY_TYPES)
        body_type = _body_type(first.get(BODY), body)
        if record.value is None:
            body_type, body_types = BodyType.TEXT, NULL_BODY.encode()
        names = first.get(NAMES)
        return Message(
            body,
            body_type,
            headers,
            properties,
            source.decode("utf-8", "replace") if source else "",
            _origins(record.headers if repeated else [(ORIGIN, first.get(ORIGIN))]),
            body_types.decode("utf-8", "replace") if body_types else "",
            record.value is None,
            decode_names(names.decode("utf-8", "replace")) if names else _EMPTY,
            extra,
            documents,
            bounds,
        )


_known_types: dict[tuple[tuple[str, JmsType], ...], bytes] = {}


def sized(record: Record) -> Record:
    """Returns the record with the header `SIZE` if it is large, and without one otherwise."""
    bare = replace(record, headers=tuple(header for header in record.headers if header[0] != SIZE))
    size = bare.size
    return bare if size < LARGE_BYTES else replace(bare, headers=(*bare.headers, (SIZE, str(size).encode())))


def _types(typed: tuple[tuple[str, JmsType], ...]) -> bytes:
    """Returns the value of the types header; short ones from a cache, since many messages declare the same types."""
    if (known := _known_types.get(typed)) is not None:
        return known
    encoded = encode_types(typed).encode("utf-8", "replace")
    if len(encoded) <= _LONGEST_KNOWN_TYPES:
        if len(_known_types) >= _MOST_KNOWN_TYPES:
            _known_types.clear()
        _known_types[typed] = encoded
    return encoded


_known_names: dict[tuple[tuple[str, str], ...], bytes] = {}


def encode_names(spellings: Iterable[tuple[str, str]]) -> str:
    """Returns the value of the header `NAMES`."""
    return ",".join([f"{encode_type_name(spelling)}={encode_type_name(name)}" for spelling, name in spellings])


def decode_names(text: str) -> Mapping[str, str]:
    """Returns the names in a header `NAMES` by their spellings; of several for a spelling the first counts."""
    pairs = [pair.split("=") for pair in text.split(",")]
    names: dict[str, str] = {}
    for pair in pairs:
        if len(pair) == _PAIR:
            names.setdefault(unquote(pair[0]), unquote(pair[1]))
    return names


def _names(spellings: tuple[tuple[str, str], ...]) -> bytes:
    """Returns the value of the header of names; short ones from a cache, since senders repeat their names."""
    if (known := _known_names.get(spellings)) is not None:
        return known
    encoded = encode_names(spellings).encode("utf-8", "replace")
    if len(encoded) <= _LONGEST_KNOWN_TYPES:
        if len(_known_names) >= _MOST_KNOWN_TYPES:
            _known_names.clear()
        _known_names[spellings] = encoded
    return encoded


def _extra(headers: Iterable[tuple[str, bytes | None]]) -> tuple[tuple[str, bytes | None], ...]:
    """Returns the headers of properties that have no value, or that come after another one of the same name."""
    seen: set[str] = set()
    extra: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        if not name.startswith(_JMS) or (bare := name[_BARE]) in HEADER_FIELDS:
            continue
        if value is None or bare in seen:
            extra.append((bare, value))
        seen.add(bare)
    return tuple(extra)


def _origins(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, ...]:
    return tuple([value.decode("utf-8", "replace") for name, value in headers if name == ORIGIN and value is not None])


def _body_type(declared: bytes | None, body: bytes) -> BodyType:
    return BodyType.of(body) if declared is None else _BODY_TYPES.get(declared, BodyType.BYTES)
