"""Dead letters added up by reason, route, and what would become of them: what a dry run tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from engine.dead_letters.replay import Outcome, Replayed

__all__ = ["Group", "Histogram", "Row"]

_MOST_ROWS = 1000
_OTHERS = "(others)"
"""Whoever writes into the topic chooses reasons and routes; those that are too many are one."""


class Group(NamedTuple):
    """What has a row of its own."""

    reason: str
    route: str
    """Empty for none."""
    outcome: Outcome


@dataclass(slots=True)
class Row:
    """Those of one group."""

    count: int
    oldest_ms: int
    """When the first of them failed, in milliseconds since 1970."""
    newest_ms: int


class Histogram:
    """Counts in bounded memory."""

    def __init__(self) -> None:
        self._rows: dict[Group, Row] = {}

    def add(self, replayed: Replayed) -> None:
        """One dead letter more."""
        letter, time_ms = replayed.letter, replayed.letter.time_ms
        group = Group(letter.reason, letter.route, replayed.outcome)
        if group not in self._rows and len(self._rows) >= _MOST_ROWS:
            group = Group(_OTHERS, _OTHERS, replayed.outcome)
        row = self._rows.setdefault(group, Row(0, time_ms, time_ms))
        row.count += 1
        row.oldest_ms, row.newest_ms = min(row.oldest_ms, time_ms), max(row.newest_ms, time_ms)

    @property
    def rows(self) -> list[tuple[Group, Row]]:
        """The largest first."""
        return sorted(self._rows.items(), key=lambda item: (-item[1].count, item[0]))

    def count(self, *outcomes: Outcome) -> int:
        """How many have one of these outcomes."""
        return sum(row.count for group, row in self._rows.items() if group.outcome in outcomes)
