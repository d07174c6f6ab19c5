"""Conversion of AMQP bodies to JMS bodies and back, by the tables in `docs/connectors/amqp.md`.

The message type that a JMS client gives decides only where the AMQP body can be several kinds of JMS message, such as
an object message made from a string, or a plain message without a body.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engine.connectors.amqp.annotations import BODIES, MESSAGE
from engine.connectors.amqp.codec.sections import DATA, SEQUENCE, VALUE
from engine.connectors.amqp.codec.values import AmqpMap, Array, Symbol
from engine.connectors.amqp.conversion import UnfitError, entry, value_of
from engine.connectors.base import RefusedError
from engine.jms_values import (
    NULL,
    MapEntry,
    StructureError,
    decode_map,
    decode_object,
    decode_stream,
    encode_map,
    encode_object,
    encode_stream,
)
from engine.message import NO_BODY, NULL_BODY, BodyType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.connectors.amqp.codec.sections import Sections
    from engine.message import Message

__all__ = ["ENCODED", "Body", "is_serialized", "read_body", "write_body"]

ENCODED = "amqp"
"""Body type of an object message whose body is an encoded AMQP section, because no JMS value can hold the content."""

Body = tuple[bytes, BodyType, str]
"""The body, its type, and the types in it, as in `Message`."""

_JAVA = b"\xac\xed"
"""First bytes of every serialized Java object."""
_EMPTY: Mapping[BodyType | None, bytes] = {BodyType.MAP: b"{}", BodyType.STREAM: b"[]"}


def read_body(sections: Sections, message_type: int | None, errors: dict[str, str], *, exact: bool) -> Body:
    """Converts the body of an AMQP message to a JMS body.

    `message_type` is the annotation of a JMS client, None without one; `exact` is True for a message of a JMS client.
    `errors` receives each value that JMS cannot hold, by the entry's name in a map, by its number in a stream, else by
    an empty name.
    """
    body, content = sections.body, sections.content
    wanted = None if message_type is None else BODIES.get(message_type, BodyType.BYTES)
    kind = type(content)
    if message_type == MESSAGE and (content is None or content in (b"", "")):
        # RabbitMQ adds the data section that AMQP asks for, and JMS clients leave out; the sink sends an empty text.
        return b"", BodyType.TEXT, NO_BODY
    if body == DATA:
        return _read_data(content, wanted)
    if content is None and (body is None or wanted is not None):
        return _read_nothing(wanted, null=body == VALUE)
    if wanted is BodyType.OBJECT:
        return _read_object(sections, errors, exact=True)
    if kind is str or kind is Symbol:
        return content.encode(), BodyType.TEXT, ""
    if kind is bytes:
        return content, BodyType.BYTES, ""
    if kind is AmqpMap:
        return _read_map(content, errors, exact=exact)
    if kind is list:
        return _read_stream(content, errors, exact=exact)
    return _read_object(sections, errors, exact=exact)


def _read_data(content: bytes, wanted: BodyType | None) -> Body:
    if wanted is BodyType.TEXT and BodyType.of(content) is BodyType.TEXT:
        return content, BodyType.TEXT, ""
    return content, BodyType.OBJECT if wanted is BodyType.OBJECT else BodyType.BYTES, ""


def _read_nothing(wanted: BodyType | None, *, null: bool) -> Body:
    """Returns the JMS body for an absent body, or for the null that a JMS client sends."""
    if wanted is BodyType.OBJECT:
        body, types = encode_object(MapEntry(NULL, None))
        return body, BodyType.OBJECT, types
    return _EMPTY.get(wanted, b""), wanted or BodyType.BYTES, NULL_BODY if null and wanted is BodyType.TEXT else ""


def _read_map(pairs: AmqpMap, errors: dict[str, str], *, exact: bool) -> Body:
    entries: dict[str, MapEntry] = {}
    for key, value in pairs:
        name = str(key)
        try:
            if not name or name in entries:
                why = "another entry has this name" if name else "its name is empty"
                raise UnfitError(f"{str(value)[:200]!r}, as {why}")
            entries[name] = entry(value, exact=exact)
        except UnfitError as error:
            errors[name] = str(error)
    body, types = encode_map(entries)
    return body, BodyType.MAP, types


def _read_stream(items: list[Any], errors: dict[str, str], *, exact: bool) -> Body:
    entries: list[MapEntry] = []
    for number, value in enumerate(items):
        try:
            entries.append(entry(value, exact=exact))
        except UnfitError as error:
            entries.append(MapEntry(NULL, None))
            errors[str(number)] = str(error)
    body, types = encode_stream(entries)
    return body, BodyType.STREAM, types


def _read_object(sections: Sections, errors: dict[str, str], *, exact: bool) -> Body:
    try:
        if sections.body == SEQUENCE:
            raise UnfitError("a sequence")
        body, types = encode_object(entry(sections.content, exact=exact))
    except UnfitError as error:
        # A list, map or array from a JMS client is not an error: the client sent it as an object, and gets it back
        # unchanged.
        if not (exact and type(sections.content) in (list, AmqpMap, Array)):
            errors[""] = str(error)
        return sections.encoded_body, BodyType.OBJECT, ENCODED
    return body, BodyType.OBJECT, types


def write_body(message: Message, sections: Sections) -> None:
    """Sets the body of an AMQP message to that of a JMS message.

    Raises:
        RefusedError: the body of a map or stream message is not a JSON object or array, or a text is not UTF-8.
    """
    kind = message.body_type
    try:
        if kind is BodyType.TEXT:
            sections.body, sections.content = VALUE, None if message.body_types == NULL_BODY else message.body.decode()
        elif kind is BodyType.BYTES:
            sections.body, sections.content = DATA, message.body
        elif kind is BodyType.MAP:
            members = decode_map(message.body, message.body_types)
            sections.body, sections.content = VALUE, AmqpMap((name, value_of(each)) for name, each in members.items())
        elif kind is BodyType.STREAM:
            entries = decode_stream(message.body, message.body_types)
            sections.body, sections.content = SEQUENCE, [value_of(each) for each in entries]
        else:
            _write_object(message, sections)
    except UnicodeDecodeError as error:
        raise RefusedError("the body of a text message is not UTF-8") from error
    except StructureError as error:
        raise RefusedError(str(error)) from error


def _write_object(message: Message, sections: Sections) -> None:
    if message.body_types == ENCODED:
        sections.encoded_body = message.body
        return
    sections.body, sections.content = DATA, message.body
    if not is_serialized(message):
        # A body that is not a single JSON value goes out as data: its receiver may know the format.
        with suppress(StructureError):
            sections.content, sections.body = value_of(decode_object(message.body, message.body_types)), VALUE


def is_serialized(message: Message) -> bool:
    """Returns True if a message is an object message that holds a serialized Java object."""
    return message.body_type is BodyType.OBJECT and message.body.startswith(_JAVA)
