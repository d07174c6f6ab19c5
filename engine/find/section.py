"""Section `find` of a configuration: preparations for searches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from routes.keys.table import key
from routes.keys.values import choice
from routes.section_registry import Section

__all__ = ["SECTION", "FilterWriting", "FindConfig"]


class FilterWriting(StrEnum):
    """Writers of the filters of ids."""

    BACKGROUND = "background"
    """The running bridge and searches."""
    SEARCHES = "searches"


@dataclass(frozen=True, slots=True)
class FindConfig:
    """`find.*`: preparations for searches."""

    filters: FilterWriting = key(
        "find.filters",
        choice(FilterWriting),
        "Writers of the [filters](finding.md#searches-for-an-id) by which a search for an id leaves out most of the "
        "topics. `background`: the running bridge, beside its other work, and searches. `searches`: only searches, so "
        "that the first search for an id reads everything.",
        default="background",
    )
    """Writers of the filters of ids."""


SECTION = Section(about="Preparations for [searches](finding.md).", settings=FindConfig)
