"""Serdes of keys and values with a schema: Avro, Protobuf and JSON Schema, bare or with a registry.

They are read and written in the JVM (`jmsbridge.serdes` in `jvm/spark`); a serde here says how.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["SchemaFormat", "SchemaSerde", "avro", "json_schema", "protobuf"]


class SchemaFormat(StrEnum):
    """Format of keys and values with a schema, by its name in a registry."""

    AVRO = "AVRO"
    JSON_SCHEMA = "JSON"
    PROTOBUF = "PROTOBUF"

    @property
    def maker(self) -> str:
        """Name of the function that makes serdes of the format."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class SchemaSerde:
    """Form of the keys or values of a topic that have a schema; make one with `avro`, `json_schema` or `protobuf`."""

    format: SchemaFormat
    schema: str
    """The schema: its JSON, or a FileDescriptorSet of Protobuf in base64; empty: it is taken from the registry."""
    message: str
    """Full name of a Protobuf message; empty: the first one of the schema."""
    subject: str
    """Subject in the registry; empty: `TOPIC-value`, and `TOPIC-key` for keys."""
    version: int
    """Version of the subject; 0: the latest."""
    uses_registry: bool
    """True if values are in Confluent's wire format, with a schema that a registry has; False: bare bytes."""
    registers: bool
    """True if a sink registers its schema, if the registry does not have it."""

    def __str__(self) -> str:
        about = [*filter(None, (self.message, self.subject)), *([f"version {self.version}"] if self.version else [])]
        return f"{self.format.maker}({', '.join(about)})"


def avro(
    schema: str = "",
    *,
    subject: str = "",
    version: int | None = None,
    registry: bool = True,
    register: bool = True,
) -> SchemaSerde:
    """Avro keys or values, by default in Confluent's wire format with a schema registry.

    Args:
        schema: the schema as JSON. Without one, a source reads with a version of the subject, and a sink writes a
            record of its fields, or a version of the subject if `version` is given or `register` is False.
        subject: the subject in the registry; without one, `TOPIC-value`, and `TOPIC-key` for keys.
        version: the version of the subject; without one, the latest.
        registry: False: the values are bare bytes of the given schema.
        register: whether a sink registers its schema; False: it has to be registered already.
    """
    return _serde(SchemaFormat.AVRO, schema, "", subject, version, registry=registry, register=register)


def json_schema(
    schema: str = "",
    *,
    subject: str = "",
    version: int | None = None,
    registry: bool = True,
    register: bool = True,
) -> SchemaSerde:
    """JSON keys or values with a JSON Schema, by default in Confluent's wire format with a schema registry.

    Args:
        schema: the schema as JSON. Without one, a source reads with a version of the subject, and a sink writes an
            object of its fields, or a version of the subject if `version` is given or `register` is False.
        subject: the subject in the registry; without one, `TOPIC-value`, and `TOPIC-key` for keys.
        version: the version of the subject; without one, the latest.
        registry: False: the values are bare JSON of the given schema.
        register: whether a sink registers its schema; False: it has to be registered already.

    Raises:
        ValueError: the arguments contradict each other.
    """
    return _serde(SchemaFormat.JSON_SCHEMA, schema, "", subject, version, registry=registry, register=register)


def protobuf(
    schema: bytes | type[Any] = b"",
    *,
    message: str = "",
    subject: str = "",
    version: int | None = None,
    registry: bool = True,
    register: bool = True,
) -> SchemaSerde:
    """Protobuf keys or values, by default in Confluent's wire format with a schema registry.

    Args:
        schema: a generated Python class, or a FileDescriptorSet, such as `protoc --include_imports
            --descriptor_set_out=FILE` makes. Without one, sources and sinks take a version of the subject; a sink then
            needs `version`, or `register=False`.
        message: the full name of the message; without one, the first of the schema.
        subject: the subject in the registry; without one, `TOPIC-value`, and `TOPIC-key` for keys.
        version: the version of the subject; without one, the latest.
        registry: False: the values are bare bytes of the given schema.
        register: whether a sink registers its schema; False: it has to be registered already.
    """
    if isinstance(schema, bytes):
        files = schema
    else:
        files = _file_set(schema.DESCRIPTOR.file)
        message = message or schema.DESCRIPTOR.full_name
    given = base64.b64encode(files).decode()
    return _serde(SchemaFormat.PROTOBUF, given, message, subject, version, registry=registry, register=register)


def _serde(
    form: SchemaFormat,
    schema: str,
    message: str,
    subject: str,
    version: int | None,
    *,
    registry: bool,
    register: bool,
) -> SchemaSerde:
    if not registry and not schema:
        msg = f"{form.maker} without a registry needs a schema"
        raise ValueError(msg)
    if not registry and (subject or version is not None):
        msg = f"{form.maker} without a registry has no subject and no version"
        raise ValueError(msg)
    if schema and version is not None:
        msg = f"{form.maker} has either a schema or a version of its subject"
        raise ValueError(msg)
    if version is not None and version < 1:
        msg = f"versions of a subject begin with 1, not {version}"
        raise ValueError(msg)
    return SchemaSerde(form, schema, message, subject, version or 0, registry, register)


def _file_set(file: Any) -> bytes:
    """A FileDescriptorSet of a file of the package protobuf, and of those that it imports, each behind its own."""
    contents: dict[str, bytes] = {}

    def add(descriptor: Any) -> None:
        for needed in descriptor.dependencies:
            add(needed)
        contents.setdefault(descriptor.name, descriptor.serialized_pb)

    add(file)
    # Field 1 of FileDescriptorSet: its tag, the length, the file.
    return b"".join(b"\x0a" + _varint(len(content)) + content for content in contents.values())


def _varint(number: int) -> bytes:
    groups = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
