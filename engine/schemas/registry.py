"""Client of a registry with the HTTP interface of Confluent's Schema Registry, for commands and the status page.

What the registry has answered is kept, in memory and in a folder: an id never stands for another schema. The router
asks by a client of its own (`jmsbridge.serdes.HttpRegistry`), which waits while the registry is away.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from engine.errors import HardFailureError, UnreachableError
from engine.printable import printable, shortened
from engine.schemas.connection import CONNECTION_ERRORS, ask
from engine.schemas.copies import SchemaCopies
from engine.schemas.schema_text import RegisteredSchema, SchemaReference, SubjectVersion
from routes.predicate.bodies import UnreadableBodyError

if TYPE_CHECKING:
    from typing import TypeAlias

    from engine.schemas.section import SchemaConfig

    _Within: TypeAlias = tuple[tuple[str, int], ...]

__all__ = ["RegistryClient"]

_Entry = TypeVar("_Entry")
_AVRO = "AVRO"
_SERIALIZED = {"PROTOBUF": "?format=serialized"}
"""Forms in which the schemas of a format are asked for: descriptors need no compiler."""
_MAY_PASS = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = 300
"""The first status that is not an answer to the question."""
_NOT_FOUND = 404
_HINTS = {
    401: "; check schema.registry.username and schema.registry.password, schema.registry.token, or "
    "schema.registry.oauthbearer.*",
    404: "; check the subject and the version, or register the schema",
}
_HINTS[403] = _HINTS[401]
_ANY_PATH = f"/schemas/ids/{(1 << 31) - 1}"
"""A question that any registry answers, if only with 404."""
_FAULT_SECONDS = 60.0
"""Time for which an id without a schema is not asked for again."""
_MOST_KEPT = 10_000
_MOST_WITHIN = 100
"""Most schemas that refer to each other in turn."""
_LONGEST_MESSAGE = 300


class RegistryClient:
    """Schemas of the registry of a configuration, which has an address."""

    def __init__(self, config: SchemaConfig) -> None:
        """Creates the client; asks nothing."""
        self._config = config
        self._copies = SchemaCopies(config.copies_of_registry)
        self._schemas: dict[int, RegisteredSchema] = {}
        self._faults: dict[int, tuple[str, float]] = {}
        self._first = 0
        """Index of the address that has answered last."""

    def schema(self, number: int) -> RegisteredSchema:
        """Returns the schema of an id.

        Raises:
            UnreadableBodyError: the registry has none, while it answers other questions.
            UnreachableError: the registry does not answer.
            HardFailureError: the registry refuses whatever it is asked.
            SetupError: the files of `schema.registry.tls.*` cannot be used.
        """
        reason, until = self._faults.get(number, ("", 0.0))
        if time.monotonic() < until:
            raise UnreadableBodyError(reason)
        schema = self._schemas.get(number) or self._copies.schema(number)
        if schema is None:
            try:
                schema = self._asked(number)
            except UnreadableBodyError as error:
                _keep(self._faults, number, (str(error), time.monotonic() + _FAULT_SECONDS))
                raise
            self._copies.keep(number, schema)
        _keep(self._schemas, number, schema)
        return schema

    def version(self, subject: str, number: int | None = None) -> SubjectVersion:
        """Returns a version of a subject, without a number the latest; while the registry is away, that of the copies.

        Raises:
            UnreachableError: the registry does not answer, and there is no copy.
            HardFailureError: the registry refuses the request, or the version refers to itself.
            SetupError: the files of `schema.registry.tls.*` cannot be used.
        """
        return self._version(subject, number, ())

    def versions(self, subject: str) -> list[int]:
        """Returns the numbers of the versions of a subject; raises what `version` does."""
        path = _versions(subject)
        found = self._checked(path)
        if not isinstance(found, list):
            msg = f"the schema registry answers {path} without a list; check schema.registry.url"
            raise HardFailureError(msg)
        return [int(each) for each in found]

    def _asked(self, number: int) -> RegisteredSchema:
        path = f"/schemas/ids/{number}"
        try:
            status, body = self._ask(path)
            if status == _NOT_FOUND:
                msg = f"the schema registry knows no schema with the id {number}"
                raise UnreadableBodyError(msg)
            if suffix := _SERIALIZED.get(_format(body)):
                body = self._checked(path := path + suffix)
            elif status >= _REFUSED:
                raise HardFailureError(_refusal(path, status, body))
            return self._schema(path, body, ())
        except (HardFailureError, UnreachableError) as error:
            if not self._works():
                raise
            msg = f"the schema registry does not give the schema with the id {number}: {error}"
            raise UnreadableBodyError(msg) from error

    def _works(self) -> bool:
        """True if the registry answers another question."""
        try:
            status, _ = self._ask(_ANY_PATH)
        except (HardFailureError, UnreachableError):
            return False
        return status < _REFUSED or status == _NOT_FOUND

    def _version(self, subject: str, number: int | None, within: _Within) -> SubjectVersion:
        copy = self._copies.version(subject, number)
        if copy is not None and number is not None:
            return copy
        path = f"{_versions(subject)}/{'latest' if number is None else number}"
        try:
            body = self._checked(path)
            if suffix := _SERIALIZED.get(_format(body)):
                body = self._checked(path := path + suffix)
            schema = self._schema(path, body, within)
        except UnreachableError:
            if copy is None:
                raise
            return copy
        version = SubjectVersion(_number(path, body, "version"), _number(path, body, "id"), schema)
        self._copies.keep_version(subject, number, version)
        return version

    def _schema(self, path: str, body: Any, within: _Within) -> RegisteredSchema:
        text = body.get("schema") if isinstance(body, dict) else None
        if not isinstance(text, str):
            msg = f"the schema registry answers {path} without a schema; check schema.registry.url"
            raise HardFailureError(msg)
        references = []
        for each in body.get("references") or ():
            place = str(each.get("subject")), _number(path, each, "version")
            if place in within or len(within) == _MOST_WITHIN:
                msg = f"{path} refers to itself, or to schemas more than {_MOST_WITHIN} deep; register it anew"
                raise HardFailureError(msg)
            schema = self._version(*place, (*within, place)).schema
            references.append(SchemaReference(str(each.get("name")), schema))
        return RegisteredSchema(_format(body), text, tuple(references))

    def _checked(self, path: str) -> Any:
        status, body = self._ask(path)
        if status >= _REFUSED:
            raise HardFailureError(_refusal(path, status, body))
        return body

    def _ask(self, path: str) -> tuple[int, Any]:
        """Asks each server until one answers."""
        urls, why = self._config.urls or (), ""
        for place in (*range(self._first, len(urls)), *range(self._first)):
            try:
                status, content = ask(self._config, urls[place], path, self._config.timeout_seconds)
            except CONNECTION_ERRORS as error:
                why = f"{urls[place]}: {error}"
                continue
            try:
                body = json.loads(content)
            except (ValueError, RecursionError):
                body = None
            if status in _MAY_PASS:
                why = f"{urls[place]} answers {status}"
            elif body is None and status < _REFUSED:
                why = f"{urls[place]} answers, but not in JSON: is this a schema registry?"
            else:
                self._first = place
                return status, body
        msg = f"the schema registry is away ({why}); check schema.registry.url, and that it runs"
        raise UnreachableError(msg)


def _keep(kept: dict[int, _Entry], number: int, value: _Entry) -> None:
    """Keeps a value in a bounded memory."""
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[number] = value


def _versions(subject: str) -> str:
    return f"/subjects/{quote(subject.encode(errors='replace'), safe='')}/versions"


def _format(body: Any) -> str:
    return str(body.get("schemaType") or _AVRO) if isinstance(body, dict) else ""


def _number(path: str, body: Any, name: str) -> int:
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(value, int):
        msg = f"the schema registry answers {path} without the number '{name}'; check schema.registry.url"
        raise HardFailureError(msg)
    return value


def _refusal(path: str, status: int, body: Any) -> str:
    told = str(body.get("message") or "") if isinstance(body, dict) else ""
    message = shortened(printable(told), _LONGEST_MESSAGE)
    return f"the schema registry refuses {path}: {status} {message}{_HINTS.get(status, '')}"
