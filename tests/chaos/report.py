"""What runs found, as a page's tables and as JSON."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from dataclasses import asdict, fields
from typing import TYPE_CHECKING

from tests.chaos.ledger import DESTINATIONS, SOURCES
from tests.chaos.verdict import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from tests.chaos.run import Outcome

__all__ = ["markdown", "save"]

_COLUMNS = {each.name: each.name.replace("_", " ") for each in fields(Counts)}


def markdown(outcomes: Sequence[Outcome]) -> str:
    """The tables of `docs/reliability.md`."""
    parts = []
    for outcome in outcomes:
        verdict = outcome.verdict
        rows = [[f"{source} → {to}", *_figures(verdict.cells[source, to])] for source in SOURCES for to in DESTINATIONS]
        rows.append(["**all**", *_figures(verdict.total)])
        parts += [
            f"### Router mode `{outcome.mode}`",
            f"{outcome.kills} kills and {_others(outcome)} other faults in {outcome.seconds / 60:.0f} minutes, "
            f"seed {outcome.seed}; {verdict.unknown} messages that nobody has sent.",
            _table(["from → to", *_COLUMNS.values()], rows),
        ]
    parts += ["### Time to recover", _recoveries(outcomes)]
    return "\n\n".join(parts) + "\n"


def save(outcomes: Sequence[Outcome], folder: Path) -> None:
    """`chaos.md` and `chaos.json`."""
    folder.mkdir(exist_ok=True)
    (folder / "chaos.md").write_text(markdown(outcomes), encoding="utf-8")
    (folder / "chaos.json").write_text(json.dumps([_plain(outcome) for outcome in outcomes], indent=1) + "\n")


def _plain(outcome: Outcome) -> dict[str, object]:
    verdict = outcome.verdict
    return {
        "mode": outcome.mode,
        "seed": outcome.seed,
        "kills": outcome.kills,
        "seconds": outcome.seconds,
        "cells": {f"{source} {to}": asdict(counts) for (source, to), counts in verdict.cells.items()},
        "total": asdict(verdict.total),
        "unknown": verdict.unknown,
        "examples": verdict.examples,
        "recovery_seconds": outcome.recoveries,
    }


def _others(outcome: Outcome) -> int:
    return sum(map(len, outcome.recoveries.values())) - outcome.kills


def _figures(counts: Counts) -> list[str]:
    return [f"{getattr(counts, name):,}" for name in _COLUMNS]


def _recoveries(outcomes: Sequence[Outcome]) -> str:
    """Of all runs, by fault: how often, and the seconds until something new came."""
    found: dict[str, list[float | None]] = defaultdict(list)
    for outcome in outcomes:
        for name, seconds in outcome.recoveries.items():
            found[name] += seconds
    rows = []
    for name, seconds in sorted(found.items()):
        known = [each for each in seconds if each is not None]
        middle, most = (f"{statistics.median(known):.1f}", f"{max(known):.1f}") if known else ("", "")
        rows.append([name, str(len(seconds)), middle, most, str(len(seconds) - len(known))])
    return _table(["fault", "times", "median s", "longest s", "never"], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
