"""Schemas that routes name, for commands: what does not fit them, and bodies as they leave by them.

`jmsbridge.predicate.BodySchemas` (`jvm/spark`) is the same for the router.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from engine.errors import HardFailureError
from engine.schemas.avro_resolution import avro_difference
from engine.schemas.body_json import UnfitBodyError
from engine.schemas.descriptor_set import schema_of_set
from engine.schemas.documents import documents_of
from engine.schemas.encoders import encoder
from engine.schemas.protobuf_resolution import protobuf_difference
from engine.schemas.registry import RegistryClient
from engine.schemas.schema_text import RegisteredSchema
from engine.schemas.section import SchemaConfig
from engine.schemas.validator import faults
from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import UnreadableBodyError
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.schemas.documents import Documents
    from engine.schemas.encoders import Encoder
    from routes.model import Config
    from routes.schema_names import SchemaName

__all__ = ["RouteSchemas", "SchemaReader", "difference", "route_schemas", "schema_of_file"]

_MARK = b"\0"
_HEAD_BYTES = 5


class SchemaReader(Protocol):
    """Schemas of routes, as an explanation asks for them."""

    def fault(self, schema: SchemaName, body: bytes) -> str | None:
        """Returns the reason why a body does not fit a schema; None if it does."""

    def written(self, schema: SchemaName, body: bytes | None, *, from_xml: bool) -> bytes:
        """Returns a JSON body as a value of a schema; raises UnfitBodyError with the reason if it does not fit."""


class RouteSchemas:
    """Schemas of one configuration."""

    def __init__(
        self,
        base: Path,
        registry: RegistryClient | None,
        documents: Documents | None,
        tried: Mapping[str, RegisteredSchema] = MappingProxyType({}),
    ) -> None:
        """Creates it with the folder where paths of files begin; without a registry there are files alone.

        `tried` has schemas by subject that take the place of the latest version there.
        """
        self._base = base
        self._tried = tried
        self._registry = registry
        self._documents = documents
        self._known: dict[SchemaName, tuple[int, RegisteredSchema]] = {}
        self._encoders: dict[SchemaName, Encoder] = {}

    def with_tried(self, subject: str, schema: RegisteredSchema) -> RouteSchemas:
        """Returns these schemas with another one in the place of the latest version of a subject."""
        return RouteSchemas(self._base, self._registry, self._documents, {**self._tried, subject: schema})

    def fault(self, schema: SchemaName, body: bytes) -> str | None:
        """Returns the reason why a body does not fit a schema; None if it does.

        Raises HardFailureError or UnreachableError if the schema cannot be found or used.
        """
        _, wanted = self._found(schema)
        try:
            if schema.kind is SchemaKind.JSON_SCHEMA:
                has_schema = self._documents is not None and body.startswith(_MARK)
                content = self._documents.document(body).content if self._documents and has_schema else body
                return _json_fault(schema, wanted.text, content)
            if not body.startswith(_MARK) or self._documents is None or self._registry is None:
                return "the body has no schema: its first byte is not 0, as in Confluent's wire format"
            self._documents.document(body)
            number = int.from_bytes(body[1:_HEAD_BYTES], signed=True)
            reason = difference(schema, self._registry.schema(number), wanted)
        except (InvalidSchemaError, UnreadableBodyError) as error:
            return str(error)
        return f"the schema with the id {number} does not fit {schema}: {reason}" if reason else None

    def written(self, schema: SchemaName, body: bytes | None, *, from_xml: bool) -> bytes:
        """Returns a JSON body as a value of a schema, in Confluent's wire format.

        The id of a schema that is only in a file is 0 here, since it is not registered for an explanation.

        Raises:
            UnfitBodyError: the body does not fit, with the reason.
            HardFailureError, UnreachableError: the schema cannot be found or used.
        """
        number, wanted = self._found(schema)
        if body is None:
            msg = f"there is no body to write as {schema}"
            raise UnfitBodyError(msg)
        head = _MARK + number.to_bytes(4, signed=True)
        if schema.kind is SchemaKind.JSON_SCHEMA:
            try:
                reason = _json_fault(schema, wanted.text, body)
            except (InvalidSchemaError, UnreadableBodyError) as error:
                reason = str(error)
            if reason is not None:
                raise UnfitBodyError(reason)
            return head + body
        try:
            made = self._encoders.get(schema) or encoder(schema.kind.registry_type, wanted, schema.message)
        except InvalidSchemaError as error:
            raise _unusable(schema, error) from error
        self._encoders[schema] = made
        try:
            return head + made.encode(body, from_xml=from_xml)
        except UnfitBodyError as error:
            msg = f"the body cannot be written as {schema}: {error}"
            raise UnfitBodyError(msg) from error

    def _found(self, schema: SchemaName) -> tuple[int, RegisteredSchema]:
        """The id of a schema, 0 for one of a file, and the schema."""
        if schema not in self._known:
            self._known[schema] = self._read(schema) if schema.file is not None else self._asked(schema)
        return self._known[schema]

    def _read(self, schema: SchemaName) -> tuple[int, RegisteredSchema]:
        assert schema.file is not None
        return 0, schema_of_file(schema, self._base)

    def _asked(self, schema: SchemaName) -> tuple[int, RegisteredSchema]:
        if not schema.version and schema.subject in self._tried:
            return 0, self._tried[schema.subject]
        if self._registry is None:
            raise _unusable(schema, "set schema.registry.url")
        found = self._registry.version(schema.subject, schema.version or None)
        if found.schema.format != schema.kind.registry_type:
            raise _unusable(schema, f"the subject has a schema of {found.schema.format}")
        return found.id, found.schema


def difference(schema: SchemaName, writer: RegisteredSchema, reader: RegisteredSchema) -> str:
    """Returns the reason why values of a schema cannot be read by the one that a route names; empty: they can.

    Raises InvalidSchemaError.
    """
    if writer.format != reader.format:
        return f"it is of {writer.format}"
    if schema.kind is SchemaKind.AVRO:
        return avro_difference(writer, reader)
    return protobuf_difference(writer, reader, schema.message)


def schema_of_file(schema: SchemaName, base: Path) -> RegisteredSchema:
    """Returns the schema in a file; paths begin at `base`. Raises HardFailureError if it cannot be used."""
    assert schema.file is not None
    try:
        content = (base / schema.file).read_bytes()
        if schema.kind is SchemaKind.PROTOBUF:
            return schema_of_set(content, schema.message)
        return RegisteredSchema(schema.kind.registry_type, content.decode())
    except (OSError, UnicodeDecodeError, InvalidSchemaError) as error:
        raise _unusable(schema, error) from error


def route_schemas(config: Config) -> RouteSchemas:
    """Returns the schemas that the routes of a configuration name, one object for all calls."""
    return _route_schemas(config.path.parent, config.section(SchemaConfig), documents_of(config))


@lru_cache(maxsize=8)
def _route_schemas(base: Path, section: SchemaConfig, documents: Documents | None) -> RouteSchemas:
    return RouteSchemas(base, None if section.urls is None else RegistryClient(section), documents)


def _json_fault(schema: SchemaName, text: str, document: bytes) -> str | None:
    found = faults(text, document)
    return None if not found else f"the body does not fit {schema}: {', '.join(found).replace(', and ', ' and ')}"


def _unusable(schema: SchemaName, reason: object) -> HardFailureError:
    return HardFailureError(f"the schema {schema} cannot be used: {reason}")
