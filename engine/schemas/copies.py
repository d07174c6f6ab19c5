"""Copies of a registry's schemas in a folder: with them, bodies are read while the registry is away.

The router's JVM reads and writes the same files (`jmsbridge.serdes.SchemaCopies`). An id and a numbered version always
stand for the same schema; the latest version may be another one now. A damaged file counts as absent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import structlog

from engine.private import create_file, make_folder
from engine.schemas.schema_text import RegisteredSchema, SchemaReference, SubjectVersion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["SchemaCopies"]

_Kept = TypeVar("_Kept", RegisteredSchema, SubjectVersion)
_log = structlog.get_logger(__name__)


class SchemaCopies:
    """The copies in a folder, which need not exist yet; without a folder, none are kept."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def schema(self, number: int) -> RegisteredSchema | None:
        """Returns the schema of an id; None if there is no copy."""
        return self._read(lambda found: _schema(found["schemaType"], found), "ids", f"{number}.json")

    def version(self, subject: str, number: int | None) -> SubjectVersion | None:
        """Returns a version of a subject, or without a number the one that was the latest; None without a copy."""
        return self._read(_version, *_of_subject(subject, number))

    def keep(self, number: int, schema: RegisteredSchema) -> None:
        """Keeps the schema of an id."""
        self._write({"schemaType": schema.format, **_content(schema)}, "ids", f"{number}.json")

    def keep_version(self, subject: str, number: int | None, version: SubjectVersion) -> None:
        """Keeps a version of a subject; without a number it is the latest now."""
        content = {"schemaType": version.schema.format, **_content(version.schema)}
        content |= {"id": version.id, "version": version.number}
        self._write(content, *_of_subject(subject, number))

    def _read(self, made: Callable[[Any], _Kept], *place: str) -> _Kept | None:
        if self._folder is None:
            return None
        path = self._folder.joinpath(*place)
        try:
            return made(json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            _log.warning("a copy of a schema cannot be read, and is not used", file=str(path), reason=str(error))
            return None

    def _write(self, content: dict[str, Any], *place: str) -> None:
        if self._folder is None:
            return
        path = self._folder.joinpath(*place)
        draft = path.with_name(f".{uuid4().hex}")
        try:
            make_folder(path.parent)
            with create_file(draft) as file:
                json.dump(content, file)
            draft.replace(path)
        except OSError as error:
            _log.warning("no copy of a schema can be kept", file=str(path), reason=str(error))


def _of_subject(subject: str, number: int | None) -> tuple[str, str, str]:
    """The place of a version: the name of its subject as Java's URLEncoder writes it, and without dots."""
    quoted = quote(subject.encode(errors="replace"), safe="*").replace("~", "%7E").replace(".", "%2E")
    return "subjects", quoted, f"{'latest' if number is None else number}.json"


def _content(schema: RegisteredSchema) -> dict[str, Any]:
    references = [{"name": each.name, "schema": _content(each.schema)} for each in schema.references]
    return {"schema": schema.text, "references": references}


def _version(content: Any) -> SubjectVersion:
    return SubjectVersion(int(content["version"]), int(content["id"]), _schema(content["schemaType"], content))


def _schema(form: Any, content: Any) -> RegisteredSchema:
    text = content["schema"]
    if not isinstance(form, str) or not isinstance(text, str):
        msg = "a schema or its format is not a text"
        raise TypeError(msg)
    references = (SchemaReference(each["name"], _schema(form, each["schema"])) for each in content["references"])
    return RegisteredSchema(form, text, tuple(references))
