"""Conversion between the messages of frames and the canonical message, in both directions."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from engine.connectors.addresses import kind_and_name, parsed
from engine.connectors.base import RESERVED, Delivery, RefusedError
from engine.connectors.jms_client.process import texts, texts_at
from engine.connectors.products import COMMANDS
from engine.jms_values import (
    BOOLEANS,
    CHAR,
    NULL,
    PARSERS,
    MapEntry,
    StructureError,
    decode_map,
    decode_object,
    decode_stream,
    encode_map,
    encode_stream,
    shown,
)
from engine.message import NAMES, NO_BODY, NULL_BODY, ORIGIN, BodyType, Message, decode_names, encode_names
from engine.property_names import JMS, not_kept
from routes.properties import HEADER_FIELDS, JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.connectors.base import Outgoing

__all__ = ["deliveries", "encoded"]

_ORIGINS = (ORIGIN, ORIGIN.replace(".", "_"))
"""Names of the property with the bridges that a message came through; the second where a client takes no dot."""
_SPELLINGS = (NAMES, NAMES.replace(".", "_"))
"""Names of the property with the names that properties have at the system they come from."""
_SPELLED_BRIDGE = "jmsbridge_"
_BRIDGE = (*RESERVED, _SPELLED_BRIDGE)
_INTERNAL = frozenset({"__AMQ_CID", "_AMQ_DUPL_ID", "_AMQ_LARGE_SIZE", "_AMQ_ROUTING_TYPE"})
"""Properties in which Artemis keeps its own notes."""
_FIELD, _FAULT = "H", "F"
_TYPES: Mapping[str, JmsType] = {
    "Z": JmsType.BOOLEAN,
    "b": JmsType.BYTE,
    "s": JmsType.SHORT,
    "i": JmsType.INT,
    "l": JmsType.LONG,
    "f": JmsType.FLOAT,
    "d": JmsType.DOUBLE,
    "S": JmsType.STRING,
    "B": JmsType.BYTES,
}
_LETTERS: Mapping[str, str] = {kind.value: letter for letter, kind in _TYPES.items()} | {CHAR: "c", NULL: "N"}
_REALS = "fd"
_TEXT, _BYTES, _MAP, _STREAM, _OBJECT, _VALUE, _PLAIN, _NULL_TEXT = (ord(letter) for letter in "tbmsovnz")
_BODIES = {
    _TEXT: (BodyType.TEXT, ""),
    _BYTES: (BodyType.BYTES, ""),
    _OBJECT: (BodyType.OBJECT, ""),
    _PLAIN: (BodyType.TEXT, NO_BODY),
    _NULL_TEXT: (BodyType.TEXT, NULL_BODY),
}
"""Body type and body types by the letter of a body that is not a list of values."""
_WITHOUT_TEXT = {types: letter for letter, (_, types) in _BODIES.items() if types}
_HEAD = struct.Struct(">QBI")
_COUNT = struct.Struct(">I")
_GIVEN = ("JMSCorrelationID", "JMSType", "JMSXGroupID", "JMSXGroupSeq")
_OF_SENDING = ("JMSDeliveryMode", "JMSPriority", "JMSExpiration", "JMSDeliveryTime")
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_SERIALIZED = b"\xac\xed"
"""First bytes of every serialized Java object."""


class _Shape:
    """Names of the values of messages that are alike, and where each value goes."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` have the letters of their types before them."""
        self.indexes = struct.Struct(f">{len(names)}I")
        self.fields: list[tuple[int, str]] = []
        self.properties: list[tuple[int, str, JmsType]] = []
        self.reals: list[tuple[int, str, JmsType]] = []
        self.origins: int | None = None
        self.fault: int | None = None
        self.names: int | None = None
        self.spellings: dict[str, str] = {}
        for at, (letter, name) in enumerate((each[0], each[1:]) for each in names):
            if letter == _FIELD:
                self.fields.append((at, name))
            elif letter == _FAULT:
                self.fault = at
            elif name in _ORIGINS:
                self.origins = at
            elif name in _SPELLINGS:
                self.names = at
            elif name not in _INTERNAL and not (own := JMS.decoded(name)).startswith(_BRIDGE):
                (self.reals if letter in _REALS else self.properties).append((at, own, _TYPES[letter]))
                if own != name:
                    self.spellings[name] = own

    def message(self, letter: int, values: Sequence[str], raw: bytes, source: str) -> Message:
        """Makes the message of the letter of a body, its values and its bytes."""
        properties = {name: Property(values[at], kind) for at, name, kind in self.properties}
        for at, name, kind in self.reals:
            properties[name] = Property(shown(float(values[at])), kind)
        body, body_type, body_types = _body(letter, raw)
        origins = () if self.origins is None else tuple(values[self.origins].split(","))
        headers = {name: values[at] for at, name in self.fields}
        spellings = self.spellings
        if self.names is not None:
            properties, told = _renamed(properties, values[self.names])
            spellings = spellings | told
        return Message(body, body_type, headers, properties, source, origins, body_types, spellings=spellings)


def _renamed(properties: dict[str, Property], text: str) -> tuple[dict[str, Property], dict[str, str]]:
    """Returns the properties by the names that a bridge tells, and their names by the spellings that they came with."""
    told = {
        spelling: name
        for spelling, name in decode_names(text).items()
        if spelling in properties
        and name not in properties
        and name not in HEADER_FIELDS
        and not name.startswith(_BRIDGE)
    }
    if len(set(told.values())) < len(told):
        return properties, {}
    return {told.get(name, name): value for name, value in properties.items()}, told


def deliveries(content: bytes, source: str, received: int, most_bytes: int) -> Iterable[Delivery]:
    """Yields the deliveries of a frame of messages.

    A token is the number of the destination, and the number of the message at that destination, counted from
    `received`. `most_bytes` is the size from which a body is only its beginning.
    """
    channel, count = struct.unpack_from(">II", content)
    known, at = texts_at(content, 8)
    shapes, at = _shapes(content, at, known)
    for number in range(received + 1, received + count + 1):
        size, letter, form = _HEAD.unpack_from(content, at)
        shape = shapes[form]
        at += _HEAD.size
        values = [known[index] for index in shape.indexes.unpack_from(content, at)]
        at += shape.indexes.size
        (length,) = _COUNT.unpack_from(content, at)
        begin = at + _COUNT.size
        at = begin + length
        message = shape.message(letter, values, content[begin:at], source)
        fault = None if shape.fault is None else values[shape.fault]
        yield Delivery(message, (channel, number), size if size > most_bytes else None, fault)


def _shapes(content: bytes, offset: int, known: Sequence[str]) -> tuple[list[_Shape], int]:
    """Decodes the shapes of a frame; returns them and the place behind them."""
    (count,) = _COUNT.unpack_from(content, offset)
    offset += _COUNT.size
    shapes = []
    for _ in range(count):
        (length,) = _COUNT.unpack_from(content, offset)
        names = struct.unpack_from(f">{length}I", content, offset + _COUNT.size)
        offset += _COUNT.size * (1 + length)
        shapes.append(_Shape([known[index] for index in names]))
    return shapes, offset


def _body(letter: int, raw: bytes) -> tuple[bytes, BodyType, str]:
    if letter == _MAP:
        body, types = encode_map(dict(_entries(raw)))
        return body, BodyType.MAP, types
    if letter == _STREAM:
        body, types = encode_stream([entry for _, entry in _entries(raw)])
        return body, BodyType.STREAM, types
    return (raw, *_BODIES[letter])


def _entries(raw: bytes) -> Iterable[tuple[str, MapEntry]]:
    """Yields the entries of a structured body with their names, which are empty in a stream."""
    (count,) = _COUNT.unpack_from(raw)
    at = _COUNT.size
    for _ in range(count):
        (length,) = _COUNT.unpack_from(raw, at)
        name = raw[at + 4 : at + 4 + length].decode("utf-8", "replace")
        at += 4 + length
        letter, (length,) = chr(raw[at]), _COUNT.unpack_from(raw, at + 1)
        value = raw[at + 5 : at + 5 + length]
        at += 5 + length
        yield name, _entry(letter, value)


def _entry(letter: str, value: bytes) -> MapEntry:
    if letter == "B":
        return MapEntry(JmsType.BYTES, value)
    if letter == "N":
        return MapEntry(NULL, None)
    text = value.decode("utf-8", "replace")
    if letter == "c":
        return MapEntry(CHAR, text)
    kind = _TYPES[letter]
    if kind is JmsType.STRING:
        return MapEntry(kind, text)
    if kind is JmsType.BOOLEAN:
        return MapEntry(kind, text == "true")
    return MapEntry(kind, float(text) if letter in _REALS else int(text))


def encoded(outgoing: Outgoing, place: str = "") -> bytes:
    """Returns a message to send, as a frame carries it.

    `place` is for a sink with a `position-queue`: partition, offset and time of the record, as numbers with spaces.

    Raises:
        RefusedError: a JMS message cannot have this content.
    """
    message = outgoing.message
    kind, name = kind_and_name(outgoing.address)
    reply = parsed(outgoing.reply_to or message.headers.get("JMSReplyTo", ""))
    letter, body = _encoded_body(message)
    values = [f"{kind}:{name}", f"{reply[0]}:{reply[1]}" if reply else "", outgoing.id, place]
    for field in (*_GIVEN, *_OF_SENDING):
        text = message.headers.get(field)
        if text is not None and (field != "JMSXGroupSeq" or _NUMBER.fullmatch(text)):
            values += (field, _FIELD + text)
    sent, told = _spelled(message)
    for name, value in sent.items():
        if not name.startswith(("JMSX", *_BRIDGE)) and not COMMANDS.match(name):
            values += (name, _typed(value))
    if told:
        values += (NAMES, "S" + encode_names(told.items()))
    if message.origins:
        values += (ORIGIN, "S" + ",".join(message.origins))
    return b"".join(
        (struct.pack(">QB", outgoing.number, letter), texts(values), _COUNT.pack(len(body)), body),
    )


def _spelled(message: Message) -> tuple[Mapping[str, Property], Mapping[str, str]]:
    """Returns the properties by names that JMS allows, and the names of those that only a table can give back.

    Where routes know a property under a spelling, it has that spelling, so that receivers find it under one name
    whatever system it came from.
    """
    properties = message.properties
    sent: dict[str, Property] = {}
    told = {spelling: name for spelling, name in message.spellings.items() if spelling in properties}
    known = {name: spelling for spelling, name in message.spellings.items() if spelling not in properties}
    for name, value in properties.items():
        spelling = JMS.encoded(name)
        if spelling != name and name in known and JMS.encoded(known[name]) == known[name]:
            spelling = known[name]
            if JMS.decoded(spelling) != name:
                told[spelling] = name
        if not spelling:
            not_kept(name, "JMS has no property with an empty name")
        elif spelling.startswith(_SPELLED_BRIDGE) and not name.startswith(RESERVED):
            not_kept(name, f"names that begin with {_SPELLED_BRIDGE} are reserved at JMS")
        else:
            sent[spelling] = value
    return sent, told


def _typed(value: Property) -> str:
    """Returns a property with the letter of its type; one whose text does not fit its type is a text."""
    kind, text = value.type, value.text
    if kind is JmsType.BOOLEAN and text.lower() in BOOLEANS:
        return "Z" + text.lower()
    if (parse := PARSERS.get(kind)) is not None and kind is not None:
        try:
            return _LETTERS[kind] + str(parse(text) if kind not in (JmsType.FLOAT, JmsType.DOUBLE) else text)
        except ValueError:
            return "S" + text
    return "S" + text


def _encoded_body(message: Message) -> tuple[int, bytes]:
    """Returns the letter of a body, and its bytes."""
    try:
        if message.body_type is BodyType.MAP:
            return _MAP, _block(decode_map(message.body, message.body_types).items())
        if message.body_type is BodyType.STREAM:
            return _STREAM, _block(("", entry) for entry in decode_stream(message.body, message.body_types))
        if message.body_type is BodyType.OBJECT:
            if message.body.startswith(_SERIALIZED):
                return _OBJECT, message.body
            return _VALUE, _block([("", decode_object(message.body, message.body_types))])
    except StructureError as error:
        raise RefusedError(str(error)) from error
    if message.body_type is BodyType.BYTES:
        return _BYTES, message.body
    if (letter := _WITHOUT_TEXT.get(message.body_types)) is not None:
        return letter, b""
    try:
        message.body.decode()
    except UnicodeDecodeError as error:
        raise RefusedError("the text is not UTF-8") from error
    return _TEXT, message.body


def _block(entries: Iterable[tuple[str, MapEntry]]) -> bytes:
    found = []
    for name, entry in entries:
        value = _value(entry)
        named = name.encode("utf-8", "replace")
        found.append(_COUNT.pack(len(named)) + named + _LETTERS[entry.kind].encode() + _COUNT.pack(len(value)) + value)
    return _COUNT.pack(len(found)) + b"".join(found)


def _value(entry: MapEntry) -> bytes:
    value = entry.value
    if isinstance(value, bytes):
        return value
    if value is None:
        return b""
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, float):
        return shown(value).encode()
    return str(value).encode("utf-8", "replace")
