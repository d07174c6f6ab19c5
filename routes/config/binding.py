"""Binds entries to rows of the field table: the last entry of several for a key counts, and its text is parsed.

An entry that cannot be bound or parsed becomes a fault; the rest goes on, so that all faults are found at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from routes.config.fields import FIELDS
from routes.errors import Fault, Level, PredicateError
from routes.keys.secrets import Secret, UnresolvedError, has_reference, resolve
from routes.keys.settings import Setting, Settings
from routes.keys.values import BadValueError
from routes.predicate.nodes import Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from routes.keys.entry import Entry
    from routes.keys.secrets import Resolved
    from routes.keys.table import Match

__all__ = ["bind"]

_MOST_SUGGESTIONS = 100
"""Greatest number of unknown keys that get a suggestion: each takes milliseconds, and a file other than a configuration
may have any number."""
_BLANKS = re.compile(r"\s+")
_NO_FILES: Mapping[str, str] = MappingProxyType({})


def bind(
    entries: Iterable[Entry], env: Mapping[str, str], file: str, base: Path, files: Mapping[str, str] = _NO_FILES
) -> Settings:
    """Returns the settings of a file's entries, read from the top down; `files` as in `Settings`."""
    settings = Settings(file, base, FIELDS, files)
    for (key, name), (match, entry) in _last_of_each(entries, settings.faults).items():
        text, value = _value(match, entry, env, settings)
        settings.add(key, Setting(match.field, name, entry, value, text, match.rest))
    return settings


def _last_of_each(entries: Iterable[Entry], faults: list[Fault]) -> dict[tuple[str, str], tuple[Match, Entry]]:
    last: dict[tuple[str, str], tuple[Match, Entry]] = {}
    unknown = 0
    for plain in entries:
        match = FIELDS.find(plain.key)
        if match is None:
            unknown += 1
            message, hint = _unknown(plain, suggest=unknown <= _MOST_SUGGESTIONS)
            faults.append(plain.key_fault(message, hint))
            continue
        entry = replace(plain, secret=plain.hidden or match.field.masked or has_reference(plain.value))
        key = (match.field.key.replace("*", match.rest) if match.rest else match.field.key, match.name)
        if key in last:
            before = last[key][1]
            spelling = "" if before.key == entry.key else f" (as '{before.key}')"
            message = f"line {entry.line} sets '{entry.key}' again, after line {before.line}{spelling}"
            faults.append(entry.key_fault(message, "the later one counts; remove one of them", Level.WARNING))
        last[key] = (match, entry)
    return last


def _unknown(entry: Entry, *, suggest: bool) -> tuple[str, str]:
    """Returns message and hint about a key that is unknown."""
    if not entry.key:
        return "there is no key before the separator", "write key=value"
    if blank := _with_blank(entry):
        return f"the name in '{blank}' has a blank", f"write '{_BLANKS.sub('-', blank)}'"
    near = FIELDS.nearest(entry.key) if suggest else ""
    hint = f"did you mean '{near}'?" if near else "`jms-bridge config docs` lists all keys"
    if undotted := FIELDS.without_dots(entry.key):
        hint = f"a name has no dots in it: '{undotted}'"
    return f"unknown key '{entry.key}'", hint


def _with_blank(entry: Entry) -> str:
    """Returns the key that an entry would have if a blank could stand in its NAME; empty if it is unknown even then."""
    if re.search(r"\s", entry.key):
        meant = entry.key
    else:
        # A blank ends the key, so the rest of it is the beginning of the value.
        rest = re.match(r"[^=:]*(?=[=:])", entry.value)
        meant = f"{entry.key} {rest[0].rstrip()}" if rest else ""
    return meant if FIELDS.find(_BLANKS.sub("-", meant)) else ""


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
