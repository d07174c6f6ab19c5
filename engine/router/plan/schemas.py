"""Schemas in the plan: those of bare values, those that bodies have to fit, and those by which bodies are written.

The JVM finds the schemas when the plan is made, and gives them to its functions; the plan has only their name.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from engine.schemas.documents import documents_of
from engine.schemas.jvm_registry import called, patient_registry
from engine.schemas.schema_json import schema_json, schemas_json
from engine.schemas.section import SchemaConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from engine.schemas.documents import Documents
    from routes.model import Config, Publication
    from routes.schema_names import SchemaName, SourceSchema

__all__ = ["schema_mark", "use_schemas"]


def use_schemas(config: Config, spark: SparkSession) -> None:
    """Finds the schemas of all sources and routes, in files and in the registry, for the functions of a plan.

    The functions over bodies that are made from now on read bodies with a schema.

    Raises:
        HardFailureError: a file cannot be used, or the registry has no such schema.
        SetupError: the files of `schema.registry.tls.*` cannot be used.
        UnreachableError: the registry is away, and there is no copy of the schema.
    """
    registry = patient_registry(config.section(SchemaConfig), spark)
    _use_documents(documents_of(config), config.source_schemas, config.path.parent, registry, spark)
    named = _named(config.publications)
    if not any(named.values()):
        return
    base = config.path.parent
    read = {name: schema_json(schema, base) for name, schema in named["read"].items()}
    written = {each.name: _to_write(each, base) for each in config.publications if each.route.written_schema}
    text = json.dumps({"read": read, "written": written})
    jvm: Any = spark._jvm
    called(lambda: jvm.jmsbridge.predicate.BodySchemas.put(_mark(named), text, registry))


def _use_documents(
    documents: Documents | None, sources: Sequence[SourceSchema], base: Path, registry: Any, spark: SparkSession
) -> None:
    """Makes functions over bodies read bare values of sources, and, if there is a registry, its wire format."""
    jvm: Any = spark._jvm
    serdes = jvm.jmsbridge.serdes
    if documents is None:
        serdes.Documents.use(None)
        return
    # Python says in its own words what is wrong with a file.
    for source in sources:
        documents.check_file(source)
    given = schemas_json(sources, base)
    called(lambda: serdes.Documents.use(serdes.SourceSchemas.documents(registry, given)))


def schema_mark(publications: Iterable[Publication]) -> str:
    """The name under which the JVM has the schemas of these publications."""
    return _mark(_named(publications))


def _named(publications: Iterable[Publication]) -> dict[str, dict[str, SchemaName]]:
    """Schemas that are read, by route, and those that are written, by publication."""
    read, written = {}, {}
    for each in publications:
        if each.route.schema:
            read[each.route.name] = each.route.schema
        if each.route.written_schema:
            written[each.name] = each.route.written_schema
    return {"read": read, "written": written}


def _mark(named: Mapping[str, Mapping[str, SchemaName]]) -> str:
    """The name under which the JVM has these schemas."""
    text = json.dumps({use: {name: str(schema) for name, schema in each.items()} for use, each in named.items()})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _to_write(publication: Publication, base: Path) -> dict[str, Any]:
    """The schema of a publication that is written, with what its subject is made of."""
    route, target = publication.route, publication.target
    assert route.written_schema is not None
    given = schema_json(route.written_schema, base)
    given["xml"] = route.steps is not None and route.steps.reads_xml
    if route.written_schema.file is not None:
        given |= {"subjects": route.subjects, "topic": target.topic if not target.sink else str(target.address)}
    return given
