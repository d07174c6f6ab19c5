"""Protobuf messages of JSON bodies (`jmsbridge.serdes.ProtobufBodies`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from engine.schemas.body_json import BodyPlace, WrittenNumber, read_body, whole_text
from engine.schemas.body_values import base64_bytes, field_of, flag, integer, number, point_in_time, real
from engine.schemas.protobuf_files import ProtobufFiles
from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
    from google.protobuf.descriptor_pb2 import DescriptorProto

    from engine.schemas.body_json import EncodingSchema

__all__ = ["ProtobufBodies"]

_TIMESTAMP = "google.protobuf.Timestamp"
_NANO_DIGITS = 9
_INTEGER_KEY = re.compile(r"0|-?[1-9][0-9]{0,19}")


class ProtobufBodies:
    """Encoder of bodies into messages of one type."""

    def __init__(self, schema: EncodingSchema, message: str) -> None:
        """Reads the schema; the first message if the name is empty. Raises InvalidSchemaError."""
        files = ProtobufFiles(schema)
        found = [
            each
            for each in _messages(files.root.message_type, files.root.package, ())
            if not message or each[0] == message
        ]
        if not found:
            msg = f"the schema has no message '{message}'" if message else "the schema has no message"
            raise InvalidSchemaError(msg)
        name, path = found[0]
        self._type: Descriptor = files.pool.FindMessageTypeByName(name)
        # The first message of a file has a short form.
        self._prefix = b"\0" if path == (0,) else b"".join(map(_zigzag, (len(path), *path)))
        self._maps = files.maps
        self._fields: dict[str, dict[str, FieldDescriptor]] = {}

    def encode(self, json: bytes, *, from_xml: bool) -> bytes:
        """Returns the indexes and the message of a body; raises UnfitBodyError."""
        from google.protobuf.message_factory import GetMessageClass

        document, place = read_body(json), BodyPlace()
        if from_xml and isinstance(document, dict) and len(document) == 1:
            [(name, value)] = document.items()
            if name not in self._names(self._type):
                document, place = value, BodyPlace(place, name)
        message = GetMessageClass(self._type)()
        self._fill(message, document, place, from_xml)
        return self._prefix + bytes(message.SerializePartialToString())

    def _names(self, message: Descriptor) -> dict[str, FieldDescriptor]:
        """The fields by the names that they have in bodies."""
        names = self._fields.get(message.full_name)
        if names is None:
            names = {each.json_name: each for each in reversed(message.fields)}
            names |= {each.name: each for each in message.fields}
            self._fields[message.full_name] = names
        return names

    def _fill(self, message: Any, value: Any, place: BodyPlace, from_xml: bool) -> None:
        message.SetInParent()
        is_timestamp = message.DESCRIPTOR.full_name == _TIMESTAMP
        time = point_in_time(value, _NANO_DIGITS) if is_timestamp else None
        if time is not None:
            message.seconds, message.nanos = divmod(time, 10**_NANO_DIGITS)
            return
        if not isinstance(value, dict):
            below = "a time with at most 9 digits below the second, such as 2026-11-28T04:00:00.5Z"
            raise place.is_not(value, f"an object or {below}" if is_timestamp else "an object")
        chosen: dict[str, str] = {}
        for field, member in self._members(message.DESCRIPTOR, value, place, from_xml):
            inner = BodyPlace(place, member)
            self._set(message, field, value[member], inner, from_xml)
            oneof = field.containing_oneof
            if oneof is not None and message.HasField(field.name):
                if oneof.name in chosen:
                    raise inner.fault(f"'{chosen[oneof.name]}' is of the same oneof, '{oneof.name}'")
                chosen[oneof.name] = member
        for field in message.DESCRIPTOR.fields:
            if field.is_required and not message.HasField(field.name):
                raise BodyPlace(place, field.name).fault("it is missing, and the schema requires it")

    def _members(
        self, message: Descriptor, value: dict[str, Any], place: BodyPlace, from_xml: bool
    ) -> list[tuple[FieldDescriptor, str]]:
        """The fields with the members that stand for them."""
        names = self._names(message)
        members: dict[int, tuple[FieldDescriptor, str]] = {}
        for member in value:
            name = field_of(member, from_xml, names)
            if name is None:
                raise BodyPlace(place, member).fault("the schema has no such field")
            field = names[name]
            if field.number in members:
                raise BodyPlace(place, member).fault(f"'{members[field.number][1]}' stands for the same field")
            members[field.number] = field, member
        return list(members.values())

    def _set(self, message: Any, field: FieldDescriptor, value: Any, place: BodyPlace, from_xml: bool) -> None:
        if value is None or (from_xml and value == "" and _may_be_empty(field)):
            return
        values = getattr(message, field.name)
        if field.message_type is not None and field.message_type.full_name in self._maps:
            self._add_entries(values, field, value, place, from_xml)
        elif not field.is_repeated and field.message_type is not None:
            self._fill(values, value, place, from_xml)
        elif not field.is_repeated:
            setattr(message, field.name, _scalar(field, value, place, from_xml))
        elif isinstance(value, list):
            for index, each in enumerate(value):
                self._append(values, field, each, BodyPlace(place, index), from_xml)
        elif from_xml:
            self._append(values, field, value, place, from_xml)
        else:
            raise place.is_not(value, "an array")

    def _append(self, values: Any, field: FieldDescriptor, value: Any, place: BodyPlace, from_xml: bool) -> None:
        if field.message_type is None:
            values.append(_scalar(field, value, place, from_xml))
        else:
            self._fill(values.add(), value, place, from_xml)

    def _add_entries(self, values: Any, field: FieldDescriptor, value: Any, place: BodyPlace, from_xml: bool) -> None:
        if not isinstance(value, dict):
            raise place.is_not(value, "an object")
        key, content = (field.message_type.fields_by_number[each] for each in (1, 2))
        for name, each in value.items():
            inner = BodyPlace(place, name)
            found = _key(key, name)
            if found is None:
                raise inner.fault(f"its name is not a key of the type {_name(key)}")
            entry = values.add()
            entry.key = found
            if content.message_type is None:
                entry.value = _scalar(content, each, inner, from_xml)
            else:
                self._fill(entry.value, each, inner, from_xml)


def _may_be_empty(field: FieldDescriptor) -> bool:
    """True if a field may be absent and takes no texts."""
    return field.has_presence and field.type not in (field.TYPE_STRING, field.TYPE_BYTES)


def _key(key: FieldDescriptor, name: str) -> Any:
    if key.type == key.TYPE_STRING:
        return name
    if key.type == key.TYPE_BOOL:
        return {"true": True, "false": False}.get(name)
    return _integer(key, WrittenNumber(name)) if _INTEGER_KEY.fullmatch(name) else None


def _scalar(field: FieldDescriptor, value: Any, place: BodyPlace, from_xml: bool) -> Any:
    is_text = isinstance(value, str) and not isinstance(value, WrittenNumber)
    scalar: Any
    match field.type:
        case field.TYPE_BOOL:
            scalar, wanted = flag(value, from_xml), "true or false"
        case field.TYPE_STRING:
            scalar, wanted = whole_text(value) if is_text else None, "a text"
        case field.TYPE_BYTES:
            scalar, wanted = base64_bytes(value), "a text in base64"
        case field.TYPE_ENUM:
            scalar = _symbol(field.enum_type, value if is_text else None, number(value, from_xml))
            wanted = f"a value of the enum {field.enum_type.full_name}"
        case field.TYPE_FLOAT | field.TYPE_DOUBLE:
            scalar = real(number(value, from_xml), field.type == field.TYPE_FLOAT)
            wanted = f"a number of the type {_name(field)}"
        case _:
            scalar, wanted = _integer(field, number(value, from_xml)), f"a number of the type {_name(field)}"
    if scalar is None:
        raise place.is_not(value, wanted)
    return scalar


def _symbol(enum: EnumDescriptor, text: str | None, written: WrittenNumber | None) -> int | None:
    if text in enum.values_by_name:
        return int(enum.values_by_name[text].number)
    found = integer(written, -(1 << 31), (1 << 31) - 1)
    return None if enum.is_closed and found not in enum.values_by_number else found


def _integer(field: FieldDescriptor, written: WrittenNumber | None) -> int | None:
    name = _name(field)
    bits = 64 if name.endswith("64") else 32
    is_unsigned = name.startswith(("u", "fixed"))
    most = (1 << bits) - 1 if is_unsigned else (1 << bits - 1) - 1
    return integer(written, 0 if is_unsigned else -most - 1, most)


def _name(field: FieldDescriptor) -> str:
    """The name of a scalar type, as in a .proto file."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()


def _zigzag(value: int) -> bytes:
    """A number that is not negative as Confluent's wire format has it, in groups of seven bits."""
    left, encoded = value * 2, bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*encoded, left))


def _messages(
    among: Iterable[DescriptorProto], prefix: str, path: tuple[int, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields the full names of messages and their indexes, the outer ones first."""
    for index, each in enumerate(among):
        name = f"{prefix}.{each.name}" if prefix else each.name
        yield name, (*path, index)
        yield from _messages(each.nested_type, name, (*path, index))
