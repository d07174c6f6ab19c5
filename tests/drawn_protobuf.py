"""Random schemas of Protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pb2, descriptor_pool, timestamp_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

__all__ = ["DrawnProtobuf", "kind_of"]

_KINDS = ["bool", "bytes", "string", "float", "double", "int32", "int64", "uint32", "uint64", "sint32", "sint64"]
_KINDS += ["fixed32", "fixed64", "sfixed32", "sfixed64", "enum", "message"]
_Field = descriptor_pb2.FieldDescriptorProto


class DrawnProtobuf:
    """One random schema, of proto2 or proto3, with three messages that may have each other as fields."""

    def __init__(self, draw: Random, sizes: Mapping[str, int], names: Callable[[], Sequence[str]]) -> None:
        """Draws a schema; `sizes` are the values of its enum, and `names` draws the names of a message's fields."""
        self._draw = draw
        self._syntax = draw.choice(["proto2", "proto3"])
        self.file = descriptor_pb2.FileDescriptorProto(name="drawn.proto", package="shop", syntax=self._syntax)
        self.file.dependency.append("google/protobuf/timestamp.proto")
        values = [descriptor_pb2.EnumValueDescriptorProto(name=name, number=at) for name, at in sizes.items()]
        self.file.enum_type.add(name="Size", value=values)
        for number in range(3):
            self._add_message(number, names())
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        pool.AddSerializedFile(self.file.SerializeToString())
        self._types = [pool.FindMessageTypeByName(f"shop.M{number}") for number in range(3)]

    def _add_message(self, number: int, names: Sequence[str]) -> None:
        message = self.file.message_type.add(name=f"M{number}")
        for index, name in enumerate(names, start=1):
            field = message.field.add(name=name, number=index * 7, label=_Field.LABEL_OPTIONAL)
            kind = self._draw.choice([*_KINDS, "map"])
            if kind == "map":
                self._make_map(message, field)
                continue
            self._set_type(field, kind)
            if self._draw.random() < 0.3:
                field.label = _Field.LABEL_REPEATED
            elif self._syntax == "proto2" and kind != "message" and self._draw.random() < 0.2:
                field.label = _Field.LABEL_REQUIRED
            elif self._syntax == "proto3" and self._draw.random() < 0.3:
                field.proto3_optional = True
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{name}")

    def _set_type(self, field: Any, kind: str) -> None:
        field.type = getattr(_Field, f"TYPE_{kind.upper()}")
        if kind == "enum":
            field.type_name = ".shop.Size"
        elif kind == "message":
            field.type_name = self._draw.choice([".shop.M0", ".shop.M1", ".shop.M2", ".google.protobuf.Timestamp"])

    def _make_map(self, message: Any, field: Any) -> None:
        entry = message.nested_type.add(name="".join(part.title() for part in field.name.split("_")) + "Entry")
        entry.options.map_entry = True
        self._set_type(entry.field.add(name="key", number=1, label=1), self._draw.choice(["bool", "string", "uint64"]))
        self._set_type(entry.field.add(name="value", number=2, label=1), self._draw.choice(_KINDS))
        field.label, field.type = _Field.LABEL_REPEATED, _Field.TYPE_MESSAGE
        field.type_name = f".shop.{message.name}.{entry.name}"


def kind_of(field: Any) -> str:
    """Returns the kind of a field, such as `sint32`."""
    return next(each for each in _KINDS if getattr(field, f"TYPE_{each.upper()}") == field.type)
