"""Counts of dead letters by reason, route and outcome, for the report of a dry run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from engine.dead_letters.replay import Replayed, ReplayOutcome

__all__ = ["Group", "Histogram", "HistogramRow"]

_MOST_ROWS = 1000
_OTHERS = "(others)"
"""Row for reasons and routes beyond `_MOST_ROWS`: any writer of the topic chooses them, so there may be any number."""


class Group(NamedTuple):
    """Key of a row: reason, route and outcome."""

    reason: str
    route: str
    """Name of the route; empty for none."""
    outcome: ReplayOutcome


@dataclass(slots=True)
class HistogramRow:
    """Count and times of the dead letters in one group."""

    count: int
    oldest_ms: int
    """Time of the first failure among them, in milliseconds since 1970."""
    newest_ms: int


class Histogram:
    """Counts of dead letters by group, in bounded memory."""

    def __init__(self) -> None:
        self._rows: dict[Group, HistogramRow] = {}

    def add(self, replayed: Replayed) -> None:
        """Counts one dead letter."""
        letter, time_ms = replayed.letter, replayed.letter.time_ms
        group = Group(letter.reason, letter.route, replayed.outcome)
        if group not in self._rows and len(self._rows) >= _MOST_ROWS:
            group = Group(_OTHERS, _OTHERS, replayed.outcome)
        row = self._rows.setdefault(group, HistogramRow(0, time_ms, time_ms))
        row.count += 1
        row.oldest_ms, row.newest_ms = min(row.oldest_ms, time_ms), max(row.newest_ms, time_ms)

    @property
    def rows(self) -> list[tuple[Group, HistogramRow]]:
        """Groups and their rows, the largest first."""
        return sorted(self._rows.items(), key=lambda item: (-item[1].count, item[0]))

    def count(self, *outcomes: ReplayOutcome) -> int:
        """Returns the number of dead letters with one of these outcomes."""
        return sum(row.count for group, row in self._rows.items() if group.outcome in outcomes)
