"""Schemas as a registry keeps them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RegisteredSchema", "SchemaReference", "SubjectVersion"]


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with all that it refers to."""

    format: str
    """Name of the format in the registry: AVRO, PROTOBUF or JSON."""
    text: str
    """JSON for Avro and JSON Schema; for Protobuf a FileDescriptorProto in base64, or text."""
    references: tuple[SchemaReference, ...] = ()
    """The schemas that it names, those that others need first."""


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Schema under the name by which another one refers to it."""

    name: str
    schema: RegisteredSchema


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """Version of a subject."""

    number: int
    id: int
    schema: RegisteredSchema
