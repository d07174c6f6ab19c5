"""Resolution of Avro schemas: whether values of one schema can be read by another, by the rules of Avro 1.12."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.schemas.value_source import InvalidSchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.schemas.schema_text import RegisteredSchema

__all__ = ["AvroTypes", "avro_difference"]

_PROMOTED = {
    "int": {"int", "long", "float", "double"},
    "long": {"long", "float", "double"},
    "float": {"float", "double"},
    "string": {"string", "bytes"},
    "bytes": {"bytes", "string"},
}
"""Types that a reader can have for a type of the writer, beside that type itself."""
_NAMED = ("record", "error", "enum", "fixed")


def avro_difference(writer: RegisteredSchema, reader: RegisteredSchema) -> str:
    """Returns the first reason why values of one schema cannot be read by another, with its place; empty: they can.

    Raises InvalidSchemaError for a text that is not an Avro schema.
    """
    return _Resolution(AvroTypes(writer), AvroTypes(reader)).difference()


class AvroTypes:
    """A schema with the types that it names."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """Reads the schema; raises InvalidSchemaError for a text that is not an Avro schema."""
        self._named: dict[str, Any] = {}
        self.root = self._read(schema)

    def _read(self, schema: RegisteredSchema) -> Any:
        for each in schema.references:
            self._read(each.schema)
        try:
            return self._defined(json.loads(schema.text), "")
        except ValueError as error:
            msg = f"the text is not an Avro schema: {error}"
            raise InvalidSchemaError(msg) from error

    def _defined(self, schema: Any, namespace: str) -> Any:
        """The schema with full names, whose named types are known from then on."""
        if isinstance(schema, list):
            return [self._defined(each, namespace) for each in schema]
        if isinstance(schema, str):
            return schema if "." in schema or f"{namespace}.{schema}" not in self._named else f"{namespace}.{schema}"
        if not isinstance(schema, dict):
            msg = f"it has the type {json.dumps(schema)[:100]}, which Avro does not have"
            raise InvalidSchemaError(msg)
        kind = schema.get("type")
        if kind in _NAMED:
            return self._defined_by_name(schema, namespace)
        parts = {key: self._defined(schema[key], namespace) for key in ("items", "values") if key in schema}
        if not parts and not isinstance(kind, str):
            return self._defined(kind, namespace)
        return {**schema, **parts}

    def _defined_by_name(self, schema: dict[str, Any], namespace: str) -> str:
        given, own = str(schema.get("name", "")), schema.get("namespace", namespace)
        name = given if "." in given or not own else f"{own}.{given}"
        made = self._named[name] = {**schema, "name": name}
        if "fields" in schema:
            inner = name.rpartition(".")[0]
            made["fields"] = [{**each, "type": self._defined(each.get("type"), inner)} for each in schema["fields"]]
        return name

    def resolved(self, schema: Any) -> Any:
        """Returns the definition of a type; a list for a union."""
        if isinstance(schema, str):
            return self._named.get(schema, {"type": schema})
        return schema


class _Resolution:
    def __init__(self, writer: AvroTypes, reader: AvroTypes) -> None:
        self._writer, self._reader = writer, reader
        self._seen: set[tuple[str, str]] = set()

    def difference(self) -> str:
        return self._compare(self._writer.root, self._reader.root, "")

    def _compare(self, writer: Any, reader: Any, place: str) -> str:
        written, read = self._writer.resolved(writer), self._reader.resolved(reader)
        if isinstance(written, list):
            return next(filter(None, (self._compare(branch, reader, place) for branch in written)), "")
        if isinstance(read, list):
            reasons = [self._compare(writer, branch, place) for branch in read]
            return "" if not all(reasons) else f"no branch of the union reads {_kind(written)}{_at(place)}"
        kind, wanted = _kind(written), _kind(read)
        if kind != wanted and wanted not in _PROMOTED.get(kind, ()):
            return f"{kind} cannot be read as {wanted}{_at(place)}"
        if kind in _NAMED and kind == wanted:
            return self._compare_named(written, read, place)
        parts = {"array": ("items", "[]"), "map": ("values", "{}")}.get(kind)
        return "" if parts is None else self._compare(written[parts[0]], read[parts[0]], place + parts[1])

    def _compare_named(self, written: Any, read: Any, place: str) -> str:
        names = written["name"], read["name"]
        if names in self._seen:
            return ""
        self._seen.add(names)
        if _short(names[0]) != _short(names[1]) and names[0] not in _aliases(read):
            return f"the {written['type']} {names[0]} is not {names[1]}{_at(place)}"
        match written["type"]:
            case "fixed":
                sizes = written.get("size"), read.get("size")
                return "" if sizes[0] == sizes[1] else f"{sizes[0]} bytes are not {sizes[1]}{_at(place)}"
            case "enum":
                missing = [each for each in written["symbols"] if each not in read["symbols"]]
                known = not missing or "default" in read
                return "" if known else f"the enum lacks the symbols {', '.join(missing)}{_at(place)}"
        fields = {each["name"]: each for each in written["fields"]}
        for field in read["fields"]:
            inner = f"{place}.{field['name']}"
            source = next((fields[name] for name in (field["name"], *_listed(field)) if name in fields), None)
            if source is None and "default" not in field:
                return f"a field without a default is missing{_at(inner)}"
            if source is not None and (found := self._compare(source["type"], field["type"], inner)):
                return found
        return ""


def _kind(schema: Any) -> str:
    return "union" if isinstance(schema, list) else str(schema["type"])


def _at(place: str) -> str:
    return f" at {place.removeprefix('.')}" if place else ""


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _listed(field: Any) -> Sequence[str]:
    return [str(each) for each in field.get("aliases", ())]


def _aliases(schema: Any) -> set[str]:
    namespace = schema["name"].rpartition(".")[0]
    return {each if "." in each or not namespace else f"{namespace}.{each}" for each in _listed(schema)}
