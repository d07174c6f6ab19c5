"""Documents of bodies with a schema: Avro, Protobuf and JSON Schema in Confluent's wire format as JSON text.

`jmsbridge.serdes.Documents` (`jvm/spark`) reads the same bodies alike, for the router.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from engine.schemas.avro_documents import AvroDocuments
from engine.schemas.document_text import DocumentText
from engine.schemas.protobuf_documents import ProtobufDocuments
from engine.schemas.registry import RegistryClient
from engine.schemas.section import SchemaConfig
from engine.schemas.value_source import InvalidSchemaError, InvalidValueError, ValueSource
from routes.predicate.bodies import BodyDocument, UnreadableBodyError

if TYPE_CHECKING:
    from engine.schemas.schema_text import RegisteredSchema
    from routes.model import Config

__all__ = ["Documents", "documents_of"]

_HEAD_BYTES = 5
"""Bytes before the value: the byte 0, and the id of its schema."""
_MOST_READERS = 1_000


class _SchemaSource(Protocol):
    def schema(self, number: int) -> RegisteredSchema: ...


class _ValueDocuments(Protocol):
    def write(self, source: ValueSource, out: DocumentText) -> None: ...


class Documents:
    """Reader of bodies whose schemas are in a registry."""

    def __init__(self, registry: _SchemaSource) -> None:
        self._registry = registry
        self._readers: dict[int, tuple[str, _ValueDocuments | None]] = {}

    def document(self, body: bytes) -> BodyDocument:
        """Returns the content of a body that begins with the byte 0.

        Raises:
            UnreadableBodyError: the body cannot be read, with the reason.
            UnreachableError, HardFailureError, SetupError: the registry cannot be asked.
        """
        if len(body) < _HEAD_BYTES:
            msg = f"{len(body)} bytes are fewer than Confluent's wire format has before a value"
            raise UnreadableBodyError(msg)
        number = int.from_bytes(body[1:_HEAD_BYTES], signed=True)
        form, reader = self._reader(number)
        if reader is None:
            return BodyDocument(form, body[_HEAD_BYTES:])
        out = DocumentText()
        try:
            reader.write(ValueSource(body, _HEAD_BYTES), out)
        except InvalidValueError as error:
            msg = f"the bytes are not a valid {form} value of the schema with the id {number}: {error}"
            raise UnreadableBodyError(msg) from error
        except EOFError as error:
            msg = f"the bytes end before the {form} value of the schema with the id {number} does"
            raise UnreadableBodyError(msg) from error
        return BodyDocument(form, out.finished())

    def _reader(self, number: int) -> tuple[str, _ValueDocuments | None]:
        """The format of a schema, and the reader of its values; None for values that are JSON already."""
        known = self._readers.get(number)
        if known is None:
            schema = self._registry.schema(number)
            try:
                known = schema.format, _made(schema)
            except (InvalidSchemaError, RecursionError) as error:
                msg = f"the schema with the id {number}: {error}"
                raise UnreadableBodyError(msg) from error
            if len(self._readers) == _MOST_READERS:
                self._readers.clear()
            self._readers[number] = known
        return known


def documents_of(config: Config, most_seconds: float | None = None) -> Documents | None:
    """Returns the reader for the bodies of a configuration, one for all calls; None if there is no registry.

    A request to the registry takes `most_seconds` at most, if they are given.
    """
    section = config.section(SchemaConfig)
    if most_seconds is not None:
        section = replace(section, timeout_seconds=min(section.timeout_seconds, most_seconds))
    return None if section.urls is None else _documents(section)


@lru_cache(maxsize=8)
def _documents(section: SchemaConfig) -> Documents:
    return Documents(RegistryClient(section))


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
