"""Binds entries to rows of the field table: the last entry of several for a key counts, and its text is parsed.

An entry that cannot be bound or parsed becomes a fault; the rest goes on, so that all faults are found at once.
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
    """A key that is set, with its parsed value."""

    row: Field
    name: str
    entry: Entry
    value: Any
    """Value as the row's kind parses it; None if there is a fault in it."""
    text: str = field(default="", repr=False)
    """The parsed text, with references replaced."""


@dataclass(slots=True)
class Settings:
    """All keys that a file sets, and the faults found on the way."""

    file: str
    base: Path
    """Folder from which relative paths start."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Contents for `${file:PATH}`, by PATH, used in place of the disk."""
    by_key: dict[tuple[str, str], Setting] = field(default_factory=dict)
    """Settings by key of the row and NAME, in the order in which keys first appear."""
    faults: list[Fault] = field(default_factory=list)

    def get(self, key: str, name: str = "") -> Any:
        """Returns the value of a key, or the default if it is not set, or None without a default."""
        if setting := self.by_key.get((key, name)):
            return setting.value
        row = _ROWS[key]
        return None if row.default is None else row.kind.parse(row.default)

    def entry(self, key: str, name: str = "") -> Entry | None:
        """Returns the entry that sets a key; None if no entry does."""
        setting = self.by_key.get((key, name))
        return setting.entry if setting else None

    def is_set(self, key: str, name: str = "") -> bool:
        """Returns True if the file sets a key, even to something faulty."""
        return (key, name) in self.by_key

    def has_file(self, path: str | Path) -> bool:
        """Returns True if there is a file of this path, relative to the configuration."""
        try:
            return (self.base / path).is_file()
        except OSError:  # The name is too long, or a folder may not be entered.
            return False

    def names(self, section: str) -> list[str]:
        """Returns the NAMEs of a section, in the order in which they first appear in the file."""
        named = (setting for setting in self.by_key.values() if setting.row.section == section and setting.name)
        return list(dict.fromkeys(setting.name for setting in named))

    def first_entry(self, section: str, name: str) -> Entry:
        """Returns the first entry about a NAME."""
        found = (s.entry for s in self.by_key.values() if s.row.section == section and s.name == name)
        return min(found, key=lambda entry: entry.key_spot)

    def open(self, key: str) -> list[Setting]:
        """Returns the settings under a row that ends in `*`."""
        return [setting for (row, _), setting in self.by_key.items() if row == key]

    def hidden(self, faults: Iterable[Fault]) -> list[Fault]:
        """Returns faults found before binding, without the line of those whose value holds a login."""
        by_key = {setting.entry.key: setting for setting in self.by_key.values()}

        def holds_login(fault: Fault) -> bool:
            setting = by_key.get(fault.key)
            return setting is not None and setting.row.kind.reveals(setting.entry.value)

        return [replace(fault, excerpt="") if holds_login(fault) else fault for fault in faults]

    def masked_faults(self) -> list[Fault]:
        """Returns the faults, without any secret that a message or hint may quote."""
        secrets = [(s.entry.key, s.text) for s in self.by_key.values() if s.entry.secret and s.text]
        return [_masked(fault, secrets) for fault in self.faults]

    def fault(self, key: str, name: str, message: str, hint: str = "") -> None:
        """Adds a fault at the value of a key that is set, or without a place if it is not set."""
        entry = self.entry(key, name)
        self.faults.append(entry.fault(message, hint) if entry else Fault(message, hint, self.file, key=key))


_MOST_SUGGESTIONS = 100
"""Greatest number of unknown keys that get a suggestion: each takes milliseconds, and a file that is no configuration
may have any number."""
_NO_FILES: Mapping[str, str] = MappingProxyType({})
_ROWS = {row.key: row for row in FIELDS.fields}


def bind(
    entries: Iterable[Entry], env: Mapping[str, str], file: str, base: Path, files: Mapping[str, str] = _NO_FILES
) -> Settings:
    """Returns the settings of a file's entries, read from the top down; `files` as in `Settings`."""
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
    """Returns the text with references replaced, and its value; adds a fault and returns None for a bad one."""
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
    """Returns the value in a form that does not show the content of a reference."""
    if isinstance(value, Predicate) and resolved.text != entry.value:
        return replace(value, text=entry.value, origins=resolved.origins)
    return Secret(value) if entry.secret and isinstance(value, str) else value


def _masked(fault: Fault, secrets: list[tuple[str, str]]) -> Fault:
    """Returns the fault without the secrets; a secret of the fault's own key is masked at any length."""
    message, hint = fault.message, fault.hint
    for key, secret in secrets:
        if key == fault.key:
            message, hint = message.replace(secret, MASK), hint.replace(secret, MASK)
    every = [secret for _, secret in secrets]
    return replace(fault, message=mask(message, every), hint=mask(hint, every))
