"""Protobuf schemas in files: a FileDescriptorSet, as `protoc --include_imports --descriptor_set_out` makes it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from engine.schemas.schema_text import RegisteredSchema, SchemaReference
from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["schema_of_set"]


def schema_of_set(content: bytes, message: str) -> RegisteredSchema:
    """Returns the schema of the file that has a message by its full name; without a name that of the last file.

    Raises InvalidSchemaError.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(content).file
    except DecodeError as error:
        msg = "it is not a FileDescriptorSet; protoc --include_imports --descriptor_set_out=FILE makes one"
        raise InvalidSchemaError(msg) from error
    having = [each for each in files if not message or message in _names(each.message_type, each.package)]
    if not having:
        msg = f"no file of it has the message '{message}'"
        raise InvalidSchemaError(msg)
    return _schema(having[-1], {each.name: each for each in files})


def _names(messages: Any, prefix: str) -> set[str]:
    names = set()
    for each in messages:
        name = f"{prefix}.{each.name}" if prefix else each.name
        names |= {name, *_names(each.nested_type, name)}
    return names


def _schema(file: Any, files: Mapping[str, Any]) -> RegisteredSchema:
    used = [name for name in file.dependency if name in files and not name.startswith("google/protobuf/")]
    references = tuple(SchemaReference(name, _schema(files[name], files)) for name in used)
    return RegisteredSchema("PROTOBUF", base64.b64encode(file.SerializeToString()).decode(), references)
