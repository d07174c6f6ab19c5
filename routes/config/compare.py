"""Differences between two configurations, by routes, sources, sinks and settings; for `jms-bridge diff`.

The values in force are compared, defaults included: another spelling of the same value, another order of lines that has
no meaning, and a default that is written out do not count. The order of routes does: the first that matches wins.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from routes.config.fields import FIELDS
from routes.config.show import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from routes.keys.settings import Settings
    from routes.keys.table import Field

__all__ = ["Change", "ChangeKind", "compare"]

_ROUTES = "routes"
_NOT_SET = "(not set)"


class ChangeKind(StrEnum):
    """Kinds of difference."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"
    """A route that is tried at another place among the others."""


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two configurations."""

    kind: ChangeKind
    section: str
    """`routes`, `source`, `sink`, `transformer`, or the first segment of the key of any other setting."""
    name: str
    """NAME of the route, source, sink or transformer; empty for a setting that belongs to none."""
    key: str
    """The key that differs; empty if a route, source, sink or transformer as a whole was added, removed or moved."""
    old: str
    """Value as written in the file, or the default in brackets; secrets are masked. For `moved`: the former place."""
    new: str


def compare(old: Settings, new: Settings) -> tuple[Change, ...]:
    """Returns the differences from old to new: routes first, then other sections in the order of the documentation."""
    sections = dict.fromkeys(field.section for field in FIELDS.fields)
    changes: list[Change] = []
    for section in (_ROUTES, *(section for section in sections if section != _ROUTES)):
        if any(_is_named(row) for row in FIELDS.in_section(section)):
            changes += _of_names(section, old, new)
        changes += _changed(section, "", old, new)
    return tuple(changes)


def _of_names(section: str, old: Settings, new: Settings) -> Iterator[Change]:
    before, after = (dict.fromkeys(settings.names(section)) for settings in (old, new))
    for name in before:
        if name not in after:
            yield Change(ChangeKind.REMOVED, section, name, "", "", "")
            yield from _all_of(section, name, old, ChangeKind.REMOVED)
    moved = _moved(before, after) if section == _ROUTES else {}
    for name in after:
        if name not in before:
            yield Change(ChangeKind.ADDED, section, name, "", "", "")
            yield from _all_of(section, name, new, ChangeKind.ADDED)
            continue
        if name in moved:
            yield Change(ChangeKind.MOVED, section, name, "", *moved[name])
        yield from _changed(section, name, old, new)


def _all_of(section: str, name: str, settings: Settings, kind: ChangeKind) -> Iterator[Change]:
    """Yields all keys of a route, source, sink or transformer that the other file does not have."""
    for row, _ in _rows(section, name, settings):
        if settings.is_set(row.key, name):
            text = _text(settings, row, name)
            old, new = (text, "") if kind is ChangeKind.REMOVED else ("", text)
            yield Change(kind, section, name, _key(row, name), old, new)


def _changed(section: str, name: str, old: Settings, new: Settings) -> Iterator[Change]:
    """Yields the differing keys of a name that both files have, or of the section's keys without a name."""
    for row, placeholder in _rows(section, name, old, new):
        if _value(old, row, placeholder) != _value(new, row, placeholder):
            texts = [_text(settings, row, placeholder) for settings in (old, new)]
            yield Change(_kind(*texts), section, name, _key(row, placeholder), *texts)


def _kind(old: str, new: str) -> ChangeKind:
    if old == _NOT_SET:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if new == _NOT_SET else ChangeKind.CHANGED


def _is_named(row: Field) -> bool:
    return "NAME" in row.key.split(".")


def _rows(section: str, name: str, *both: Settings) -> Iterator[tuple[Field, str]]:
    """Yields the rows for a name, or for none, each with the text that stands for NAME or `*` in its key."""
    for row in FIELDS.in_section(section):
        if row.open and _is_named(row) and name:
            rests = _unique(setting.rest for each in both for setting in each.open(row.key, name))
            yield from ((replace(row, key=row.key.replace("*", rest)), name) for rest in rests)
        elif row.open and not name and not _is_named(row):
            yield from ((row, rest) for rest in _unique(s.name for each in both for s in each.open(row.key)))
        elif _is_named(row) is bool(name) and not row.open:
            yield row, name


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _value(settings: Settings, row: Field, name: str) -> Any:
    setting = settings.by_key.get((row.key, name))
    if setting is None:
        return None if row.open else settings.effective(row.key, name)
    # A value with a fault, such as a reference that leads nowhere here, is compared by its text.
    return f"{row.key}={setting.entry.value}" if setting.value is None else setting.value


def _text(settings: Settings, row: Field, name: str) -> str:
    if setting := settings.by_key.get((row.key, name)):
        return shown(setting)
    value = None if row.open else (row.default or settings.effective(row.key, name))
    return _NOT_SET if value is None else f"({value})"


def _key(row: Field, name: str) -> str:
    return row.key.replace("*", name) if row.open else row.key.replace("NAME", name)


def _moved(before: Iterable[str], after: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Returns the smallest set of moved routes that explains the new order, each with its old and new place."""
    place = {name: number for number, name in enumerate(before)}
    common = [name for name in after if name in place]
    stayed = set(_longest_rise([place[name] for name in common]))
    old, new = _followers(sorted(common, key=place.__getitem__)), _followers(common)
    return {name: (old[name], new[name]) for name in common if place[name] not in stayed}


def _followers(names: Sequence[str]) -> dict[str, str]:
    """Describes the place of each route in words, by the one that follows."""
    return {name: f"before '{following}'" for name, following in pairwise(names)} | dict.fromkeys(names[-1:], "last")


def _longest_rise(numbers: Sequence[int]) -> list[int]:
    """Returns the longest rising subsequence of different numbers."""
    ends: list[int] = []
    before: dict[int, int | None] = {}
    for number in numbers:
        index = bisect_left(ends, number)
        before[number] = ends[index - 1] if index else None
        ends[index : index + 1] = [number]
    rise: list[int] = []
    last = ends[-1] if ends else None
    while last is not None:
        rise.append(last)
        last = before[last]
    return rise
