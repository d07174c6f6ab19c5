"""The rows of the field table, the lookup of a file's keys among them, and suggestions for unknown keys."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from routes.config.secrets import is_secret_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from routes.config.values import ValueKind
    from routes.targets import System

__all__ = ["Field", "Match", "Table"]

_NEAR = 0.75


@dataclass(frozen=True, slots=True)
class Field:
    """A row of the table: one key of the configuration with all that is known about it."""

    key: str
    """Key as documented; a segment in capitals (`routes.NAME.in.include`) is chosen by the user, a last `*` is
    anything."""
    kind: ValueKind
    doc: str
    """Description in one line."""
    default: str | None = None
    """Default as a user would write it; None: not set."""
    default_note: str = ""
    """The behaviour without the key, if `default` does not say it."""
    example: str = ""
    aliases: tuple[str, ...] = ()
    """Other spellings of the key."""
    required: bool = False
    systems: tuple[System, ...] = ()
    """The types of sources and sinks that the key is for; empty: all."""
    template: bool = False
    """Whether the value may hold `${msg.header.NAME}`."""
    secret: bool = False
    """Whether the value is masked wherever it is shown; a key whose name says so need not be marked."""

    @property
    def masked(self) -> bool:
        """True if the value is never shown."""
        return self.secret or is_secret_key(self.key)

    @property
    def section(self) -> str:
        """The first segment of the key."""
        return self.key.partition(".")[0]

    @property
    def open(self) -> bool:
        """True if the row stands for any key that begins like it."""
        return self.key.endswith("*")


class Match(NamedTuple):
    """The row that a key belongs to."""

    field: Field
    name: str
    """The user's text for NAME; for a row that ends in `*`, the text in its place; else empty."""


class Table:
    """All rows, in the order of the documentation."""

    def __init__(self, fields: Iterable[Field]) -> None:
        self.fields = tuple(fields)

    def find(self, key: str) -> Match | None:
        """Returns the row of a key. Rows that end in `*` come last, the longest first."""
        for pattern, field in self._patterns:
            if match := pattern.fullmatch(key):
                return Match(field, match.groupdict().get("name") or "")
        return None

    def nearest(self, key: str) -> str:
        """Returns the known key most like an unknown one, with the user's own names in it; empty if none is close."""
        segments = key.split(".")
        best, best_ratio = "", _NEAR
        for field in self.fields:
            for spelling in (field.key, *field.aliases):
                candidate = _with_names_of(spelling, segments)
                ratio = SequenceMatcher(None, key, candidate).ratio()
                if ratio > best_ratio and not field.open:
                    best, best_ratio = candidate, ratio
        return best

    def without_dots(self, key: str) -> str:
        """Returns the key with dashes for the dots in its NAME, if that makes it a known one; else empty."""
        for field in self.fields:
            for spelling in (field.key, *field.aliases):
                before, named, after = spelling.partition(".NAME.")
                name = key.removeprefix(f"{before}.").removesuffix(f".{after}")
                if named and f"{before}.{name}.{after}" == key and "." in name:
                    return f"{before}.{name.replace('.', '-')}.{after}"
        return ""

    def in_section(self, section: str) -> tuple[Field, ...]:
        """Returns the rows of a section, in order."""
        return tuple(field for field in self.fields if field.section == section)

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Field]]:
        rows = sorted(self.fields, key=lambda field: (field.open, -len(field.key)))
        return [(_pattern(spelling), field) for field in rows for spelling in (field.key, *field.aliases)]


def _pattern(spelling: str) -> re.Pattern[str]:
    parts = [r"(?P<name>[^.\s]+)" if part.isupper() else re.escape(part) for part in spelling.split(".")]
    return re.compile(r"\.".join(parts).replace(r"\*", r"(?P<name>\S+)"))


def _with_names_of(spelling: str, segments: list[str]) -> str:
    parts = spelling.split(".")
    return ".".join(
        segments[index] if part.isupper() and index < len(segments) else part for index, part in enumerate(parts)
    )
