"""Documents of bodies with a schema as JSON text: bare values of sources that have one, and Confluent's wire format.

`jmsbridge.serdes.Documents` (`jvm/spark`) reads the same bodies alike, for the router.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from engine.errors import HardFailureError
from engine.schemas.avro_documents import AvroDocuments
from engine.schemas.document_text import DocumentText
from engine.schemas.named_schemas import NamedSchemas
from engine.schemas.protobuf_documents import ProtobufDocuments
from engine.schemas.registry import RegistryClient
from engine.schemas.section import SchemaConfig
from engine.schemas.value_source import InvalidSchemaError, InvalidValueError, ValueSource
from routes.predicate.bodies import NO_ORIGIN, BodyDocument, UnreadableBodyError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.schemas.schema_text import RegisteredSchema
    from routes.model import Config
    from routes.predicate.bodies import BodyOrigin
    from routes.schema_names import SourceSchema

__all__ = ["Documents", "WriterSchema", "documents_of"]

_MARK = b"\0"
_HEAD_BYTES = 5
"""Bytes before the value: the byte 0, and the id of its schema."""
_MOST_WRITERS = 1_000


class _RegisteredSchemas(Protocol):
    def schema(self, number: int) -> RegisteredSchema: ...


class _ValueDocuments(Protocol):
    def write(self, source: ValueSource, out: DocumentText) -> None: ...


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """Schema by which a body was written."""

    words: str
    """The schema as sentences name it."""
    schema: RegisteredSchema
    values: _ValueDocuments | None
    """Reader of its values; None: they are JSON already."""
    begin: int
    """Place where the value begins."""


class Documents:
    """Reader of bodies whose schemas the registry or their source names."""

    def __init__(
        self,
        registry: _RegisteredSchemas | None,
        sources: Iterable[SourceSchema] = (),
        named: NamedSchemas | None = None,
    ) -> None:
        """Creates it; `named` finds the schemas of `sources` when a body first needs them."""
        self._registry = registry
        self._sources = {each.source: each for each in sources}
        self._named = named
        self._writers: dict[int, WriterSchema] = {}
        self._source_writers: dict[str, WriterSchema] = {}

    def has_schema(self, body: bytes, origin: BodyOrigin = NO_ORIGIN) -> bool:
        """Returns True if a body is a bare value of its source, or begins as Confluent's wire format does."""
        return self._source(origin) is not None or (self._registry is not None and body.startswith(_MARK))

    def document(self, body: bytes, origin: BodyOrigin = NO_ORIGIN) -> BodyDocument:
        """Returns the content of a body that has a schema.

        Raises:
            UnreadableBodyError: the body cannot be read, with the reason.
            UnreachableError, HardFailureError, SetupError: a schema cannot be asked for or used.
        """
        writer = self.writer(body, origin)
        form = writer.schema.format
        if writer.values is None:
            return BodyDocument(form, body[writer.begin :])
        out = DocumentText()
        try:
            writer.values.write(ValueSource(body, writer.begin), out)
        except InvalidValueError as error:
            msg = f"the bytes are not a valid {form} value of {writer.words}: {error}"
            raise UnreadableBodyError(msg) from error
        except EOFError as error:
            msg = f"the bytes end before the {form} value of {writer.words} does"
            raise UnreadableBodyError(msg) from error
        return BodyDocument(form, out.finished())

    def writer(self, body: bytes, origin: BodyOrigin = NO_ORIGIN) -> WriterSchema:
        """Returns the schema by which a body was written that has one; raises what `document` does."""
        source = self._source(origin)
        if source is not None:
            return self._of_source(source)
        if len(body) < _HEAD_BYTES:
            msg = f"{len(body)} bytes are fewer than Confluent's wire format has before a value"
            raise UnreadableBodyError(msg)
        return self._registered(int.from_bytes(body[1:_HEAD_BYTES], signed=True))

    def check_file(self, source: SourceSchema) -> None:
        """Raises HardFailureError if the schema of one of the sources is in a file, and cannot be used."""
        if source.schema.file is not None:
            self._of_source(source)

    def _source(self, origin: BodyOrigin) -> SourceSchema | None:
        """The schema of the source of a body, if the body is a bare value."""
        source = self._sources.get(origin.source)
        return source if source is not None and source.has(origin.kind) else None

    def _of_source(self, source: SourceSchema) -> WriterSchema:
        if source.source not in self._source_writers:
            assert self._named is not None
            try:
                _, schema = self._named.found(source.schema)
                values = _bare(schema, source.schema.message)
            except (InvalidSchemaError, RecursionError) as error:
                msg = f"{source} cannot be used: {error}"
                raise HardFailureError(msg) from error
            self._source_writers[source.source] = WriterSchema(str(source), schema, values, 0)
        return self._source_writers[source.source]

    def _registered(self, number: int) -> WriterSchema:
        known = self._writers.get(number)
        if known is None:
            assert self._registry is not None
            schema, words = self._registry.schema(number), f"the schema with the id {number}"
            try:
                known = WriterSchema(words, schema, _made(schema), _HEAD_BYTES)
            except (InvalidSchemaError, RecursionError) as error:
                msg = f"{words}: {error}"
                raise UnreadableBodyError(msg) from error
            if len(self._writers) == _MOST_WRITERS:
                self._writers.clear()
            self._writers[number] = known
        return known


def documents_of(config: Config, most_seconds: float | None = None) -> Documents | None:
    """Returns the reader for the bodies of a configuration, one for all calls.

    None if there is neither a registry nor a source with a schema. A request to the registry takes `most_seconds` at
    most, if they are given.
    """
    section = config.section(SchemaConfig)
    if most_seconds is not None:
        section = replace(section, timeout_seconds=min(section.timeout_seconds, most_seconds))
    sources = config.source_schemas
    return _documents(section, sources, config.path.parent) if section.urls or sources else None


@lru_cache(maxsize=8)
def _documents(section: SchemaConfig, sources: tuple[SourceSchema, ...], base: Path) -> Documents:
    registry = None if section.urls is None else RegistryClient(section)
    return Documents(registry, sources, NamedSchemas(base, registry))


def _made(schema: RegisteredSchema) -> _ValueDocuments | None:
    match schema.format:
        case "AVRO":
            return AvroDocuments(schema)
        case "PROTOBUF":
            return ProtobufDocuments(schema)
        case "JSON":
            return None
    msg = f"it is of the unknown format {schema.format}"
    raise InvalidSchemaError(msg)


def _bare(schema: RegisteredSchema, message: str) -> _ValueDocuments:
    return AvroDocuments(schema) if schema.format == "AVRO" else ProtobufDocuments(schema, message)
