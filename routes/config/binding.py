"""Entries become settings: each finds its row in the field table, the last of several wins, and its text a value.

What does not work out is a fault; the rest goes on, so that all faults are found at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from routes.config.fields import FIELDS
from routes.config.secrets import MASK, Secret, UnresolvedError, has_reference, mask, resolve
from routes.config.table import Field, Match
from routes.config.values import BadValueError
from routes.errors import Fault, Level, PredicateError
from routes.predicate.nodes import Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from routes.config.entry import Entry
    from routes.config.secrets import Resolved

__all__ = ["Setting", "Settings", "bind"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One key that is set, with its value read."""

    row: Field
    name: str
    entry: Entry
    value: Any
    """As the row's kind reads it; None if there is a fault in it."""
    text: str = field(default="", repr=False)
    """What was read, references replaced."""


@dataclass(slots=True)
class Settings:
    """All that a file sets, and the faults found on the way."""

    file: str
    base: Path
    """Where relative paths start."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What `${file:PATH}` stands for, by PATH, in place of the disk."""
    by_key: dict[tuple[str, str], Setting] = field(default_factory=dict)
    """By key of the row and NAME, in the order in which keys first appear."""
    faults: list[Fault] = field(default_factory=list)

    def get(self, key: str, name: str = "") -> Any:
        """The value of a key, the default if it is not set, None without either."""
        if setting := self.by_key.get((key, name)):
            return setting.value
        row = _ROWS[key]
        return None if row.default is None else row.kind.parse(row.default)

    def entry(self, key: str, name: str = "") -> Entry | None:
        """Where a key is set, if it is."""
        setting = self.by_key.get((key, name))
        return setting.entry if setting else None

    def is_set(self, key: str, name: str = "") -> bool:
        """Whether the file sets a key, even to something faulty."""
        return (key, name) in self.by_key

    def has_file(self, path: str | Path) -> bool:
        """Whether there is such a file, relative to the configuration."""
        try:
            return (self.base / path).is_file()
        except OSError:  # Its name is too long, or a folder may not be entered.
            return False

    def names(self, section: str) -> list[str]:
        """The NAMEs of a section, in the order in which they first appear in the file."""
        named = (setting for setting in self.by_key.values() if setting.row.section == section and setting.name)
        return list(dict.fromkeys(setting.name for setting in named))

    def first_entry(self, section: str, name: str) -> Entry:
        """The first line about a NAME."""
        found = (s.entry for s in self.by_key.values() if s.row.section == section and s.name == name)
        return min(found, key=lambda entry: entry.key_spot)

    def open(self, key: str) -> list[Setting]:
        """The settings under a row that ends in `*`."""
        return [setting for (row, _), setting in self.by_key.items() if row == key]

    def hidden(self, faults: Iterable[Fault]) -> list[Fault]:
        """Faults found before it was known what lines mean: without the line where it holds a login."""
        by_key = {setting.entry.key: setting for setting in self.by_key.values()}

        def holds_login(fault: Fault) -> bool:
            setting = by_key.get(fault.key)
            return setting is not None and setting.row.kind.reveals(setting.entry.value)

        return [replace(fault, excerpt="") if holds_login(fault) else fault for fault in faults]

    def masked_faults(self) -> list[Fault]:
        """The faults, without any secret that a message or hint may quote."""
        secrets = [(s.entry.key, s.text) for s in self.by_key.values() if s.entry.secret and s.text]
        return [_masked(fault, secrets) for fault in self.faults]

    def fault(self, key: str, name: str, message: str, hint: str = "") -> None:
        """A fault at the value of a key that is set."""
        entry = self.entry(key, name)
        self.faults.append(entry.fault(message, hint) if entry else Fault(message, hint, self.file, key=key))


_MOST_SUGGESTIONS = 100
"""Of what was meant by unknown keys: each takes milliseconds, and a file that is none may have any number."""
_NO_FILES: Mapping[str, str] = MappingProxyType({})
_ROWS = {row.key: row for row in FIELDS.fields}


def bind(
    entries: Iterable[Entry], env: Mapping[str, str], file: str, base: Path, files: Mapping[str, str] = _NO_FILES
) -> Settings:
    """The settings of a file's entries, read from the top down; `files` as in `Settings`."""
    settings = Settings(file, base, files)
    for key, (match, entry) in _last_of_each(entries, settings.faults).items():
        text, value = _value(match, entry, env, settings)
        settings.by_key[key] = Setting(match.field, match.name, entry, value, text)
    return settings


def _last_of_each(entries: Iterable[Entry], faults: list[Fault]) -> dict[tuple[str, str], tuple[Match, Entry]]:
    found: dict[tuple[str, str], tuple[Match, Entry]] = {}
    unknown = 0
    for plain in entries:
        match = FIELDS.find(plain.key)
        if match is None:
            unknown += 1
            faults.append(_unknown(plain, suggest=unknown <= _MOST_SUGGESTIONS))
            continue
        entry = replace(plain, secret=plain.hidden or match.field.masked or has_reference(plain.value))
        key = (match.field.key, match.name)
        if key in found:
            before = found[key][1]
            spelling = "" if before.key == entry.key else f" (as '{before.key}')"
            message = f"line {entry.line} sets '{entry.key}' again, after line {before.line}{spelling}"
            faults.append(entry.key_fault(message, "the later one counts; remove one of them", Level.WARNING))
        found[key] = (match, entry)
    return found


def _unknown(entry: Entry, *, suggest: bool) -> Fault:
    if not entry.key:
        return entry.key_fault("there is no key before the separator", "write key=value")
    near = FIELDS.nearest(entry.key) if suggest else ""
    hint = f"did you mean '{near}'?" if near else "`jms-bridge config docs` lists all keys"
    if undotted := FIELDS.without_dots(entry.key):
        hint = f"a name has no dots in it: '{undotted}'"
    return entry.key_fault(f"unknown key '{entry.key}'", hint)


def _value(match: Match, entry: Entry, env: Mapping[str, str], settings: Settings) -> tuple[str, Any]:
    """The text with references replaced, and what it means; None with a fault if it means nothing."""
    row = match.field
    try:
        resolved = resolve(entry.value, env, settings.base, settings.files, strict=not (row.open or row.template))
    except UnresolvedError as error:
        settings.faults.append(entry.move(Fault(str(error), error.hint), error.offset))
        return "", None
    try:
        value = row.kind.parse(resolved.text)
    except PredicateError as error:
        fault, offset = error.fault, max(error.fault.column - 1, 0)
    except BadValueError as error:
        fault, offset = Fault(str(error), error.hint), error.offset
        if error.secret:
            settings.faults.append(replace(entry, secret=True).fault(str(error), error.hint))
            return resolved.text, None
    else:
        return resolved.text, _kept(value, entry, resolved)
    if entry.secret:
        fault = Fault(f"the value of '{entry.key}' is not {row.kind.expected}")
    settings.faults.append(entry.move(fault, resolved.origins[min(offset, len(resolved.text))]))
    return resolved.text, None


def _kept(value: Any, entry: Entry, resolved: Resolved) -> Any:
    """The value, such that it does not show what a reference stands for."""
    if isinstance(value, Predicate) and resolved.text != entry.value:
        return replace(value, text=entry.value, origins=resolved.origins)
    return Secret(value) if entry.secret and isinstance(value, str) else value


def _masked(fault: Fault, secrets: list[tuple[str, str]]) -> Fault:
    """The fault without the secrets, one of its own key masked at any length."""
    message, hint = fault.message, fault.hint
    for key, secret in secrets:
        if key == fault.key:
            message, hint = message.replace(secret, MASK), hint.replace(secret, MASK)
    every = [secret for _, secret in secrets]
    return replace(fault, message=mask(message, every), hint=mask(hint, every))
