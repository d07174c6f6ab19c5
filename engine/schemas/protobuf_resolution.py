"""Resolution of Protobuf schemas: whether messages of one can be read by another, by the encodings of fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.schemas.protobuf_documents import ProtobufDocuments

if TYPE_CHECKING:
    from engine.schemas.schema_text import RegisteredSchema

__all__ = ["protobuf_difference"]

_ENCODINGS = {
    "varint": ("int32", "int64", "uint32", "uint64", "bool", "enum"),
    "zigzag": ("sint32", "sint64"),
    "fixed32": ("fixed32", "sfixed32"),
    "fixed64": ("fixed64", "sfixed64"),
    "bytes": ("string", "bytes"),
}
_ENCODING = {name: encoding for encoding, names in _ENCODINGS.items() for name in names}
"""Encoding by type: types with equal ones can be read as each other, as Protobuf's guide to updates says."""


def protobuf_difference(writer: RegisteredSchema, reader: RegisteredSchema, message: str) -> str:
    """Returns the first reason why messages of one schema cannot be read by another; empty: they can.

    `message` is the full name of the message; empty: the first one of each schema. Raises InvalidSchemaError.
    """
    written, read = (ProtobufDocuments(schema).message(message) for schema in (writer, reader))
    if written.full_name != read.full_name:
        return f"the message is a {written.full_name} and not a {read.full_name}"
    return _difference(written, read, frozenset())


def _difference(written: Any, read: Any, within: frozenset[str]) -> str:
    if read.full_name in within:
        return ""
    for field in read.fields:
        written_field = written.fields_by_number.get(field.number)
        if written_field is None:
            continue
        own_type, written_type = _type(field), _type(written_field)
        if _ENCODING.get(own_type, own_type) != _ENCODING.get(written_type, written_type):
            return f"the field {field.full_name} was written as {written_type}, and cannot be read as {own_type}"
        if field.message_type is not None:
            inner = _difference(written_field.message_type, field.message_type, within | {read.full_name})
            if inner:
                return inner
    return ""


def _type(field: Any) -> str:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    return str(FieldDescriptorProto.Type.Name(field.type)).removeprefix("TYPE_").lower()
