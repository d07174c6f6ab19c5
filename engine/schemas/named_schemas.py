"""Schemas that a configuration names, found in files and in the registry."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.errors import HardFailureError
from engine.schemas.descriptor_set import schema_of_set
from engine.schemas.schema_text import RegisteredSchema
from engine.schemas.value_source import InvalidSchemaError
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from engine.schemas.registry import RegistryClient
    from routes.schema_names import SchemaName

__all__ = ["NamedSchemas", "schema_of_file", "unusable"]


class NamedSchemas:
    """Schemas by their names, each of which is looked for once."""

    def __init__(
        self,
        base: Path,
        registry: RegistryClient | None,
        tried: Mapping[str, RegisteredSchema] = MappingProxyType({}),
    ) -> None:
        """Creates it with the folder where paths of files begin; without a registry there are files alone.

        `tried` has schemas by subject that take the place of the latest version there.
        """
        self.base = base
        self.registry = registry
        self.tried = tried
        self._known: dict[SchemaName, tuple[int, RegisteredSchema]] = {}

    def found(self, schema: SchemaName) -> tuple[int, RegisteredSchema]:
        """Returns the id of a schema, 0 for one of a file, and the schema.

        Raises HardFailureError or UnreachableError if the schema cannot be found or used.
        """
        if schema not in self._known:
            of_file = schema.file is not None
            self._known[schema] = (0, schema_of_file(schema, self.base)) if of_file else self._asked(schema)
        return self._known[schema]

    def _asked(self, schema: SchemaName) -> tuple[int, RegisteredSchema]:
        if not schema.version and schema.subject in self.tried:
            return 0, self.tried[schema.subject]
        if self.registry is None:
            raise unusable(schema, "set schema.registry.url")
        version = self.registry.version(schema.subject, schema.version or None)
        if version.schema.format != schema.kind.registry_type:
            raise unusable(schema, f"the subject has a schema of {version.schema.format}")
        return version.id, version.schema


def schema_of_file(schema: SchemaName, base: Path) -> RegisteredSchema:
    """Returns the schema in a file; paths begin at `base`. Raises HardFailureError if it cannot be used."""
    assert schema.file is not None
    try:
        content = (base / schema.file).read_bytes()
        if schema.kind is SchemaKind.PROTOBUF:
            return schema_of_set(content, schema.message)
        return RegisteredSchema(schema.kind.registry_type, content.decode())
    except (OSError, UnicodeDecodeError, InvalidSchemaError) as error:
        raise unusable(schema, error) from error


def unusable(schema: SchemaName, reason: object) -> HardFailureError:
    """Returns the error of a schema that cannot be used."""
    return HardFailureError(f"the schema {schema} cannot be used: {reason}")
