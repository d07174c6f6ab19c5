"""Corrections of a message before its dead letter is replayed. The dead letter itself stays as it is."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from engine.errors import UsageError
from engine.explain.edited_headers import corrected
from engine.message import BODY, BODY_TYPES, BodyType
from routes.properties import SEED_NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.message import Record

__all__ = ["Correction"]

_OWN = "jmsbridge."


@dataclass(frozen=True, slots=True)
class Correction:
    """Changes to the headers, the key and the body of a message; by default there are none."""

    given: Mapping[str, str] = field(default_factory=dict)
    """Texts by the name of a JMS field (`JMSType` or `Type`) or property. A property has no declared type then."""
    removed: tuple[str, ...] = ()
    """Names of JMS fields and properties to remove."""
    key: bytes | None = None
    """Key of the journal record; None leaves it as it is. Records of one key stay in order."""
    body: bytes | None = None
    """Body; None leaves it as it is."""

    def __post_init__(self) -> None:
        """Raises UsageError for a header that the bridge itself writes, or one that is both set and removed."""
        for name in (*self.given, *self.removed):
            if name.startswith(_OWN):
                msg = f"'{name}' is a header of the bridge itself, which cannot be corrected"
                raise UsageError(msg)
            if not name:
                msg = "a correction needs the name of a header"
                raise UsageError(msg)
        if both := sorted(set(self.given) & set(self.removed)):
            msg = f"'{both[0]}' is both set and removed"
            raise UsageError(msg)

    def options(self, body_file: str) -> list[str]:
        """Returns the correction as options of `dlt replay`, quoted for a shell; its body comes from `body_file`."""
        options = [("--set", f"{name}={text}") for name, text in self.given.items()]
        options += [("--unset", name) for name in self.removed]
        options += [] if self.key is None else [("--key", self.key.decode("utf-8", "replace"))]
        options += [] if self.body is None else [("--body-file", body_file)]
        return [f"{name} {shlex.quote(text)}" for name, text in options]

    def apply(self, record: Record) -> Record:
        """Returns the corrected record."""
        given = {SEED_NAMES.get(name, name): text for name, text in self.given.items()}
        removed = tuple(SEED_NAMES.get(name, name) for name in self.removed)
        headers = corrected(record.headers, removed, given)
        record = replace(record, key=record.key if self.key is None else self.key, headers=headers)
        if self.body is None:
            return record
        # The types say that a text was null. Those of the values of a map stay, for the corrected map.
        is_plain = record.header(BODY) in (BodyType.TEXT, BodyType.BYTES)
        kept = tuple(header for header in record.headers if not (is_plain and header[0] == BODY_TYPES))
        return replace(record, value=self.body, headers=kept)
