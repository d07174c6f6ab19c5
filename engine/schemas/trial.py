"""Trial of a changed schema: messages that it would break, before it is registered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.explain import explain
from engine.schemas.documents import documents_of
from engine.schemas.named_schemas import schema_of_file
from engine.schemas.registry import RegistryClient
from engine.schemas.route_schemas import route_schemas
from engine.schemas.section import SchemaConfig
from routes.schema_names import SchemaKind, SchemaName

if TYPE_CHECKING:
    from engine.message import Record
    from routes.model import Config

__all__ = ["Broken", "SchemaTrial", "Verdict"]

_MARK = b"\0"
_HEAD_BYTES = 5


@dataclass(frozen=True, slots=True)
class Broken:
    """Way in which a message would break."""

    route: str
    """Route that could not take the message any more; empty: readers of the subject could not read it."""
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a trial with one message."""

    concerns: bool
    """True if the message has to do with the subject."""
    broken: tuple[Broken, ...] = ()


class SchemaTrial:
    """Trial of a schema in a file in the place of the latest version of a subject."""

    def __init__(self, config: Config, subject: str, file: Path, message: str = "") -> None:
        """Reads the file, and asks the registry for the subject.

        Raises:
            UsageError: there is no registry, or the file has another ending than those of schemas.
            HardFailureError: the schema cannot be used, or is of another format than the subject.
            UnreachableError: the registry does not answer.
        """
        section = config.section(SchemaConfig)
        kinds = [kind for kind in SchemaKind if file.name.endswith(kind.suffix)]
        if section.urls is None:
            raise UsageError("there is no schema registry to ask for the subject: set schema.registry.url")
        if not kinds:
            endings = ", ".join(f"{kind.suffix} for {kind}" for kind in SchemaKind)
            msg = f"'{file}' does not end as a schema does: {endings}"
            raise UsageError(msg)
        self._config = config
        self._subject = subject
        self._read = SchemaName(kinds[0], subject=subject, message=message)
        self._schema = schema_of_file(SchemaName(kinds[0], file.absolute(), message=message), Path())
        self._documents = documents_of(config)
        self._present = route_schemas(config)
        self._changed = self._present.with_tried(subject, self._schema)
        registry = RegistryClient(section)
        self._ids = frozenset(registry.version(subject, number).id for number in registry.versions(subject))
        self._routes = frozenset(
            route.name
            for route in config.routes
            if any(
                each and each.subject == subject and not each.version for each in (route.schema, route.written_schema)
            )
        )

    def verdict(self, record: Record) -> Verdict:
        """Returns the effect of the schema on one record of the journal; never fails for what the record holds."""
        broken: list[Broken] = []
        body = record.value or b""
        concerns = body.startswith(_MARK) and int.from_bytes(body[1:_HEAD_BYTES], signed=True) in self._ids
        if concerns and self._present.fault(self._read, body) is None:
            reason = self._changed.fault(self._read, body)
            broken += [Broken("", reason)] if reason else []
        if not self._routes:
            return Verdict(concerns, tuple(broken))
        changed = explain(record, self._config, documents=self._documents, schemas=self._changed)
        for each in changed.publications:
            if each.route is None or each.route.name not in self._routes:
                continue
            concerns = True
            broken += [Broken(each.route.name, failure.detail) for failure in each.failures[:1]]
        if any(each.route for each in broken):
            present = explain(record, self._config, documents=self._documents, schemas=self._present)
            failed = {each.route.name for each in present.publications if each.route and each.failures}
            broken = [each for each in broken if each.route not in failed]
        return Verdict(concerns, tuple(dict.fromkeys(broken)))
