"""Random schemas, and JSON bodies that fit them or do not, with the bytes that a library makes of the same values."""

from __future__ import annotations

import io
import json
import struct
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import fastavro
from google.protobuf import json_format, message_factory

from tests.drawn_protobuf import DrawnProtobuf, kind_of

if TYPE_CHECKING:
    from random import Random

__all__ = ["AvroCases", "ProtobufCases", "SchemaCase", "misfits", "written"]

TEXTS = ["", "a", "true", "12", "größer €", "\U0001f600", 'with "quotes" and \\', "\x1b[31m\u202e", "QQ==", "x" * 50]
ODD: list[Any] = [
    *TEXTS, None, True, False, 0, 1, -1, 1.0, 1e2, 0.5, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 1e39, 1e308, [], {},
    [[]], {"a": 1}, [None], "2026-11-28", "2026-11-28T04:00:00.123456+01:00", "2026-02-30", "1e400", "-0", "+1", ".5",
    "B", "shop", "2026-11-28T04:00:00Z", "AAAA", "QR==", "QQ", {"@a": "1", "#text": "x"}, {"value": "1"},
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class SchemaCase:
    """A schema without references to others."""

    text: str
    references: tuple[Any, ...] = ()


class AvroCases:
    """One random schema and values of it."""

    def __init__(self, draw: Random, *, has_wide_unions: bool = False) -> None:
        """Draws a schema; a body does not say which branch of a wide union a value is of."""
        self._draw = draw
        self._has_wide_unions = has_wide_unions
        self._names: dict[str, Any] = {}
        self.schema = self._drawn(3)
        # Logical types are left out for the library, which would want other values than those that they stand for.
        self._parsed = fastavro.parse_schema(_plain(self.schema))

    def case(self) -> tuple[Any, bytes]:
        """A body, and the bytes of its value."""
        value, body = self._value(self.schema)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self._parsed, value)
        return body, out.getvalue()

    def _drawn(self, depth: int) -> Any:
        draw = self._draw
        kinds = ["null", "boolean", "int", "long", "float", "double", "bytes", "string", "enum", "fixed", "decimal"]
        kinds += ["small decimal", "date", "millis", "micros"] + ["record", "array", "map"] * 3 * (depth > 0)
        match draw.choice(kinds):
            case "enum":
                return self._named({"type": "enum", "symbols": ["A", "B", "C"]})
            case "fixed":
                return self._named({"type": "fixed", "size": draw.choice([1, 3, 16])})
            case "small decimal":
                return self._named({"type": "fixed", "size": 8, **_decimal(15, 4)})
            case "decimal":
                return {"type": "bytes", **_decimal(20, draw.choice([0, 2, 20]))}
            case "date":
                return {"type": "int", "logicalType": "date"}
            case "millis" | "micros" as unit:
                return {"type": "long", "logicalType": f"timestamp-{unit}"}
            case "array":
                return {"type": "array", "items": self._member(depth - 1)}
            case "map":
                return {"type": "map", "values": self._member(depth - 1)}
            case "record":
                names = draw.sample(["a", "b", "id", "value", "text"], draw.randint(0, 4))
                return self._named({"type": "record", "fields": [self._field(each, depth - 1) for each in names]})
            case primitive:
                return primitive

    def _field(self, name: str, depth: int) -> dict[str, Any]:
        return self._draw.choice(
            [
                {"name": name, "type": self._member(depth)},
                {"name": name, "type": self._member(depth)},
                {"name": name, "type": "bytes", "default": "\u00ff\u0001"},
                {"name": name, "type": {"type": "array", "items": "int"}, "default": [1, 2]},
                {"name": name, "type": ["null", "string"], "default": None},
            ]
        )

    def _member(self, depth: int) -> Any:
        member = self._drawn(depth)
        if member == "null" or self._draw.random() < 0.5:
            return member
        if self._has_wide_unions and self._draw.random() < 0.5:
            return self._draw.choice(
                [
                    ["int", "long", "double", "string"],
                    ["null", "bytes", "string"],
                    ["boolean", {"type": "array", "items": "string"}, "null"],
                    [self._named({"type": "record", "fields": [{"name": each, "type": "int"}]}) for each in "ab"],
                ]
            )
        return self._draw.choice([["null", member], [member, "null"]])

    def _named(self, schema: dict[str, Any]) -> dict[str, Any]:
        made = {"name": f"N{len(self._names)}", "namespace": "shop", **schema}
        self._names[f"shop.{made['name']}"] = made
        return made

    def _value(self, schema: Any) -> tuple[Any, Any]:
        """A value as fastavro takes it, and as it is in a body."""
        draw = self._draw
        if isinstance(schema, list):
            return self._value(draw.choice(schema))
        match schema if isinstance(schema, str) else schema["type"]:
            case "array":
                items = [self._value(schema["items"]) for _ in range(draw.randint(0, 3))]
                return [pair[0] for pair in items], [pair[1] for pair in items]
            case "map":
                entries = {draw.choice(TEXTS): self._value(schema["values"]) for _ in range(draw.randint(0, 3))}
                return {key: pair[0] for key, pair in entries.items()}, {key: pair[1] for key, pair in entries.items()}
            case "record":
                fields = {each["name"]: self._value(each["type"]) for each in schema["fields"]}
                given = {name: pair[0] for name, pair in fields.items()}
                body = {name: pair[1] for name, pair in fields.items()}
                for each in schema["fields"]:
                    if "default" in each and draw.random() < 0.5:
                        given[each["name"]] = _default(each)
                        del body[each["name"]]
                return given, body
        return self._scalar(schema)

    def _scalar(self, schema: Any) -> tuple[Any, Any]:
        draw = self._draw
        kind = schema if isinstance(schema, str) else schema["type"]
        match kind:
            case "null":
                return None, None
            case "boolean":
                return (draw.random() < 0.5,) * 2
            case "string":
                return (draw.choice(TEXTS),) * 2
            case "enum":
                return (draw.choice(schema["symbols"]),) * 2
            case "int" | "long":
                return (_integer(draw, 32 if kind == "int" else 64),) * 2
            case "float":
                bits = draw.choice([0.0, -0.0, 0.1, 1e10, 1.5, draw.uniform(-1e9, 1e9)])
                return struct.unpack("<f", struct.pack("<f", bits))[0], bits
            case "double":
                return (draw.choice([0.0, -0.0, 0.1, 1e300, 1e-300, draw.uniform(-1e9, 1e9)]),) * 2
        if "precision" in schema:
            return self._decimal(schema)
        content = draw.randbytes(schema["size"] if kind == "fixed" else draw.randint(0, 9))
        return content, b64encode(content).decode()

    def _decimal(self, schema: Any) -> tuple[bytes, Any]:
        number = self._draw.randint(0, 10 ** self._draw.randint(0, schema["precision"])) - 1
        least = (number if number >= 0 else ~number).bit_length() // 8 + 1
        return number.to_bytes(schema.get("size", least), signed=True), _Exact(f"{number}e-{schema['scale']}")


class _Exact(float):
    """A number that is written as its text."""

    def __new__(cls, text: str) -> _Exact:
        made = super().__new__(cls, text)
        made.text = text
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def _default(field: dict[str, Any]) -> Any:
    default = field["default"]
    return default.encode("latin-1") if field["type"] == "bytes" else default


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"logicalType": "decimal", "precision": precision, "scale": scale}


def _integer(draw: Random, bits: int) -> int:
    most = draw.choice([7, 15, bits - 1])
    return draw.randint(-(1 << most), (1 << most) - 1)


def _plain(schema: Any) -> Any:
    """The schema without logical types."""
    match schema:
        case dict():
            return {name: _plain(each) for name, each in schema.items() if name != "logicalType"}
        case list():
            return [_plain(each) for each in schema]
    return schema


def written(body: Any) -> bytes:
    """The body as JSON."""
    return _text(body).encode()


def _text(value: Any) -> str:
    match value:
        case _Exact():
            return value.text
        case dict():
            return "{" + ",".join(f"{json.dumps(name)}:{_text(each)}" for name, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value)


def misfits(draw: Random, body: Any) -> list[bytes]:
    """Bodies that differ from one: with another value somewhere, with a member more or less, or damaged."""
    found = [written(_changed(draw, body)) for _ in range(6)]
    text = written(body)
    place = draw.randint(0, len(text))
    return [*found, text[:place], text[:place] + draw.randbytes(2) + text[place:], written({"root": body})]


def _changed(draw: Random, value: Any) -> Any:
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(list(value))
        kept = {other: each for other, each in value.items() if other != name}
        member, changed = value[name], _changed(draw, value[name])
        more = [{"odd name": 1}, {f"@{name}": member}, {"#text": member}]
        return draw.choice([kept | {name: changed}] * 4 + [kept, *(kept | each for each in more), value | more[1]])
    if isinstance(value, list) and value and draw.random() < 0.8:
        index = draw.randrange(len(value))
        return [*value[:index], _changed(draw, value[index]), *value[index + 1 :]]
    return draw.choice([*ODD, str(value), [value]])


class ProtobufCases(DrawnProtobuf):
    """One random schema, of proto2 or proto3, and messages of it."""

    def __init__(self, draw: Random) -> None:
        names = ["a", "b_c", "id", "value", "text"]
        super().__init__(draw, {"A": 0, "B": 1, "C": 2}, lambda: draw.sample(names, 4))
        self.index = draw.randrange(3)
        self._type = self._types[self.index]
        self._class = message_factory.GetMessageClass(self._type)

    @property
    def message(self) -> str:
        """The full name of the message."""
        return f"shop.M{self.index}"

    @property
    def schema(self) -> str:
        """The schema as a registry keeps it."""
        return b64encode(self.file.SerializeToString()).decode()

    def case(self) -> tuple[Any, Any]:
        """A body and its message."""
        body = self._body(self._type, 3)
        return body, json_format.ParseDict(body, self._class())

    def read(self, value: bytes) -> Any:
        """The message behind its indexes; ValueError if these are others."""
        indexes = bytes([2, 2 * self.index]) if self.index else b"\0"
        if not value.startswith(indexes):
            raise ValueError(value)
        return self._class.FromString(value[len(indexes) :])

    def _body(self, message: Any, depth: int) -> Any:
        if message.full_name == "google.protobuf.Timestamp":
            return "2026-11-28T04:00:00.123456789+01:00"
        body: dict[str, Any] = {}
        for field in message.fields:
            count = self._draw.randint(0, 2) if depth > 0 else 0
            name = self._draw.choice([field.name, field.json_name])
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                key, value = field.message_type.fields
                names = {"bool": ["true", "false"], "string": TEXTS[1:], "uint64": ["7", str((1 << 64) - 1)]}
                spelled = self._draw.choice(names[kind_of(key)])
                body[name] = {spelled: self._value(value, depth)} if count else {}
            elif field.is_repeated:
                body[name] = [self._value(field, depth) for _ in range(count)]
            elif count or field.is_required:
                body[name] = self._value(field, depth)
        return body

    def _value(self, field: Any, depth: int) -> Any:
        match kind_of(field):
            case "message":
                return self._body(field.message_type, depth - 1)
            case "enum":
                return self._draw.choice("ABC")
            case "bool":
                return self._draw.random() < 0.5
            case "string":
                return self._draw.choice(TEXTS)
            case "bytes":
                return b64encode(self._draw.randbytes(self._draw.randint(0, 9))).decode()
            case "float" | "double":
                return self._draw.choice([0.0, -0.0, 0.1, 1e10, 1.5, self._draw.uniform(-1e9, 1e9)])
            case kind:
                bits = 64 if kind.endswith("64") else 32
                found = _integer(self._draw, bits)
                return found % (1 << bits) if kind.startswith(("u", "fixed")) else found
