"""Random schemas and values of Avro and Protobuf, their documents, and damaged bodies in Confluent's wire format."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import fastavro
import numpy as np
from google.protobuf import message_factory

from tests.drawn_protobuf import DrawnProtobuf, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["AvroBodies", "ProtobufBodies", "damaged", "framed", "nested_message", "read_json"]

_PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
_TEXTS = ["", "a", 'with "quotes" and \\', "line\nend\t\x00\x7f", "größer €", "\U0001f600", "\u2028"]


def framed(number: int, value: bytes) -> bytes:
    """A value behind the id of its schema."""
    return struct.pack(">bi", 0, number) + value


def nested_message(depth: int, number: int) -> bytes:
    """A Protobuf message with a message in the field of a number, and so on."""
    content = b""
    for _ in range(depth):
        size, head = len(content), bytes([number << 3 | 2])
        while size > 0x7F:
            head, size = head + bytes([size & 0x7F | 0x80]), size >> 7
        content = head + bytes([size]) + content
    return content


def read_json(text: bytes | str) -> Any:
    """A document with exact numbers; of fields with the same name the last."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def damaged(draw: Random, body: bytes) -> Iterator[bytes]:
    """Bodies that differ from a good one behind the id of the schema: cut, with other bits, with other bytes."""
    for _ in range(3):
        yield body[: draw.randint(5, len(body))]
        changed = bytearray(body)
        for _ in range(draw.randint(1, 3)):
            if len(changed) > 5:
                changed[draw.randrange(5, len(changed))] ^= 1 << draw.randrange(8)
        yield bytes(changed)
        place = draw.randint(5, len(body))
        yield body[:place] + draw.randbytes(draw.randint(1, 12)) + body[place + draw.randint(0, 3) :]


class AvroBodies:
    """One random schema and values of it."""

    def __init__(self, draw: Random) -> None:
        self._draw = draw
        self._names: dict[str, Any] = {}
        self._count = 0
        self.schema = self._drawn(3)
        self._parsed = fastavro.parse_schema(self.schema)

    def body(self, number: int) -> tuple[bytes, Any]:
        """A body with a random value of the schema with this id, and its document."""
        value, document = self._value(self.schema)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._parsed, value)
        return framed(number, out.getvalue()), document

    def _drawn(self, depth: int) -> Any:
        draw = self._draw
        kinds = ["primitive"] * 3 + ["enum", "fixed", "decimal", "fixed decimal", "time", "named"]
        match draw.choice(kinds + ["record", "array", "map"] * 2 * (depth > 0)):
            case "named" if self._names:
                return draw.choice(list(self._names))
            case "enum":
                return self._named({"type": "enum", "symbols": ["A", "B", "C"]})
            case "fixed":
                return self._named({"type": "fixed", "size": draw.choice([1, 3, 16])})
            case "fixed decimal":
                return self._named({"type": "fixed", "size": 8, **_decimal(15, 4)})
            case "decimal":
                return {"type": "bytes", **_decimal(20, draw.choice([0, 2, 20]))}
            case "time":
                return {"type": "long", "logicalType": "timestamp-millis"}
            case "array":
                return {"type": "array", "items": self._member(depth - 1)}
            case "map":
                return {"type": "map", "values": self._member(depth - 1)}
            case "record":
                names = draw.sample(["a", "b", "id", "zone", "x1"], draw.randint(0, 4))
                return self._named(
                    {"type": "record", "fields": [{"name": each, "type": self._member(depth - 1)} for each in names]}
                )
        return draw.choice(_PRIMITIVES)

    def _member(self, depth: int) -> Any:
        member = self._drawn(depth)
        return member if member == "null" or self._draw.random() < 0.6 else ["null", member]

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        self._count += 1
        made = {"name": f"N{self._count}", "namespace": "shop", **schema}
        self._names[f"shop.{made['name']}"] = made
        return made

    def _value(self, schema: Any) -> tuple[Any, Any]:
        """A value as fastavro takes it, and its document."""
        draw = self._draw
        if isinstance(schema, list):
            return self._value(draw.choice(schema))
        if isinstance(schema, str):
            return self._value(self._names[schema]) if schema in self._names else _primitive(draw, schema)
        match schema["type"]:
            case "record":
                fields = {each["name"]: self._value(each["type"]) for each in schema["fields"]}
                return {name: pair[0] for name, pair in fields.items()}, {
                    name: pair[1] for name, pair in fields.items()
                }
            case "array":
                items = [self._value(schema["items"]) for _ in range(draw.randint(0, 3))]
                return [pair[0] for pair in items], [pair[1] for pair in items]
            case "map":
                entries = {draw.choice(_TEXTS): self._value(schema["values"]) for _ in range(draw.randint(0, 3))}
                return {key: pair[0] for key, pair in entries.items()}, {key: pair[1] for key, pair in entries.items()}
            case "enum":
                return (draw.choice(schema["symbols"]),) * 2
            case "long":
                millis = draw.randint(-(10**12), 10**13)
                return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=millis), Decimal(millis)
        if "precision" in schema:
            digits = draw.randint(0, schema["precision"])
            number = Decimal(draw.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(-schema["scale"])
            return number, number
        content = draw.randbytes(schema["size"])
        return content, b64encode(content).decode()


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"logicalType": "decimal", "precision": precision, "scale": scale}


def _primitive(draw: Random, kind: str) -> tuple[Any, Any]:
    match kind:
        case "null":
            return None, None
        case "boolean":
            return (draw.random() < 0.5,) * 2
        case "bytes":
            content = draw.randbytes(draw.randint(0, 9))
            return content, b64encode(content).decode()
        case "string":
            return (draw.choice(_TEXTS),) * 2
    number = _number(draw, kind)
    return number, _number_document(kind, number)


def _number(draw: Random, kind: str) -> float | int:
    match kind:
        case "float":
            return _finite_mostly(draw, "f", 4)
        case "double":
            return _finite_mostly(draw, "d", 8)
    unsigned = kind.startswith(("u", "fixed"))
    bits = 64 if kind.endswith(("long", "64")) else 32
    most = draw.choice([7, 15, bits - 1]) + unsigned
    return draw.randint(0 if unsigned else -(1 << most), (1 << most) - 1)


def _finite_mostly(draw: Random, kind: str, size: int) -> float:
    if draw.random() < 0.5:
        return draw.choice([0.0, -0.0, 0.1, 1e10, 100.0, float("nan"), float("inf"), float("-inf"), 1.5, 16777216.0])
    found: float = struct.unpack(kind, draw.randbytes(size))[0]
    # Both ends of what is finite are compared with Java's spelling elsewhere.
    return found if found != found or 1e-30 < abs(found) < 1e30 else 2.5


def _number_document(kind: str, number: float | int) -> Decimal | None:
    if isinstance(number, float):
        if number in (float("inf"), float("-inf")) or number != number:
            return None
        return Decimal(str(np.float32(number)) if kind == "float" else repr(number))
    return Decimal(number)


class ProtobufBodies(DrawnProtobuf):
    """One random schema, of proto2 or proto3, and messages of it."""

    def __init__(self, draw: Random) -> None:
        sizes = {"ZERO": 0, "ONE": 1, "TOP": (1 << 31) - 1}
        super().__init__(draw, sizes, lambda: draw.sample("abcdefgh", draw.randint(1, 6)))

    def body(self, number: int) -> tuple[bytes, Any]:
        """A body with a random message of the schema with this id, and its document."""
        index = self._draw.randrange(3)
        value, document = self.message(index)
        indexes = b"\0" if index == 0 else bytes((2, index * 2))
        return framed(number, indexes + value), document

    def message(self, index: int) -> tuple[bytes, Any]:
        """A random message of the type of this index, and its document."""
        message = message_factory.GetMessageClass(self._types[index])()
        document = self._fill(message, 3)
        return message.SerializeToString(), document

    def _fill(self, message: Any, depth: int) -> dict[str, Any]:
        """Fills a message, and returns its document."""
        document: dict[str, Any] = {}
        for field in message.DESCRIPTOR.fields:
            count = self._draw.randint(0, 2) if depth > 0 else 0
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                document[field.name] = self._fill_map(field, getattr(message, field.name), count, depth)
            elif field.is_repeated:
                values = getattr(message, field.name)
                document[field.name] = [self._append(field, values, depth) for _ in range(count)]
            elif count or field.is_required:
                document[field.name] = self._set(field, message, depth)
            elif not field.has_presence:
                document[field.name] = _default(field)
        return document

    def _fill_map(self, field: Any, values: Any, count: int, depth: int) -> dict[str, Any]:
        key_field, value_field = field.message_type.fields
        document = {}
        for _ in range(count):
            key, spelled = _scalar(self._draw, key_field)
            name = str(spelled).lower() if isinstance(spelled, bool) else str(spelled)
            if value_field.message_type is not None:
                values[key].Clear()
                document[name] = self._fill(values[key], depth - 1)
            else:
                values[key], document[name] = _scalar(self._draw, value_field)
        return document

    def _append(self, field: Any, values: Any, depth: int) -> Any:
        if field.message_type is not None:
            return self._fill(values.add(), depth - 1)
        value, document = _scalar(self._draw, field)
        values.append(value)
        return document

    def _set(self, field: Any, message: Any, depth: int) -> Any:
        if field.message_type is not None:
            inner = getattr(message, field.name)
            inner.SetInParent()
            return self._fill(inner, depth - 1)
        value, document = _scalar(self._draw, field)
        setattr(message, field.name, value)
        return document


def _scalar(draw: Random, field: Any) -> tuple[Any, Any]:
    kind = kind_of(field)
    if kind == "enum":
        is_open = field.file.serialized_pb and not field.enum_type.is_closed
        number = draw.choice([0, 1, (1 << 31) - 1, *([5, -7] if is_open else ())])
        known = field.enum_type.values_by_number.get(number)
        return number, Decimal(number) if known is None else known.name
    if kind in ("bytes", "string"):
        return _primitive(draw, kind)
    if kind == "bool":
        return _primitive(draw, "boolean")
    number = _number(draw, kind)
    return number, _number_document(kind, number)


def _default(field: Any) -> Any:
    kind = kind_of(field)
    if kind == "enum":
        return "ZERO"
    return {"bool": False, "bytes": "", "string": ""}.get(kind, Decimal(0))
