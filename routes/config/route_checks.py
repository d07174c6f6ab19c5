"""Warnings of routes that ask for something no message has.

They are no errors, since such a file works as it always did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from routes.errors import Fault, Level
from routes.keys.secrets import has_reference
from routes.predicate.doubts import doubts, unknown_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.keys.settings import Settings

__all__ = ["ROUTE_CHECKS"]


def doubtful_predicates(settings: Settings) -> None:
    """Warns of predicates, or parts of them, that are true for no message."""
    for name in settings.names("routes"):
        for key in ("routes.NAME.in.include", "routes.NAME.in.exclude"):
            entry, predicate = settings.entry(key, name), settings.get(key, name)
            if entry is None or predicate is None:
                continue
            for doubt in doubts(predicate):
                # The content of a reference must not be shown.
                if not has_reference(predicate.source(doubt.node)):
                    offset, _ = predicate.span(doubt.node)
                    settings.faults.append(entry.fault(doubt.message, doubt.hint, offset, Level.WARNING))


def unknown_fields(settings: Settings) -> None:
    """Warns of keys and destinations that are made of a field which no message has."""
    for name in settings.names("routes"):
        for key, field in _fields(settings, name):
            entry, problem = settings.entry(key, name), unknown_field(field)
            if entry is not None and problem and (offset := entry.value.find(field)) >= 0:
                settings.faults.append(entry.move(Fault(*problem, level=Level.WARNING), offset))


def _fields(settings: Settings, name: str) -> Iterator[tuple[str, str]]:
    """Yields the fields that a route takes from a message besides its predicates, each after the key that names it."""
    if found := settings.get("routes.NAME.conv.key", name):
        yield "routes.NAME.conv.key", found
    if target := settings.get("routes.NAME.out.topic", name):
        for reference in target.address.references:
            yield "routes.NAME.out.topic", reference.name


ROUTE_CHECKS = (doubtful_predicates, unknown_fields)
"""The checks; each adds its faults to the settings."""
