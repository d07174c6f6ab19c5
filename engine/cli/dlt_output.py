"""Dead letters, their outcomes, and their audit, for people and for programs."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from engine.cli.output import progress_bar, show_bytes
from engine.printable import LONGEST_REASON, json_text, printable, shortened
from engine.times import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.table import Table

    from engine.dead_letters.audit import AuditEntry
    from engine.dead_letters.letter import DeadLetter
    from engine.dead_letters.replay import Histogram, Replayed
    from engine.dead_letters.state import LetterState

__all__ = [
    "audit_table",
    "counting",
    "entry_json",
    "histogram_json",
    "histogram_table",
    "letter_json",
    "letter_table",
    "progress",
    "replayed_json",
    "replayed_text",
]

_KEY_BYTES = 60
_WITH_COPY = ("replayed", "already replayed", "quarantined", "already quarantined")
"""Outcomes whose detail is where the copy is."""


def letter_table(letters: Sequence[tuple[DeadLetter, LetterState, int | None]]) -> Table:
    """A line for each dead letter, given with its state and the time of its retry, in milliseconds since 1970."""
    table = _table("position", "state", "time", "route", "reason", "key")
    table.add_column("bytes", justify="right")
    for letter, state, retry in letters:
        record = letter.located.record
        position = letter.position
        table.add_row(
            f"{position.partition}:{position.offset}",
            state if retry is None else f"{state}, retried at {iso(retry)}",
            printable(letter.time),
            printable(letter.route) or "-",
            printable(letter.reason),
            printable(show_bytes(record.key, limit=_KEY_BYTES)),
            str(len(record.value or b"")),
        )
    return table


def letter_json(letter: DeadLetter) -> dict[str, Any]:
    """The members that every JSON form of a dead letter begins with."""
    position = letter.position
    key = letter.located.record.key
    return {
        "position": str(position),
        "time": letter.time,
        "route": letter.route or None,
        "target": letter.target or None,
        "reason": letter.reason,
        "detail": letter.detail,
        "journal": letter.journal_position,
        "key": None if key is None else key.decode("utf-8", "replace"),
        "bytes": len(letter.located.record.value or b""),
    }


def replayed_text(replayed: Replayed) -> str:
    """Line that says how the replay of a dead letter ended."""
    joint = " to" if replayed.outcome in _WITH_COPY else ":"
    rest = f"{joint} {replayed.detail}" if replayed.detail else ""
    return printable(f"{replayed.position}  {replayed.outcome}{rest}")


def replayed_json(replayed: Replayed) -> str:
    """Line of JSON that says how the replay of a dead letter ended."""
    row = {"position": str(replayed.position), "outcome": replayed.outcome, "detail": replayed.detail}
    return json_text(row)


def histogram_table(histogram: Histogram) -> Table:
    """Table of dead letters by reason and route, with the outcome that a replay would have."""
    table = _table("reason", "route")
    table.add_column("count", justify="right")
    for name in ("oldest", "newest", "outcome"):
        table.add_column(name)
    for group, row in histogram.rows:
        times = (iso(row.oldest_ms), iso(row.newest_ms))
        table.add_row(
            printable(group.reason) or "-", printable(group.route) or "-", str(row.count), *times, group.outcome
        )
    return table


def histogram_json(histogram: Histogram) -> Iterator[str]:
    """Lines of JSON, one for each row of the histogram."""
    for group, row in histogram.rows:
        yield json_text(
            {
                "reason": group.reason,
                "route": group.route or None,
                "outcome": group.outcome,
                "count": row.count,
                "oldest": iso(row.oldest_ms),
                "newest": iso(row.newest_ms),
            }
        )


def audit_table(entries: Sequence[AuditEntry]) -> Table:
    """A line for each entry of the audit."""
    table = _table("dead letter", "time", "action", "by", "reason", "route", "to", "command")
    for entry in entries:
        by = "@".join(filter(None, (entry.actor.user, entry.actor.host)))
        row = (by, entry.reason, entry.route, entry.copy, entry.actor.command)
        table.add_row(
            printable(str(entry.position)),
            printable(shortened(entry.time, LONGEST_REASON)),
            entry.action,
            *(printable(shortened(text, LONGEST_REASON)) or "-" for text in row),
        )
    return table


def entry_json(entry: AuditEntry) -> str:
    """An entry for programs: as it stands in the topic, with its position."""
    return json_text({"position": str(entry.position), **json.loads(entry.to_json())})


def counting() -> AbstractContextManager[object]:
    """A remark on stderr while dead letters are counted, if that is a terminal."""
    from rich.console import Console

    terminal = Console(stderr=True)
    return terminal.status("counting dead letters") if terminal.is_terminal else nullcontext()


@contextmanager
def progress(total: int, what: str = "dead letters") -> Iterator[Callable[[], None]]:
    """A bar on stderr, if that is a terminal, moved on by each call."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with progress_bar(*columns) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def _table(*names: str) -> Table:
    from rich.table import Table

    return Table(*names, box=None, pad_edge=False, header_style="bold")
