"""Schemas as routes and sources name them: a file, or a subject of the registry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from routes.predicate.nodes import DocumentFormat

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SchemaKind", "SchemaName", "SourceSchema", "SubjectStrategy"]


class SchemaKind(StrEnum):
    """Kinds of schemas, by their names in a configuration."""

    AVRO = "avro"
    PROTOBUF = "protobuf"
    JSON_SCHEMA = "json-schema"

    @property
    def registry_type(self) -> str:
        """Name of the kind in a registry."""
        return "JSON" if self is SchemaKind.JSON_SCHEMA else self.upper()

    @property
    def suffix(self) -> str:
        """End of the names of files with such a schema."""
        return {SchemaKind.AVRO: ".avsc", SchemaKind.PROTOBUF: ".desc", SchemaKind.JSON_SCHEMA: ".json"}[self]

    @property
    def body_format(self) -> DocumentFormat:
        """Format of the bodies that have such a schema."""
        return DocumentFormat.JSON if self is SchemaKind.JSON_SCHEMA else DocumentFormat(self)


class SubjectStrategy(StrEnum):
    """Names of the subjects under which schemas of files are registered, as Confluent's serializers have them."""

    TOPIC = "topic"
    RECORD = "record"
    TOPIC_RECORD = "topic-record"


@dataclass(frozen=True, slots=True)
class SchemaName:
    """Schema of bodies, as a configuration names it: of a file, or a version of a subject."""

    kind: SchemaKind
    file: Path | None = None
    """File with the schema: JSON of Avro or a JSON Schema, or a FileDescriptorSet; None: the registry has it."""
    subject: str = ""
    """Subject in the registry, without a file."""
    version: int = 0
    """Version of the subject; 0: the latest."""
    message: str = ""
    """Full name of a Protobuf message; empty: the first one of the schema."""

    @property
    def needs_registry(self) -> bool:
        """True if bodies with the schema cannot be read, or the schema not be found, without a registry."""
        return self.file is None or self.kind.body_format.has_schema

    def __str__(self) -> str:
        version = f"@{self.version}" if self.version else ""
        message = f"#{self.message}" if self.message else ""
        return f"{self.kind}:{self.file or self.subject}{version}{message}"


@dataclass(frozen=True, slots=True)
class SourceSchema:
    """Schema of the bare values that a source receives."""

    source: str
    """Name of the source."""
    schema: SchemaName
    """Schema of Avro or Protobuf."""
    takes_text: bool
    """True if texts are such values as well, since the source's system does not tell them from bytes."""

    def has(self, kind: str) -> bool:
        """Returns True if a body of this kind is such a value: maps, streams and objects are JSON of the bridge."""
        return kind == "bytes" or (self.takes_text and kind == "text")

    def __str__(self) -> str:
        return f"the schema {self.schema} of the source {self.source}"
