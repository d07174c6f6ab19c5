"""Schemas and registry of a configuration as `jmsbridge.serdes` (`jvm/spark`) reads them."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from engine.errors import HardFailureError
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from engine.schemas.section import SchemaConfig
    from routes.schema_names import SchemaName, SourceSchema

__all__ = ["registry_settings", "schema_json", "schemas_json"]


def registry_settings(config: SchemaConfig) -> list[Any]:
    """The arguments of `RegistrySettings.of` behind the addresses: login, files, milliseconds, folder of copies."""
    login = config.username, config.password, config.token
    files = [None if each is None else str(each) for each in (config.ca, config.certificate, config.key)]
    times = [round(each * 1000) for each in (config.timeout_seconds, config.outage_timeout_seconds)]
    copies = None if config.copies_of_registry is None else str(config.copies_of_registry)
    return [*login, *files, *times, copies]


def schemas_json(schemas: Iterable[SourceSchema], base: Path) -> str:
    """The schemas of sources as `jmsbridge.serdes.SourceSchemas` reads them; paths of files begin at `base`.

    Raises HardFailureError if a file cannot be read.
    """
    return json.dumps(
        {each.source: {**schema_json(each.schema, base), "takesText": each.takes_text} for each in schemas}
    )


def schema_json(schema: SchemaName, base: Path) -> dict[str, Any]:
    """The schema as `jmsbridge.serdes.NamedSchema` reads it."""
    given = {"type": schema.kind.registry_type, "name": str(schema), "message": schema.message}
    if schema.file is None:
        return {**given, "subject": schema.subject, "version": schema.version}
    try:
        content = (base / schema.file).read_bytes()
        text = base64.b64encode(content).decode() if schema.kind is SchemaKind.PROTOBUF else content.decode()
    except (OSError, UnicodeDecodeError) as error:
        msg = f"the schema {schema} cannot be read: {error}"
        raise HardFailureError(msg) from error
    return {**given, "text": text}
