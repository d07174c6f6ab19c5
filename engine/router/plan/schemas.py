"""Schemas of routes in the plan: what bodies that come in have to fit.

The JVM finds the schemas when the plan is made, and gives them to its functions; the plan has only their name.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.errors import HardFailureError
from engine.schemas.jvm_registry import called
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from engine.router.plan.route_settings import RouteSettings
    from engine.router.plan.row import PlanRow
    from routes.model import Config
    from routes.schema_names import SchemaName

__all__ = ["find_schemas", "schema_fault"]


def find_schemas(config: Config, registry: Any, spark: SparkSession) -> None:
    """Finds the schemas of all routes, in files and in the registry, for the functions of a plan.

    Raises:
        HardFailureError: a file cannot be used, or the registry has no such schema.
        UnreachableError: the registry is away, and there is no copy of the schema.
    """
    named = {route.name: route.schema for route in config.routes if route.schema}
    if not named:
        return
    given = {name: _given(schema, config.path.parent) for name, schema in named.items()}
    jvm: Any = spark._jvm
    called(lambda: jvm.jmsbridge.predicate.BodySchemas.put(_name(named), json.dumps(given), registry))


def schema_fault(row: PlanRow, settings: RouteSettings) -> Column:
    """The reason why a message's body does not fit the schema of its route; NULL if it does, or if there is none."""
    named = {route.name: route.schema for route in settings.routes if route.schema}
    fault = row.header_view.functions.call(f"schema-fault:{_name(named)}", settings.schemas(row), row.value)
    return F.when(settings.schemas(row).isNotNull(), fault)


def _name(named: Mapping[str, SchemaName]) -> str:
    """The name under which the JVM has the schemas of these routes."""
    text = json.dumps({name: str(schema) for name, schema in named.items()})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _given(schema: SchemaName, base: Path) -> dict[str, Any]:
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
