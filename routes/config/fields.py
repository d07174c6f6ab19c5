"""The field table: every key of `jms-bridge.properties`. Parsing, lint, help and docs/configuration.md use it.

Rows are made of the keys that the fields of the settings declare: in `routes.sections`, `routes.model`,
`routes.systems`, the modules that `routes.section_registry` names, and each system's folder.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from routes.keys.table import KeyTable, rows_of
from routes.model import Config, Route
from routes.section_registry import registered_sections
from routes.systems import SinkConfig, SourceConfig, all_systems

if TYPE_CHECKING:
    from routes.keys.table import Field
    from routes.section_registry import Section
    from routes.systems import System

__all__ = ["FIELDS", "sections"]

_AFTER = "sink"
"""The section before those of single systems."""


def sections() -> dict[str, str]:
    """Returns the first segments of keys in the order of the documentation, each with a description."""
    found: dict[str, str] = {}
    for section, described in registered_sections().items():
        found[section] = described.about
        if section == _AFTER:
            found |= {each.name: each.about for system in all_systems() for each in system.sections}
    return found


def _rows() -> tuple[Field, ...]:
    return _rows_of(all_systems(), tuple(registered_sections().values()))


@cache
def _rows_of(systems: tuple[System, ...], registered: tuple[Section, ...]) -> tuple[Field, ...]:
    order = list(sections())
    rows = (
        *rows_of("", Config),
        *rows_of("routes.NAME.", Route),
        *rows_of("source.NAME.", SourceConfig, systems=[(each.source, each.name) for each in systems if each.source]),
        *rows_of("sink.NAME.", SinkConfig, systems=[(each.sink, each.name) for each in systems if each.sink]),
        *rows_of("", *(section.settings for section in registered if section.settings)),
        *(row for system in systems for each in system.sections for row in rows_of(f"{each.name}.NAME.", each.kind)),
    )
    return tuple(sorted(rows, key=lambda row: order.index(row.section)))


FIELDS = KeyTable(_rows)
