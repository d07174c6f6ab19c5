"""The declaration of a key, the rows of the field table, and the lookup of a file's keys among them.

A key is declared once: by `key`, in the frozen dataclass whose field holds its value. The row follows from that.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, NamedTuple

from routes.keys.secrets import Secret, is_secret_key, java_secrets
from routes.keys.values import ValueKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "Field",
    "Key",
    "KeyTable",
    "Match",
    "key",
    "keys_of",
    "made_of",
    "named",
    "named_of",
    "part",
    "parts_of",
    "rows_of",
    "secrets_in",
]

_NEAR = 0.75
_AS_THE_KEY = object()
"""Stands for the default of a key."""


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
    systems: tuple[str, ...] = ()
    """The types of sources and sinks that the key is for; empty: all."""
    template: bool = False
    """True if the value may hold `${msg.header.NAME}`."""
    secret: bool = False
    """True if the value is masked wherever it is shown; a key whose name says so need not be marked."""
    inherited: Callable[[Any, str], Any] | None = None
    """Function from `Settings` and NAME to the value in force if the file does not set the key and there is no
    default."""

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


@dataclass(frozen=True, slots=True)
class Key:
    """A key as the field of a dataclass declares it, without the part of the key before it."""

    name: str
    kind: ValueKind | Callable[[], ValueKind] | None
    """A function where the kind depends on the systems that are registered; None: another field declares the key."""
    doc: str
    row: Mapping[str, Any]
    """Further attributes of `Field`."""
    made: Callable[[Any, Any, str], Any] | None = None
    """Function from the parsed value, `Settings` and NAME to the value of the dataclass's field; None: the parsed
    value."""

    @property
    def masked(self) -> bool:
        """True if the value is never shown."""
        return bool(self.row.get("secret")) or is_secret_key(self.name)

    def field(self, prefix: str, systems: tuple[str, ...] = ()) -> Field:
        """Returns the row of the key behind a prefix."""
        assert self.kind is not None
        kind = self.kind if isinstance(self.kind, ValueKind) else self.kind()
        aliases = tuple(prefix + alias for alias in self.row.get("aliases", ()))
        return Field(prefix + self.name, kind, self.doc, **{**self.row, "systems": systems, "aliases": aliases})


def key(
    name: str,
    kind: ValueKind | Callable[[], ValueKind],
    doc: str,
    *,
    made: Callable[[Any, Any, str], Any] | None = None,
    factory: Callable[[], Any] | None = None,
    value: Any = _AS_THE_KEY,
    **row: Any,
) -> Any:
    """Declares the key of a dataclass's field; `row` has further attributes of `Field`.

    The field of an object that no file made has `value`, or that of `factory`, else the default of the key; without any
    of these it is None, or has to be given if the key is required or `value` is `MISSING`.
    """
    declared = Key(name, kind, doc, row, made)
    default: Any = value
    if value is _AS_THE_KEY and factory is None:
        text = row.get("default")
        default = kind.parse(text) if text is not None and isinstance(kind, ValueKind) else None
        default = made(default, None, "") if made and default is not None else default
        default = MISSING if row.get("required") else default
    extra: dict[str, Any] = {"default_factory": factory} if factory else {"default": default}
    return dataclasses.field(**extra, repr=not declared.masked, metadata={"key": declared})


def made_of(name: str, made: Callable[[Any, Any, str], Any], value: Any = MISSING) -> Any:
    """Declares a field that is made of the key of another field; `made` as in `Key`, `value` as for `key`."""
    return dataclasses.field(default=value, metadata={"key": Key(name, None, "", {}, made)})


def part(kind: type, value: Any = MISSING, prefix: str = "") -> Any:
    """Declares a field that holds another dataclass, whose fields declare their keys behind the same prefix.

    The field of an object that no file made has `value`, or has to be given. A `prefix` stands before the keys of the
    part in addition.
    """
    return dataclasses.field(default=value, metadata={"part": (kind, prefix)})


def named(section: str, kind: type) -> Any:
    """Declares a field that holds a tuple of dataclasses with a `name`, one for each NAME of `<section>.NAME.*`."""
    return dataclasses.field(metadata={"named": (section, kind)})


def keys_of(kind: type) -> Mapping[str, Key]:
    """Returns the keys that the fields of a dataclass are made of, by the names of the fields."""
    return {each.name: each.metadata["key"] for each in fields(kind) if "key" in each.metadata}


def parts_of(kind: type) -> Mapping[str, tuple[type, str]]:
    """Returns dataclass and prefix of each field that `part` declares in a dataclass, by the names of the fields."""
    return {each.name: each.metadata["part"] for each in fields(kind) if "part" in each.metadata}


def named_of(kind: type) -> Mapping[str, tuple[str, type]]:
    """Returns section and dataclass of each field that `named` declares in a dataclass, by the names of the fields."""
    return {each.name: each.metadata["named"] for each in fields(kind) if "named" in each.metadata}


def secrets_in(settings: Any) -> Iterator[str]:
    """Yields the values of keys that are never shown, from a dataclass whose fields declare their keys, and its parts.

    Those in Java options among the values of a mapping are values of their own.
    """
    kind = type(settings)
    for name, declared in keys_of(kind).items():
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            for key, text in value.items():
                yield from java_secrets(text)
                if isinstance(text, Secret) or is_secret_key(key):
                    yield text
        elif isinstance(value, str) and value and (isinstance(value, Secret) or declared.masked):
            yield value
    for name in parts_of(kind):
        yield from secrets_in(getattr(settings, name))
    for name in named_of(kind):
        for each in getattr(settings, name):
            yield from secrets_in(each)


def rows_of(prefix: str, *kinds: type, systems: Sequence[tuple[type, str]] = ()) -> Iterator[Field]:
    """Yields the rows of dataclasses, each key once; `systems` has those of single systems, with the system's name.

    Raises:
        TypeError: two systems declare a key in different words, of which users would read only one.
    """
    rows: dict[str, Field] = {}
    for kind, system in (*((kind, "") for kind in kinds), *systems):
        for declared in _declared(kind):
            row = declared.field(prefix, (system,) if system else ())
            before = rows.setdefault(row.key, row)
            if before is row or not before.systems:
                continue
            if replace(row, systems=before.systems) != before:
                msg = f"{row.key} is declared differently by {system} and by {', '.join(before.systems)}"
                raise TypeError(msg)
            rows[row.key] = replace(before, systems=(*before.systems, system))
    yield from rows.values()
    for kind in kinds:
        for section, each in named_of(kind).values():
            yield from rows_of(f"{section}.NAME.", each)


def _declared(kind: type) -> Iterator[Key]:
    yield from (declared for declared in keys_of(kind).values() if declared.kind is not None)
    for each, prefix in parts_of(kind).values():
        yield from (replace(declared, name=prefix + declared.name) for declared in _declared(each))


class Match(NamedTuple):
    """The row that a key belongs to."""

    field: Field
    name: str
    """The user's text for NAME; for a row without NAME that ends in `*`, the text in its place; else empty."""
    rest: str = ""
    """The text in place of the `*` of a row with NAME; else empty."""


class KeyTable:
    """All rows, in the order of the documentation."""

    def __init__(self, rows: Callable[[], tuple[Field, ...]]) -> None:
        """`rows` is called at each use, and returns the same tuple until the systems that are registered change."""
        self._rows = rows
        self._made: _Lookup | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        """The rows."""
        return self._rows()

    def row(self, key: str) -> Field:
        """Returns the row of a key as documented, with any text in place of a `*` behind a NAME."""
        if (row := self._lookup.by_key.get(key)) is not None:
            return row
        if (match := self.find(key)) is not None and match.rest:
            return match.field
        raise KeyError(key)

    def find(self, key: str) -> Match | None:
        """Returns the row of a key. Rows that end in `*` come last, the longest first."""
        for pattern, field in self._lookup.patterns:
            if match := pattern.fullmatch(key):
                name, rest = (match.groupdict().get(group) or "" for group in ("name", "rest"))
                return Match(field, name, rest) if name else Match(field, rest)
        return None

    def nearest(self, key: str) -> str:
        """Returns the known key most like an unknown one, with the user's own names in it; empty if none is close.

        A key in which only the user's names are wrong is not its own correction.
        """
        segments = key.split(".")
        best, best_ratio = "", _NEAR
        for field in self.fields:
            for spelling in (field.key, *field.aliases):
                candidate = _with_names_of(spelling, segments)
                # Lengths and letters bound the ratio, and cost less.
                shorter, longer = sorted((len(key), len(candidate)))
                if field.open or candidate == key or 2 * shorter / (shorter + longer) <= best_ratio:
                    continue
                matcher = SequenceMatcher(None, key, candidate)
                if matcher.quick_ratio() > best_ratio and (ratio := matcher.ratio()) > best_ratio:
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

    @property
    def _lookup(self) -> _Lookup:
        # Known by its identity: the hash of all rows takes longer than a search among them.
        rows, made = self.fields, self._made
        if made is None or made.rows is not rows:
            self._made = made = _Lookup(rows)
        return made


class _Lookup:
    """Rows by key, and the patterns of their keys."""

    def __init__(self, rows: tuple[Field, ...]) -> None:
        self.rows = rows
        self.by_key = {row.key: row for row in rows}
        ordered = sorted(rows, key=lambda row: (row.open, -len(row.key)))
        self.patterns = [(_pattern(spelling), row) for row in ordered for spelling in (row.key, *row.aliases)]


def _pattern(spelling: str) -> re.Pattern[str]:
    parts = [r"(?P<name>[^.\s]+)" if part.isupper() else re.escape(part) for part in spelling.split(".")]
    return re.compile(r"\.".join(parts).replace(r"\*", r"(?P<rest>\S+)"))


def _with_names_of(spelling: str, segments: list[str]) -> str:
    parts = spelling.split(".")
    return ".".join(
        segments[index] if part.isupper() and index < len(segments) else part for index, part in enumerate(parts)
    )
