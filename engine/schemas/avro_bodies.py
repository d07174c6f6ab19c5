"""Avro values of JSON bodies (`jmsbridge.serdes.AvroBodies`)."""

from __future__ import annotations

import json
import math
import struct
from enum import Enum
from typing import TYPE_CHECKING, Any

from engine.schemas.body_json import (
    MOST_ENCODED_BYTES,
    BodyPlace,
    UnfitBodyError,
    WrittenNumber,
    read_body,
    whole_text,
)
from engine.schemas.body_values import (
    base64_bytes,
    days,
    field_of,
    flag,
    integer,
    number,
    point_in_time,
    real,
    unscaled,
)
from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Sized

    from engine.schemas.body_json import EncodingSchema

__all__ = ["AvroBodies"]

_BITS = {"int": 32, "long": 64}
_DIGITS = {"timestamp-millis": 3, "timestamp-micros": 6}
"""Digits below a second of points in time."""
_END = b"\0"
"""End of the items of an array or a map."""
_MOST_PRECISION = (1 << 31) - 1


class _Origin(Enum):
    """Origin of a document, on which the meaning of its texts depends."""

    JSON = "json"
    XML = "xml"
    SCHEMA = "schema"
    """A default of a schema, where bytes are texts of characters up to 255."""


class AvroBodies:
    """Encoder of bodies into values of one schema."""

    def __init__(self, schema: EncodingSchema) -> None:
        """Reads the schema; raises InvalidSchemaError."""
        self._names: dict[str, Any] = {}
        self._defaults: dict[tuple[str, str], bytes] = {}
        try:
            self._schema = _parsed(schema, self._names)
            for name, record in self._names.items():
                for field in record.get("fields", ()):
                    if "default" in field:
                        _Encoding(self._names, self._defaults, _Origin.SCHEMA).write_default(name, field)
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            msg = f"the text is not an Avro schema: {error}"
            raise InvalidSchemaError(msg) from error
        if self._requires_itself(self._schema, ()):
            msg = "it has no values: a record requires a field of its own type"
            raise InvalidSchemaError(msg)

    def _requires_itself(self, schema: Any, within: tuple[str, ...]) -> bool:
        """True if each value of the schema would have another one of the same schema in it."""
        if isinstance(schema, list):
            return bool(schema) and all(self._requires_itself(each, within) for each in schema)
        resolved = _resolved(schema, self._names)
        if resolved["type"] not in ("record", "error"):
            return False
        name = resolved["name"]
        inner = (*within, name)
        return name in within or any(self._requires_itself(each["type"], inner) for each in resolved["fields"])

    def encode(self, json: bytes, *, from_xml: bool) -> bytes:
        """Returns the value of a body; raises UnfitBodyError."""
        document, place = read_body(json), BodyPlace()
        if from_xml and isinstance(document, dict) and len(document) == 1:
            [(name, value)] = document.items()
            types = self._schema if isinstance(self._schema, list) else [self._schema]
            if not any(name in _fields(_resolved(each, self._names)) for each in types):
                document, place = value, BodyPlace(place, name)
        run = _Encoding(self._names, self._defaults, _Origin.XML if from_xml else _Origin.JSON)
        run.write(self._schema, document, place)
        return bytes(run.out)


def _parsed(schema: EncodingSchema, names: dict[str, Any]) -> Any:
    """The schema, in which types have their full names, by which others name them."""
    from fastavro.schema import parse_schema

    for each in schema.references:
        if each.name not in names:
            _parsed(each.schema, names)
    return parse_schema(json.loads(schema.text), named_schemas=names, _write_hint=False)


def _resolved(schema: Any, names: dict[str, Any]) -> Any:
    """The definition of a type that is not a union."""
    while not isinstance(schema, dict) or not isinstance(schema["type"], str) or schema["type"] in names:
        if isinstance(schema, dict):
            schema = schema["type"]
        elif isinstance(schema, str):
            schema = names.get(schema, {"type": schema})
        else:
            return {"type": "union"}
    return schema


def _fields(schema: Any) -> dict[str, Any]:
    """The fields of a record by their names; none of another type."""
    return {each["name"]: each for each in schema.get("fields", ())}


class _Encoding:
    """Encoding of one document."""

    def __init__(self, names: dict[str, Any], defaults: dict[tuple[str, str], bytes], origin: _Origin) -> None:
        self._names = names
        self._defaults = defaults
        self._origin = origin
        self._from_xml = origin is _Origin.XML
        self.out = bytearray()

    def write(self, schema: Any, value: Any, place: BodyPlace) -> None:
        """Writes a value; raises UnfitBodyError."""
        if isinstance(schema, list):
            self._write_branch(schema, value, place)
            return
        schema = _resolved(schema, self._names)
        match schema["type"]:
            case "record" | "error":
                self._write_record(schema, _object(value, place), place)
            case "array":
                self._write_array(schema["items"], value, place)
            case "map":
                members = _object(value, place)
                self.out += _count(members)
                for name, each in members.items():
                    self.out += _sized(name.encode())
                    self.write(schema["values"], each, BodyPlace(place, name))
                self.out += _END
            case _:
                found = self._scalar(schema, value)
                if found is None:
                    raise place.is_not(value, _wanted(schema))
                self.out += found

    def write_default(self, record: str, field: Any) -> None:
        """Writes the value of a field that is absent."""
        key = record, field["name"]
        if key not in self._defaults:
            run = _Encoding(self._names, self._defaults, _Origin.SCHEMA)
            run.write(field["type"], read_body(json.dumps(field["default"]).encode()), BodyPlace())
            self._defaults[key] = bytes(run.out)
        self.out += self._defaults[key]

    def _write_record(self, schema: Any, value: dict[str, Any], place: BodyPlace) -> None:
        fields = _fields(schema)
        members: dict[str, str] = {}
        wrong = self._collect(fields, value, members)
        if wrong is not None:
            field = field_of(wrong, self._from_xml, fields)
            raise BodyPlace(place, wrong).fault(
                "the schema has no such field" if field is None else f"'{members[field]}' stands for the same field"
            )
        for name, field in fields.items():
            if name in members:
                self.write(field["type"], value[members[name]], BodyPlace(place, members[name]))
            elif "default" in field:
                self.write_default(schema["name"], field)
            elif _is_nullable(field["type"]):
                self.write(field["type"], None, place)
            else:
                raise BodyPlace(place, name).fault("it is missing, and the schema has no default for it")
        if len(self.out) > MOST_ENCODED_BYTES:
            msg = f"the body has more than {MOST_ENCODED_BYTES:,} bytes as Avro"
            raise UnfitBodyError(msg)

    def _collect(self, fields: dict[str, Any], value: dict[str, Any], found: dict[str, str]) -> str | None:
        """Collects the members by the fields that they stand for; returns the first without a field of its own."""
        for member in value:
            field = field_of(member, self._from_xml, fields)
            if field is None or field in found:
                return member
            found[field] = member
        return None

    def _write_array(self, items: Any, value: Any, place: BodyPlace) -> None:
        if isinstance(value, list):
            self.out += _count(value)
            for index, each in enumerate(value):
                self.write(items, each, BodyPlace(place, index))
            self.out += _END
        elif self._from_xml and value is not None:
            self.out += _count([value])
            self.write(items, value, place)
            self.out += _END
        else:
            raise place.is_not(value, "an array")

    def _write_branch(self, union: list[Any], value: Any, place: BodyPlace) -> None:
        branches = [_resolved(each, self._names) for each in union]
        chosen = self._branch(branches, value)
        if chosen is None:
            listed = ", ".join(each.get("name", each["type"]) for each in branches)
            raise place.is_not(value, f"a value of the union of {listed}")
        self.out += _zigzag(chosen)
        self.write(branches[chosen], None if branches[chosen]["type"] == "null" else value, place)

    def _branch(self, branches: list[Any], value: Any) -> int | None:
        """The first branch that the value fits by a look at it alone; the only one besides null gives the reason."""
        for index, each in enumerate(branches):
            if self._fits(each, value):
                return index
        kinds = [each["type"] for each in branches]
        if self._from_xml and value == "" and "null" in kinds:
            return kinds.index("null")
        if self._from_xml and "array" in kinds:
            return kinds.index("array")
        others = [index for index, kind in enumerate(kinds) if kind != "null"]
        return others[0] if len(others) == 1 else None

    def _fits(self, schema: Any, value: Any) -> bool:
        match schema["type"]:
            case "record" | "error":
                return isinstance(value, dict) and self._fits_record(schema, value)
            case "map":
                return isinstance(value, dict)
            case "array":
                return isinstance(value, list)
        return self._scalar(schema, value) is not None

    def _fits_record(self, schema: Any, value: dict[str, Any]) -> bool:
        fields = _fields(schema)
        members: dict[str, str] = {}
        return self._collect(fields, value, members) is None and all(
            name in members or "default" in field or _is_nullable(field["type"]) for name, field in fields.items()
        )

    def _scalar(self, schema: Any, value: Any) -> bytes | None:
        """The bytes of a value of a type without others in it; None: not a value of it."""
        is_text = isinstance(value, str) and not isinstance(value, WrittenNumber)
        match schema["type"]:
            case "null":
                return b"" if value is None else None
            case "boolean":
                return None if (found := flag(value, self._from_xml)) is None else bytes([found])
            case "string":
                return _sized(whole_text(value).encode()) if is_text else None
            case "enum":
                symbols = schema["symbols"]
                return _zigzag(symbols.index(value)) if is_text and value in symbols else None
            case "int" | "long":
                whole = self._integer(schema, value)
                return None if whole is None else _zigzag(whole)
            case "float" | "double" as kind:
                fraction = real(number(value, self._from_xml), kind == "float")
                return None if fraction is None else struct.pack("<f" if kind == "float" else "<d", fraction)
        return self._bytes(schema, value, is_text)

    def _integer(self, schema: Any, value: Any) -> int | None:
        half = 1 << (_BITS[schema["type"]] - 1)
        whole = integer(number(value, self._from_xml), -half, half - 1)
        if whole is not None:
            return whole
        if _is_date(schema):
            return days(value)
        digits = _digits(schema)
        return None if digits is None else point_in_time(value, digits)

    def _bytes(self, schema: Any, value: Any, is_text: bool) -> bytes | None:
        size = schema["size"] if schema["type"] == "fixed" else None
        decimal = _decimal(schema)
        if self._origin is _Origin.SCHEMA:
            data = value.encode("latin-1") if is_text else None
        elif decimal is None:
            data = base64_bytes(value)
        else:
            digits = unscaled(number(value, self._from_xml), *decimal)
            data = None if digits is None else _signed(digits, size)
        if data is None or (size is not None and len(data) != size):
            return None
        return data if size is not None else _sized(data)


def _object(value: Any, place: BodyPlace) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise place.is_not(value, "an object")
    return value


def _count(items: Sized) -> bytes:
    """The number of the items that come next, if there are any."""
    return _zigzag(len(items)) if items else b""


def _zigzag(value: int) -> bytes:
    """A number in groups of seven bits, of which the lowest says the sign."""
    left = value * 2 if value >= 0 else -value * 2 - 1
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def _sized(content: bytes) -> bytes:
    return _zigzag(len(content)) + content


def _signed(value: int, size: int | None) -> bytes | None:
    """A number with a sign in so many bytes, None: as few as it needs; None if there are too few."""
    least = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return None if size is not None and least > size else value.to_bytes(size or least, signed=True)


def _is_nullable(schema: Any) -> bool:
    branches = schema if isinstance(schema, list) else [schema]
    return any(each in ("null", {"type": "null"}) for each in branches)


def _is_date(schema: Any) -> bool:
    return bool(schema["type"] == "int" and schema.get("logicalType") == "date")


def _digits(schema: Any) -> int | None:
    return _DIGITS.get(schema.get("logicalType")) if schema["type"] == "long" else None


def _decimal(schema: Any) -> tuple[int, int] | None:
    """The precision and the scale of a decimal; None for another type, also one that they do not suit."""
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if schema.get("logicalType") != "decimal" or type(precision) is not int or type(scale) is not int:
        return None
    # The digits that fit into so many bytes with a sign.
    is_fixed = schema["type"] == "fixed"
    most_digits = math.floor(math.log10(2) * (8 * schema["size"] - 1)) if is_fixed else _MOST_PRECISION
    return (precision, scale) if 0 < precision <= most_digits and 0 <= scale <= precision else None


def _wanted(schema: Any) -> str:
    """The values of a type without others in it, in words."""
    match schema["type"]:
        case "null":
            return "null"
        case "boolean":
            return "true or false"
        case "string":
            return "a text"
        case "enum":
            return f"a symbol of the enum {schema['name']}"
        case "int" | "long" | "float" | "double" as kind:
            wanted = f"a number of the type {kind}"
            if _is_date(schema):
                return f"{wanted} or a date such as 2026-11-28"
            digits = _digits(schema)
            below = f"a time with at most {digits} digits below the second, such as 2026-11-28T04:00:00.5Z"
            return wanted if digits is None else f"{wanted} or {below}"
    decimal = _decimal(schema)
    if decimal is not None:
        return f"a number of the type decimal({decimal[0]},{decimal[1]})"
    return f"{schema['size']} bytes in base64" if schema["type"] == "fixed" else "a text in base64"
