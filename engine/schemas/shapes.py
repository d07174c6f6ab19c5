"""Shapes of bodies: fields, elements and sorts of values at each place, as a schema has them.

Shapes are made while a path is followed, since types may contain themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.schemas.avro_documents import AvroDocuments
from engine.schemas.avro_resolution import AvroTypes
from engine.schemas.protobuf_documents import ProtobufDocuments
from engine.schemas.validator import json_schema_root
from routes.predicate.doubts import ValueSort
from routes.schema_names import SchemaKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.schemas.schema_text import RegisteredSchema
    from routes.schema_names import SchemaName

__all__ = ["Shape", "shape_of"]

_AVRO_SORTS = {
    "boolean": {ValueSort.TRUTH},
    "null": set[ValueSort](),
    "int": {ValueSort.NUMBER},
    "long": {ValueSort.NUMBER},
    "float": {ValueSort.NUMBER},
    "double": {ValueSort.NUMBER},
    "string": {ValueSort.TEXT},
    "enum": {ValueSort.TEXT},
    "record": {ValueSort.OBJECT},
    "error": {ValueSort.OBJECT},
    "map": {ValueSort.OBJECT},
    "array": {ValueSort.ARRAY},
}
"""Sorts by type; `bytes` and `fixed` are texts or, as decimals, numbers."""
_JSON_SORTS = {
    "boolean": {ValueSort.TRUTH},
    "null": set[ValueSort](),
    "integer": {ValueSort.NUMBER},
    "number": {ValueSort.NUMBER},
    "string": {ValueSort.TEXT},
    "object": {ValueSort.OBJECT},
    "array": {ValueSort.ARRAY},
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Values at one place of bodies, without arguments values of any sort."""

    sorts: frozenset[ValueSort] | None = None
    """Sorts of the values that are not null; None: any."""
    fields: Mapping[str, Callable[[], Shape]] = field(default_factory=dict)
    """Functions that make the shapes of the fields of objects, by name."""
    is_closed: bool = False
    """True if objects have these fields alone."""
    others: Callable[[], Shape] | None = None
    """Function that makes the shape of the other fields; None: any values."""
    items: Callable[[], Shape] | None = None
    """Function that makes the shape of the elements of arrays; None: any values."""

    def field(self, name: str) -> Shape:
        """Returns the shape of a field, which may be one that is not known."""
        made = self.fields.get(name, self.others)
        return Shape() if made is None else made()

    def element(self) -> Shape:
        """Returns the shape of the elements of arrays."""
        return Shape() if self.items is None else self.items()


def shape_of(name: SchemaName, schema: RegisteredSchema) -> Shape:
    """Returns the shape of bodies that fit a schema; raises InvalidSchemaError or RecursionError."""
    match name.kind:
        case SchemaKind.AVRO:
            AvroDocuments(schema)  # Refuses what is not a schema.
            types = AvroTypes(schema)
            return _avro(types, [types.root])
        case SchemaKind.PROTOBUF:
            documents = ProtobufDocuments(schema)
            return _message(documents.message(name.message), documents.maps)
    return _JsonShapes(schema.text).root


def _avro(types: AvroTypes, schemas: Iterable[Any]) -> Shape:
    """The shape of values of one of these types."""
    waiting, kinds = list(schemas), []
    while waiting:
        each = types.resolved(waiting.pop())
        if isinstance(each, list):
            waiting += each
        elif isinstance(each["type"], str):
            kinds.append(each)
        else:
            waiting.append(each["type"])
    fields: dict[str, list[Any]] = {}
    for each in kinds:
        for declared in each["fields"] if each["type"] in ("record", "error") else ():
            # Values are read by the schema that wrote them, in which a field may have the name of an alias.
            aliases = declared.get("aliases")
            for name in (declared["name"], *(map(str, aliases) if isinstance(aliases, list) else ())):
                fields.setdefault(name, []).append(declared["type"])
    values = [each["values"] for each in kinds if each["type"] == "map"]
    items = [each["items"] for each in kinds if each["type"] == "array"]
    sorts = [_AVRO_SORTS.get(each["type"]) for each in kinds]
    return Shape(
        None if None in sorts else frozenset().union(*filter(None, sorts)),
        {name: partial(_avro, types, each) for name, each in fields.items()},
        is_closed=bool(fields) and not values,
        others=partial(_avro, types, values) if values else None,
        items=partial(_avro, types, items) if items else None,
    )


def _message(message: Any, maps: set[str]) -> Shape:
    fields = {each.name: partial(_field, each, maps) for each in message.fields}
    return Shape(frozenset({ValueSort.OBJECT}), fields, is_closed=True)


def _field(declared: Any, maps: set[str]) -> Shape:
    one = partial(_one, declared, maps)
    if declared.message_type is not None and declared.message_type.full_name in maps:
        value = declared.message_type.fields_by_number[2]
        return Shape(frozenset({ValueSort.OBJECT}), others=partial(_one, value, maps))
    return Shape(frozenset({ValueSort.ARRAY}), items=one) if declared.is_repeated else one()


def _one(declared: Any, maps: set[str]) -> Shape:
    """The shape of one value of a field."""
    if declared.message_type is not None:
        return _message(declared.message_type, maps)
    if declared.enum_type is not None:
        return Shape()  # Its name, or a number that has none.
    match declared.type:
        case declared.TYPE_STRING | declared.TYPE_BYTES:
            sort = ValueSort.TEXT
        case declared.TYPE_BOOL:
            sort = ValueSort.TRUTH
        case _:
            sort = ValueSort.NUMBER
    return Shape(frozenset({sort}))


class _JsonPart(NamedTuple):
    """Part of a JSON Schema, with what resolves references in it."""

    schema: Any
    resolver: Any


class _JsonShapes:
    """Shapes of a JSON Schema.

    Objects are closed by `additionalProperties: false` where no other schema beside it may bring further fields.
    """

    def __init__(self, text: str) -> None:
        """Reads the schema; raises InvalidSchemaError."""
        self._specification, schema, resolver = json_schema_root(text)
        self.root = self._shape([_JsonPart(schema, resolver)], [])

    def _shape(self, certain: list[_JsonPart], possible: list[_JsonPart]) -> Shape:
        """Returns the shape of values that all certain schemas hold for, and that possible ones may hold for."""
        certain, possible = self._spread(certain, possible)
        declared = [(part, _members(part.schema, "properties")) for part in certain]
        maybe = [(part, _members(part.schema, "properties")) for part in possible]
        names = dict.fromkeys(name for _, properties in (*declared, *maybe) for name in properties)
        sorts = [found for part in certain if (found := _json_sorts(part.schema)) is not None]
        return Shape(
            frozenset.intersection(*sorts) if sorts else None,
            {name: partial(self._shape, _under(name, declared), _under(name, maybe)) for name in names},
            is_closed=not possible and any(_is_closed(part.schema) for part in certain),
            items=partial(self._shape, _items(certain), _items(possible)),
        )

    def _spread(self, certain: list[_JsonPart], possible: list[_JsonPart]) -> tuple[list[_JsonPart], list[_JsonPart]]:
        """Returns the schemas with those that they name or contain for the same value."""
        reached: dict[tuple[int, bool], _JsonPart] = {}
        waiting = [*((part, True) for part in certain), *((part, False) for part in possible)]
        while waiting:
            (schema, resolver), is_certain = waiting.pop()
            if not isinstance(schema, dict) or (id(schema), is_certain) in reached:
                continue
            resolver, referred = self._resolved(schema, resolver)
            reached[id(schema), is_certain] = _JsonPart({} if "$ref" in schema else schema, resolver)
            if "$ref" in schema:
                waiting.append((referred, is_certain) if referred else (_JsonPart({}, resolver), False))
                # Older drafts ignore what stands beside a reference; its names are known all the same.
                is_certain = False
                if properties := _members(schema, "properties"):
                    reached[id(properties), False] = _JsonPart({"properties": properties}, resolver)
            for each, holds in _beside(schema):
                waiting.append((_JsonPart(each, resolver), is_certain and holds))
        parts = [part for (_, is_certain), part in reached.items() if is_certain]
        return parts, [part for (_, is_certain), part in reached.items() if not is_certain]

    def _resolved(self, schema: dict[str, Any], resolver: Any) -> tuple[Any, _JsonPart | None]:
        """Returns the resolver within a schema, and the schema that it refers to; None for none that can be found."""
        from referencing.exceptions import Unresolvable

        try:
            resolver = resolver.in_subresource(self._specification.create_resource(schema))
            resolved = resolver.lookup(schema["$ref"]) if "$ref" in schema else None
        except (Unresolvable, AttributeError, TypeError, ValueError):
            # Only the parts to which keywords lead have been checked; references lead to others, too.
            return resolver, None
        return resolver, resolved and _JsonPart(resolved.contents, resolved.resolver)


def _beside(schema: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yields the schemas in a schema that are about the same value, each with whether it holds for all values."""
    for each in (*_listed(schema.get("allOf")), *_listed(schema.get("extends"))):
        yield each, True
    for key in ("anyOf", "oneOf"):
        branches = [each for each in _listed(schema.get(key)) if each != {"type": "null"}]
        yield from ((each, len(branches) == 1) for each in branches)
    for key in ("if", "then", "else", "$dynamicRef", "$recursiveRef"):
        if key in schema:
            yield (schema[key] if isinstance(schema[key], dict) else {}), False
    for key in ("dependentSchemas", "dependencies"):
        yield from ((each, False) for each in _members(schema, key).values())


def _under(name: str, parts: list[tuple[_JsonPart, dict[str, Any]]]) -> list[_JsonPart]:
    return [_JsonPart(properties[name], part.resolver) for part, properties in parts if name in properties]


def _items(parts: list[_JsonPart]) -> list[_JsonPart]:
    """Returns the schemas of all elements of arrays; those of elements at a place are left out."""
    return [
        _JsonPart(schema["items"], each) for schema, each in parts if "items" in schema and "prefixItems" not in schema
    ]


def _is_closed(schema: dict[str, Any]) -> bool:
    return schema.get("additionalProperties") is False and not schema.get("patternProperties")


def _json_sorts(schema: dict[str, Any]) -> frozenset[ValueSort] | None:
    """Returns the sorts of the values of a schema; None for any."""
    kinds = schema.get("type", "any")
    sorts = [_JSON_SORTS.get(each) if isinstance(each, str) else None for each in _listed(kinds)]
    return None if None in sorts else frozenset().union(*filter(None, sorts))


def _members(schema: dict[str, Any], key: str) -> dict[str, Any]:
    members = schema.get(key)
    return members if isinstance(members, dict) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
