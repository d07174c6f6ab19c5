"""Messages of RabbitMQ's own JMS client, which AMQP 1.0 shows as bytes.

That client writes headers, properties and body of a message one after the other into a Java object stream, and sends
the stream as a body of AMQP 0-9-1. This module reads such a stream as data; no object is made of a serialised one.

    class name, id, headers and properties (count, then name and value for each), body by the class

See `RMQMessage` in rabbitmq-jms 1.0 to 3.4, and the grammar of the Java Object Serialization Specification, section 6.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from engine.connectors.amqp.annotations import DESTINATION, MESSAGE_TYPE, MESSAGE_TYPES, REPLY_TO
from engine.connectors.amqp.codec.sections import DATA, SEQUENCE, VALUE, Header, Properties, Sections
from engine.connectors.amqp.codec.values import AmqpMap, Byte, Char, Float, Int, Short, Timestamp, UByte, UInt
from engine.message import BodyType

__all__ = ["unpacked"]

T = TypeVar("T")

_MAGIC = b"\xac\xed\x00\x05"
_CLASSES = {
    f"com.rabbitmq.jms.client.message.RMQ{word}Message": kind
    for word, kind in (
        ("Text", BodyType.TEXT),
        ("Bytes", BodyType.BYTES),
        ("Map", BodyType.MAP),
        ("Stream", BodyType.STREAM),
        ("Object", BodyType.OBJECT),
    )
}
_HEADER = "rmq.jms.message."
_NON_PERSISTENT = 1
_OBJECT = 0x7F
"""Type of a value that is a serialised object."""
_PRIMITIVES: dict[int, tuple[struct.Struct, type]] = {
    1: (struct.Struct(">?"), bool),
    2: (struct.Struct(">b"), Byte),
    3: (struct.Struct(">h"), Short),
    4: (struct.Struct(">i"), Int),
    5: (struct.Struct(">q"), int),
    6: (struct.Struct(">f"), Float),
    7: (struct.Struct(">d"), float),
}
_FIELD_SIZES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
"""Bytes of a primitive field by its code."""
_NULL, _REFERENCE, _CLASS, _NEW_OBJECT, _STRING, _BLOCK, _END, _LONG_BLOCK = (
    *(0x70, 0x71, 0x72, 0x73),
    *(0x74, 0x77, 0x78, 0x7A),
)
"""Types of elements of an object stream."""
_FIRST_HANDLE = 0x7E0000
_MOST_ENTRIES = 100_000
_MOST_DEPTH = 4
"""Greatest depth of objects in objects; a destination has one of 2."""
_SURROGATES = range(0xD800, 0xE000)


def unpacked(sections: Sections) -> Sections:
    """Returns the sections that a JMS client for AMQP 1.0 would have sent; the given ones if the body has another form.

    A stream that cannot be read to its end, such as one with an array, does not count.
    """
    content = sections.content
    if sections.body != DATA or not content.startswith(_MAGIC):
        return sections
    try:
        return _Stream(content).message(sections)
    except (ValueError, IndexError, KeyError, struct.error):
        return sections


class _Stream:
    """Reader of one object stream; for other bytes it raises ValueError, IndexError, KeyError or struct.error."""

    def __init__(self, data: bytes) -> None:
        if not data.startswith(_MAGIC):
            raise ValueError(data[:4])
        self._data = data
        self._at = len(_MAGIC)
        self._block_end = self._at
        self._handles: list[Any] = []

    def message(self, sections: Sections) -> Sections:
        """Reads the message and puts it into new sections, with the delivery's own header fields."""
        kind = _CLASSES[self._text()]
        self._text()
        headers = {name.removeprefix(_HEADER): value for name, value in self._pairs(objects=True)}
        properties = dict(self._pairs())
        made = Properties(
            message_id=_typed(headers, "id", str),
            correlation_id=_typed(headers, "correlation.id", str),
            subject=_typed(headers, "type", str),
            group_id=_popped(properties, "JMSXGroupID", str),
            user_id=None if (user := _popped(properties, "JMSXUserID", str)) is None else user.encode(),
        )
        if (sequence := _popped(properties, "JMSXGroupSeq", Int)) is not None:
            made.group_sequence = UInt(sequence % (1 << 32))
        if timestamp := _typed(headers, "timestamp", int):
            made.creation_time = Timestamp(timestamp)
        if expiration := _typed(headers, "expiration", int):
            made.absolute_expiry_time = Timestamp(expiration)
        made.to, kind_of_to = _destination(headers.get("destination"))
        made.reply_to, kind_of_reply = _destination(headers.get("reply.to"))
        annotations = _annotations(MESSAGE_TYPES[kind], kind_of_to, kind_of_reply)
        header = replace(sections.header or Header(), durable=_typed(headers, "delivery.mode", Int) != _NON_PERSISTENT)
        if (priority := _typed(headers, "priority", Int)) is not None:
            header.priority = UByte(min(max(priority, 0), 9))
        body, content = self._body(kind)
        application = AmqpMap((name, value) for name, value in properties.items() if value is not None)
        return Sections(header, None, annotations, made, application, body, content)

    def _body(self, kind: BodyType) -> tuple[int, Any]:
        if kind is BodyType.BYTES:
            if self._at != self._block_end:
                raise ValueError(self._at)
            # Behind the stream, not in it.
            return DATA, self._data[self._at :]
        body: tuple[int, Any]
        if kind is BodyType.MAP:
            body = VALUE, AmqpMap(self._pairs())
        elif kind is BodyType.STREAM:
            body = SEQUENCE, _Stream(self._take(self._int())).values()
        else:
            is_null = self._take(1) != b"\0"
            content = b"" if is_null else self._take(self._int())
            body = (DATA, content) if kind is BodyType.OBJECT else (VALUE, None if is_null else content.decode())
        if self._at < len(self._data):
            raise ValueError(self._at)
        return body

    def values(self) -> list[Any]:
        """Returns all values of a stream that has nothing but values."""
        values = []
        while self._at < len(self._data):
            values.append(self._value())
        return values

    def _pairs(self, *, objects: bool = False) -> list[tuple[str, Any]]:
        count = self._int()
        if not 0 <= count <= _MOST_ENTRIES:
            raise ValueError(count)
        return [(self._text(), self._value(objects=objects)) for _ in range(count)]

    def _value(self, *, objects: bool = False) -> Any:
        code = self._take(1)[0]
        if code in _PRIMITIVES:
            form, kind = _PRIMITIVES[code]
            return kind(form.unpack(self._take(form.size))[0])
        if code == 8:
            return self._text()
        if code == 9:
            if (number := int.from_bytes(self._take(2))) in _SURROGATES:
                raise ValueError(number)
            return Char(chr(number))
        if code == 10:
            return self._take(self._int())
        if code == _OBJECT and objects:
            return self._element()
        if code == 0xFF:
            return None
        raise ValueError(code)

    def _int(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def _text(self) -> str:
        return _utf(self._take(int.from_bytes(self._take(2))))

    def _take(self, size: int) -> bytes:
        """Returns bytes of the stream's primitive data, which may span several blocks."""
        parts, left = [], size
        if size < 0:
            raise ValueError(size)
        while left:
            if self._at == self._block_end:
                self._begin_block()
            part = self._data[self._at : min(self._at + left, self._block_end)]
            self._at += len(part)
            left -= len(part)
            parts.append(part)
        return b"".join(parts)

    def _begin_block(self) -> None:
        kind = self._raw(1)[0]
        if kind not in (_BLOCK, _LONG_BLOCK):
            raise ValueError(kind)
        size = int.from_bytes(self._raw(1 if kind == _BLOCK else 4))
        if not 0 < size <= len(self._data) - self._at:
            raise ValueError(size)
        self._block_end = self._at + size

    def _raw(self, size: int) -> bytes:
        data = self._data[self._at : self._at + size]
        if len(data) < size:
            raise ValueError(size)
        self._at += size
        return data

    # Objects, which stand between blocks.

    def _element(self) -> Any:
        """Returns an object as a dict of its fields, a string, or None."""
        if self._at != self._block_end:
            raise ValueError(self._at)
        value = self._object(_MOST_DEPTH)
        self._block_end = self._at
        return value

    def _object(self, depth: int) -> Any:
        if not depth:
            raise ValueError(depth)
        kind = self._raw(1)[0]
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._referred()
        if kind == _STRING:
            text = _utf(self._raw(int.from_bytes(self._raw(2))))
            self._handles.append(text)
            return text
        if kind != _NEW_OBJECT:
            raise ValueError(kind)
        names = self._class(depth)
        found: dict[str, Any] = {}
        self._handles.append(found)
        for code, name in names:
            found[name] = self._object(depth - 1) if code == "L" else self._raw(_FIELD_SIZES[code])
        return found

    def _class(self, depth: int) -> tuple[tuple[str, str], ...]:
        """Returns the codes and names of the fields of a class without a superclass and without data of its own."""
        kind = self._raw(1)[0]
        if kind == _REFERENCE:
            referred: tuple[tuple[str, str], ...] = self._referred()
            return referred
        if kind != _CLASS:
            raise ValueError(kind)
        self._raw(int.from_bytes(self._raw(2)) + 8)
        handle = len(self._handles)
        self._handles.append(None)
        flags, count = self._raw(1)[0], int.from_bytes(self._raw(2))
        if flags != 2:  # SC_SERIALIZABLE alone
            raise ValueError(flags)
        names = []
        for _ in range(count):
            code = chr(self._raw(1)[0])
            names.append((code, _utf(self._raw(int.from_bytes(self._raw(2))))))
            if code == "L":
                self._object(depth - 1)
        if self._raw(2) != bytes((_END, _NULL)):
            raise ValueError(self._at)
        self._handles[handle] = tuple(names)
        return tuple(names)

    def _referred(self) -> Any:
        number = int.from_bytes(self._raw(4)) - _FIRST_HANDLE
        if number < 0:
            raise ValueError(number)
        return self._handles[number]


def _utf(encoded: bytes) -> str:
    """Decodes Java's modified UTF-8: zero is two bytes, a character beyond 16 bits is two surrogates."""
    text = encoded.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


def _popped(properties: dict[str, Any], name: str, kind: type) -> Any:
    """Takes a property out that has a field of its own; None if there is none of this type."""
    return properties.pop(name) if isinstance(properties.get(name), kind) else None


def _typed(headers: dict[str, Any], name: str, kind: type[T]) -> T | None:
    """Returns a header; None if there is none. ValueError if it is of another type."""
    value = headers.get(name)
    if value is not None and type(value) is not kind:
        raise ValueError(name)
    return value


def _destination(value: Any) -> tuple[str | None, int | None]:
    """Returns name and kind of an `RMQDestination`, the kind as a number; twice None if there is no destination."""
    if value is None:
        return None, None
    if not isinstance(value, dict) or not isinstance(name := value["destinationName"], str):
        raise ValueError(value)
    return name, int(value["isQueue"] == b"\0")


@cache
def _annotations(message_type: int, kind_of_to: int | None, kind_of_reply: int | None) -> AmqpMap:
    """Returns the same annotations for the same facts, as decoding does."""
    given = ((MESSAGE_TYPE, message_type), (DESTINATION, kind_of_to), (REPLY_TO, kind_of_reply))
    return AmqpMap((name, Byte(number)) for name, number in given if number is not None)
