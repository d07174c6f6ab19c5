"""Check of the files that routes and sources name as schemas, for which a start has no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import HardFailureError
from engine.schemas.named_schemas import schema_of_file, unusable
from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from pathlib import Path

    from engine.schemas.shapes import Shape
    from routes.keys.settings import Settings
    from routes.schema_names import SchemaName

__all__ = ["schema_files", "shape_of_file"]

_KEYS = {"routes": ("routes.NAME.in.schema", "routes.NAME.out.schema"), "source": ("source.NAME.schema",)}


def schema_files(settings: Settings) -> None:
    """Refuses files that cannot be used as schemas of their kind, or lack the message."""
    for section, keys in _KEYS.items():
        for name in settings.names(section):
            for key in keys:
                schema = settings.get(key, name)
                # A file that does not exist is refused by the key itself.
                if schema is None or schema.file is None or not (settings.base / schema.file).is_file():
                    continue
                try:
                    shape_of_file(schema, settings.base)
                except HardFailureError as error:
                    settings.fault(key, name, str(error), "correct the file, or name another one")


def shape_of_file(schema: SchemaName, base: Path) -> Shape:
    """Returns the shape of bodies that fit the schema of a file; paths begin at `base`.

    Raises HardFailureError if the file cannot be used.
    """
    from engine.schemas.shapes import shape_of

    try:
        return shape_of(schema, schema_of_file(schema, base))
    except (InvalidSchemaError, RecursionError) as error:
        raise unusable(schema, error) from error
