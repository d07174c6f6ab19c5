"""Checks of the edits that a route makes to headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from routes.errors import Level
from routes.header_edits import removal
from routes.keys.header_names import constant_fault, header_name
from routes.keys.values import BadValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from routes.keys.settings import Setting, Settings

__all__ = ["HEADER_CHECKS"]

_SET = "routes.NAME.out.header.*"
_RENAMED = "routes.NAME.out.rename-header.*"


def edited_headers(settings: Settings) -> None:
    """Checks names, values and order of the edits to headers."""
    for name in settings.names("routes"):
        given, renamed = (_by_header(settings, key, name) for key in (_SET, _RENAMED))
        _values(settings, given)
        _new_names(settings, renamed, given)
        _removed(settings, name, renamed, given)


def _by_header(settings: Settings, key: str, route: str) -> Mapping[str, Setting]:
    """The settings under a row by the names of their headers; adds the faults of names."""
    by_header: dict[str, Setting] = {}
    for setting in settings.open(key, route):
        try:
            header = header_name(setting.rest)
        except BadValueError as error:
            settings.faults.append(setting.entry.key_fault(str(error), error.hint))
            continue
        if header in by_header:
            before = by_header[header].entry
            message = f"'{setting.entry.key}' is the header of '{before.key}' on line {before.line}"
            settings.faults.append(setting.entry.key_fault(message, "remove one of them"))
        by_header.setdefault(header, setting)
    return by_header


def _values(settings: Settings, given: Mapping[str, Setting]) -> None:
    """Checks the constants of JMS fields; what a template makes is the message's affair."""
    for header, setting in given.items():
        template = setting.value
        if template and not template.references and (fault := constant_fault(header, str(template))):
            settings.faults.append(setting.entry.fault(fault))


def _new_names(settings: Settings, renamed: Mapping[str, Setting], given: Mapping[str, Setting]) -> None:
    """Checks that each new name is one of its own."""
    taken: dict[str, Setting] = {}
    for header, setting in renamed.items():
        new, entry = setting.value, setting.entry
        if new is None:
            continue
        if new == header:
            settings.faults.append(entry.fault(f"'{new}' is the name that the header has", "remove the line"))
        elif new in taken:
            before = taken[new].entry
            message = f"'{new}' is the new name of another header, on line {before.line}"
            settings.faults.append(entry.fault(message, "give each header a name of its own"))
        elif new in renamed:
            message = f"'{new}' is renamed itself, on line {renamed[new].entry.line}"
            settings.faults.append(entry.fault(message, "give the header a name that no other has before or after"))
        elif new in given:
            message = f"line {given[new].entry.line} sets '{new}', so that the renamed header is lost"
            settings.faults.append(entry.fault(message, "remove one of the two lines", level=Level.WARNING))
        taken.setdefault(new, setting)


def _removed(settings: Settings, route: str, renamed: Mapping[str, Setting], given: Mapping[str, Setting]) -> None:
    """Warns of a removal beside another edit of the header: a set header replaces the one that the message has."""
    key = "routes.NAME.out.remove-headers"
    entry, patterns = settings.entry(key, route), settings.get(key, route) or ()
    for header, setting in renamed.items():
        if re.fullmatch(removal(patterns), header, re.DOTALL):
            message = f"'{header}' is removed before it could be renamed"
            settings.faults.append(setting.entry.key_fault(message, "remove one of the two", Level.WARNING))
    for header in patterns:
        if entry and header in given:
            message = f"'{header}' is removed, and set on line {given[header].entry.line}"
            hint = "remove one of the two: a set header replaces the one that the message has"
            settings.faults.append(entry.fault(message, hint, max(entry.value.find(header), 0), Level.WARNING))


HEADER_CHECKS = (edited_headers,)
