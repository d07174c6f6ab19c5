"""Schemas that routes name, for commands: what does not fit them, and bodies as they leave by them.

`jmsbridge.predicate.BodySchemas` (`jvm/spark`) is the same for the router.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from engine.schemas.avro_resolution import avro_difference
from engine.schemas.body_json import UnfitBodyError
from engine.schemas.documents import documents_of
from engine.schemas.encoders import encoder
from engine.schemas.named_schemas import NamedSchemas, unusable
from engine.schemas.protobuf_resolution import protobuf_difference
from engine.schemas.registry import RegistryClient
from engine.schemas.section import SchemaConfig
from engine.schemas.validator import faults
from engine.schemas.value_source import InvalidSchemaError
from routes.predicate.bodies import NO_ORIGIN, UnreadableBodyError
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from pathlib import Path

    from engine.schemas.documents import Documents
    from engine.schemas.encoders import Encoder
    from engine.schemas.schema_text import RegisteredSchema
    from routes.model import Config
    from routes.predicate.bodies import BodyOrigin
    from routes.schema_names import SchemaName

__all__ = ["RouteSchemas", "SchemaReader", "difference", "route_schemas"]

_MARK = b"\0"


class SchemaReader(Protocol):
    """Schemas of routes, as an explanation asks for them."""

    def fault(self, schema: SchemaName, body: bytes, origin: BodyOrigin) -> str | None:
        """Returns the reason why a body does not fit a schema; None if it does."""

    def written(self, schema: SchemaName, body: bytes | None, *, from_xml: bool) -> bytes:
        """Returns a JSON body as a value of a schema; raises UnfitBodyError with the reason if it does not fit."""


class RouteSchemas:
    """Schemas of one configuration."""

    def __init__(self, named: NamedSchemas, documents: Documents | None) -> None:
        """Creates it; without `documents`, all bodies have no schema of their own."""
        self._named = named
        self._documents = documents
        self._encoders: dict[SchemaName, Encoder] = {}

    def with_tried(self, subject: str, schema: RegisteredSchema) -> RouteSchemas:
        """Returns these schemas with another one in the place of the latest version of a subject."""
        tried = {**self._named.tried, subject: schema}
        return RouteSchemas(NamedSchemas(self._named.base, self._named.registry, tried), self._documents)

    def fault(self, schema: SchemaName, body: bytes, origin: BodyOrigin = NO_ORIGIN) -> str | None:
        """Returns the reason why a body does not fit a schema; None if it does.

        Raises HardFailureError or UnreachableError if the schema cannot be found or used.
        """
        _, wanted = self._named.found(schema)
        documents = self._documents if self._documents and self._documents.has_schema(body, origin) else None
        try:
            if schema.kind is SchemaKind.JSON_SCHEMA:
                return _json_fault(schema, wanted.text, documents.document(body, origin).content if documents else body)
            if documents is None:
                return "the body has no schema: its first byte is not 0, as in Confluent's wire format"
            documents.document(body, origin)
            writer = documents.writer(body, origin)
            reason = difference(schema, writer.schema, wanted)
        except (InvalidSchemaError, UnreadableBodyError) as error:
            return str(error)
        return f"{writer.words} does not fit {schema}: {reason}" if reason else None

    def written(self, schema: SchemaName, body: bytes | None, *, from_xml: bool) -> bytes:
        """Returns a JSON body as a value of a schema, in Confluent's wire format.

        The id of a schema that is only in a file is 0 here, since it is not registered for an explanation.

        Raises:
            UnfitBodyError: the body does not fit, with the reason.
            HardFailureError, UnreachableError: the schema cannot be found or used.
        """
        number, wanted = self._named.found(schema)
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
            raise unusable(schema, error) from error
        self._encoders[schema] = made
        try:
            return head + made.encode(body, from_xml=from_xml)
        except UnfitBodyError as error:
            msg = f"the body cannot be written as {schema}: {error}"
            raise UnfitBodyError(msg) from error


def difference(schema: SchemaName, writer: RegisteredSchema, reader: RegisteredSchema) -> str:
    """Returns the reason why values of a schema cannot be read by the one that a route names; empty: they can.

    Raises InvalidSchemaError.
    """
    if writer.format != reader.format:
        return f"it is of {writer.format}"
    if schema.kind is SchemaKind.AVRO:
        return avro_difference(writer, reader)
    return protobuf_difference(writer, reader, schema.message)


def route_schemas(config: Config) -> RouteSchemas:
    """Returns the schemas that the routes of a configuration name, one object for all calls."""
    return _route_schemas(config.path.parent, config.section(SchemaConfig), documents_of(config))


@lru_cache(maxsize=8)
def _route_schemas(base: Path, section: SchemaConfig, documents: Documents | None) -> RouteSchemas:
    registry = None if section.urls is None else RegistryClient(section)
    return RouteSchemas(NamedSchemas(base, registry), documents)


def _json_fault(schema: SchemaName, text: str, document: bytes) -> str | None:
    messages = faults(text, document)
    return None if not messages else f"the body does not fit {schema}: {', '.join(messages).replace(', and ', ' and ')}"
