"""The sections of an AMQP 1.0 message, decoded from bytes and encoded again (OASIS AMQP 1.0, part 3.2).

    header, delivery-annotations, message-annotations, properties, application-properties, body, footer

Every section is optional, and they stand in this order. The body consists of data sections, of sequence sections, or of
one value section. The specification requires a body, but brokers send messages without one, so `decode` accepts those.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import UUID

from engine.connectors.amqp.codec.decoding import MOST_DEPTH, READERS, UNREADABLE, unreadable
from engine.connectors.amqp.codec.decoding import decode as decode_value
from engine.connectors.amqp.codec.encoding import encode, encode_list
from engine.connectors.amqp.codec.values import AmqpError, AmqpMap, Symbol, Timestamp, UByte, UInt, ULong, type_name

__all__ = ["DATA", "SEQUENCE", "VALUE", "Header", "Properties", "Sections", "decode", "encode_sections"]

_FIRST = 0x70
_HEADER, _DELIVERY, _ANNOTATIONS, _PROPERTIES, _APPLICATION, DATA, SEQUENCE, VALUE, _FOOTER = range(9)
_NAMES = (
    "header",
    "delivery-annotations",
    "message-annotations",
    "properties",
    "application-properties",
    "data",
    "amqp-sequence",
    "amqp-value",
    "footer",
)
_BY_NAME = {
    f"amqp:{name}:{kind}": number
    for number, (name, kind) in enumerate(
        zip(_NAMES, ("list", "map", "map", "list", "map", "binary", "list", "*", "map"), strict=True)
    )
}
_TYPES: tuple[type, ...] = (list, AmqpMap, AmqpMap, list, AmqpMap, bytes, list, object, AmqpMap)
_RANKS = (0, 1, 2, 3, 4, 5, 5, 5, 6)
_BODY_RANK = 5
_SMALL_ULONG = 0x53
_SMALL, _LARGE = (0xC0, 0xC1), (0xD0, 0xD1)
_LONGEST_KNOWN = 128
_LONGEST_HEAD = 256
_MOST_RIGHT = 1000
_UINT = struct.Struct(">I")
_OFTEN_THE_SAME = (_HEADER, _ANNOTATIONS)
_DESCRIPTORS = tuple(bytes((0, _SMALL_ULONG, _FIRST + number)) for number in range(len(_NAMES)))
_BY_DESCRIPTOR = {descriptor: number for number, descriptor in enumerate(_DESCRIPTORS)}

_TEXT = (str, Symbol)
_KEYS = (str, Symbol, ULong)
_ID = (str, UUID, ULong, bytes)
Fields = tuple[tuple[str, tuple[type, ...]], ...]
_HEADER_FIELDS: Fields = (
    ("durable", (bool,)),
    ("priority", (UByte,)),
    ("ttl", (UInt,)),
    ("first-acquirer", (bool,)),
    ("delivery-count", (UInt,)),
)
_PROPERTIES_FIELDS: Fields = (
    ("message-id", _ID),
    ("user-id", (bytes,)),
    ("to", _TEXT),
    ("subject", _TEXT),
    ("reply-to", _TEXT),
    ("correlation-id", _ID),
    ("content-type", _TEXT),
    ("content-encoding", _TEXT),
    ("absolute-expiry-time", (Timestamp,)),
    ("creation-time", (Timestamp,)),
    ("group-id", _TEXT),
    ("group-sequence", (UInt,)),
    ("reply-to-group-id", _TEXT),
)


_right_types: dict[str, set[tuple[type, ...]]] = {"header": set(), "properties": set()}
"""Types of a section's fields, in their order, that were found right: checking them one by one takes longer."""


@dataclass(slots=True)
class Header:
    """The header section: how the message is to be delivered (3.2.1). A field that is None is absent."""

    durable: bool | None = None
    priority: UByte | None = None
    ttl: UInt | None = None
    """Milliseconds."""
    first_acquirer: bool | None = None
    delivery_count: UInt | None = None
    """Earlier deliveries of this message that failed."""


@dataclass(slots=True)
class Properties:
    """The properties section: the message's standard properties (3.2.4). A field that is None is absent."""

    message_id: str | UUID | ULong | bytes | None = None
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: str | UUID | ULong | bytes | None = None
    content_type: str | None = None
    """A symbol. `decode` also accepts a string, and leaves it one; `encode_sections` writes a symbol."""
    content_encoding: str | None = None
    absolute_expiry_time: Timestamp | None = None
    creation_time: Timestamp | None = None
    group_id: str | None = None
    group_sequence: UInt | None = None
    reply_to_group_id: str | None = None


@dataclass(slots=True)
class Sections:
    """A message, split into its sections. A section that is None is absent."""

    header: Header | None = None
    delivery_annotations: AmqpMap | None = None
    message_annotations: AmqpMap | None = None
    properties: Properties | None = None
    application_properties: AmqpMap | None = None
    body: int | None = None
    """Kind of the body: `DATA`, `SEQUENCE` or `VALUE`; None without a body."""
    content: Any = None
    """Content of the body: bytes, a list, or the value. The contents of several sections are concatenated."""
    footer: AmqpMap | None = None
    encoded_body: bytes = field(default=b"", repr=False, compare=False)
    """The body's sections as received; empty for a `DATA` body. Where it is set, `encode_sections` writes it in
    place of `body` and `content`."""


def decode(data: bytes) -> Sections:
    """Decodes a message. Messages may share parts, such as equal annotations, so the caller must not change them.

    Raises:
        AmqpError: the bytes are not a message: they are cut off, the sections are out of order, or a section or
            field has a wrong type.
    """
    sections: list[Any] = [None] * len(_NAMES)
    parts: list[Any] = []
    body: int | None = None
    rank, offset, start, body_start, body_end = -1, 0, 0, 0, 0
    end = data.find(_DESCRIPTORS[_PROPERTIES], 0, _LONGEST_HEAD)
    if end > 0 and (head := _head(data[:end])) is not None:
        sections[: len(head)], rank, offset = head, _RANKS[_ANNOTATIONS], end
    try:
        while offset < len(data):
            start = offset
            number = _BY_DESCRIPTOR.get(data[offset : offset + 3], -1)
            number, offset = (number, offset + 3) if number >= 0 else _number(data, offset)
            if _RANKS[number] <= rank and not (number == body != VALUE and rank == _BODY_RANK):
                raise _out_of_order(number, start)
            rank = _RANKS[number]
            value, offset = (
                _known(data, offset)
                if number in _OFTEN_THE_SAME
                else READERS[data[offset]](data, offset + 1, MOST_DEPTH)
            )
            if type(value) is not _TYPES[number] and number != VALUE:
                raise AmqpError(f"section {_NAMES[number]} at byte {start} is of type {type_name(value)}")
            if type(value) is AmqpMap and number != VALUE:
                _check_keys(value, number)
            if rank == _BODY_RANK:
                body, body_start, body_end = number, start if body is None else body_start, offset
                parts.append(value)
            else:
                sections[number] = value
    except UNREADABLE as error:
        raise unreadable(error, data, start) from error
    header, properties = sections[_HEADER], sections[_PROPERTIES]
    return Sections(
        Header(*_fields(header, _HEADER_FIELDS, "header")) if type(header) is list else header,
        sections[_DELIVERY],
        sections[_ANNOTATIONS],
        None if properties is None else Properties(*_fields(properties, _PROPERTIES_FIELDS, "properties")),
        sections[_APPLICATION],
        body,
        None if body is None else _content(body, parts),
        sections[_FOOTER],
        b"" if body is None or body == DATA else data[body_start:body_end],
    )


@lru_cache(1000)
def _head(encoded: bytes) -> tuple[Header | None, AmqpMap | None, AmqpMap | None] | None:
    """Decodes header and annotations, which messages of one sender share; None if the bytes are not just these.

    They are something else if the descriptor of the properties, at which the caller cuts, occurs within an annotation.
    """
    try:
        sections = decode(encoded)
    except AmqpError:
        return None
    if sections.body is not None or sections.application_properties is not None or sections.footer is not None:
        return None
    return sections.header, sections.delivery_annotations, sections.message_annotations


def _check_keys(pairs: AmqpMap, number: int) -> None:
    for key, _ in pairs:
        if type(key) not in _KEYS:
            raise AmqpError(f"section {_NAMES[number]} has a key of type {type_name(key)}")


def _known(data: bytes, offset: int) -> tuple[Any, int]:
    """Decodes the list or map at an offset and returns it with the offset behind it; short ones come from a cache."""
    code, size = data[offset], _LONGEST_KNOWN
    if code in _SMALL:
        size = 2 + data[offset + 1]
    elif code in _LARGE:
        size = 5 + _UINT.unpack_from(data, offset + 1)[0]
    if size < _LONGEST_KNOWN and offset + size <= len(data):
        with suppress(AmqpError):
            return _decoded(data[offset : offset + size]), offset + size
    return READERS[data[offset]](data, offset + 1, MOST_DEPTH)


_decoded = lru_cache(1000)(decode_value)


def encode_sections(sections: Sections) -> bytes:
    """Encodes a message. Empty maps are left out.

    Raises:
        AmqpError: a value in the message has no encoding.
    """
    parts: list[bytes] = []
    if sections.header is not None:
        header = sections.header
        fields = (header.durable, header.priority, header.ttl, header.first_acquirer, header.delivery_count)
        parts += _DESCRIPTORS[_HEADER], _encode_fields(fields)
    if sections.delivery_annotations:
        parts += _DESCRIPTORS[_DELIVERY], encode(sections.delivery_annotations)
    if sections.message_annotations:
        parts += _DESCRIPTORS[_ANNOTATIONS], encode(sections.message_annotations)
    if sections.properties is not None:
        parts += _DESCRIPTORS[_PROPERTIES], _encode_properties(sections.properties)
    if sections.application_properties:
        parts += _DESCRIPTORS[_APPLICATION], encode(sections.application_properties)
    if sections.encoded_body:
        parts.append(sections.encoded_body)
    elif sections.body is not None:
        parts += _DESCRIPTORS[sections.body], encode(sections.content)
    if sections.footer:
        parts += _DESCRIPTORS[_FOOTER], encode(sections.footer)
    return b"".join(parts)


def _number(data: bytes, offset: int) -> tuple[int, int]:
    """Reads a section's descriptor in an unusual, longer form; returns its number and the offset of its value."""
    if data[offset] != 0:
        raise AmqpError(f"a section begins with byte 0, not {data[offset]:#04x}, at byte {offset}")
    descriptor, end = READERS[data[offset + 1]](data, offset + 2, 1)
    if type(descriptor) is ULong and 0 <= descriptor - _FIRST < len(_NAMES):
        return descriptor - _FIRST, end
    if type(descriptor) is Symbol and descriptor in _BY_NAME:
        return _BY_NAME[descriptor], end
    raise AmqpError(f"there is no section {type_name(descriptor)} {descriptor!r:.100}, at byte {offset}")


def _out_of_order(number: int, offset: int) -> AmqpError:
    what = "another body" if _RANKS[number] == _BODY_RANK else "too late, or twice"
    return AmqpError(f"section {_NAMES[number]} at byte {offset} is {what}; sections have an order")


def _fields(values: list[Any], fields: Fields, section: str) -> list[Any]:
    """Checks the types of a section's fields and returns them; absent fields at the end may be missing."""
    types_found = tuple(map(type, values))
    if types_found in _right_types[section]:
        return values
    if len(values) > len(fields):
        raise AmqpError(f"section {section} has {len(values)} fields, more than {len(fields)}")
    for value, (name, types) in zip(values, fields, strict=False):
        if value is not None and type(value) not in types:
            raise AmqpError(f"field {name} is of type {type_name(value)}, not {' or '.join(map(_shown, types))}")
    if len(_right_types[section]) < _MOST_RIGHT:
        _right_types[section].add(types_found)
    return values


def _shown(kind: type) -> str:
    return {str: "string", bytes: "binary", bool: "boolean"}.get(kind) or kind.__name__.lower()


def _content(body: int, parts: list[Any]) -> Any:
    if body == VALUE or len(parts) == 1:
        return parts[0]
    return b"".join(parts) if body == DATA else [item for part in parts for item in part]


def _encode_properties(values: Properties) -> bytes:
    return _encode_fields(
        (
            values.message_id,
            values.user_id,
            values.to,
            values.subject,
            values.reply_to,
            values.correlation_id,
            None if values.content_type is None else Symbol(values.content_type),
            None if values.content_encoding is None else Symbol(values.content_encoding),
            values.absolute_expiry_time,
            values.creation_time,
            values.group_id,
            values.group_sequence,
            values.reply_to_group_id,
        )
    )


def _encode_fields(values: Sequence[Any]) -> bytes:
    """Encodes fields as a list, without the absent ones at its end."""
    last = len(values)
    while last and values[last - 1] is None:
        last -= 1
    return encode_list([encode(value) for value in values[:last]])
