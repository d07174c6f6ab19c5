"""Cost of a table of routes: CPU seconds of Python and of the JVM up to the first record, and for each record.

Each round starts a session of its own for each table (`bench.route_start`), one after the other; no broker, no peer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.programs import ROOT
from bench.report import Check, Report, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.options import Options

__all__ = ["measure", "run", "seconds_for_each"]

_RECORDS = 1_000_000
_FEW = (5, "equalities")
_TABLES = (_FEW, (500, "equalities"), (500, "tenth"), (500, "mixed"), (5_000, "equalities"))
_PHASES, _PARTS = ("configuration", "first record"), ("python", "java")
_FIRST = {(500, "mixed"): 2.0, (5_000, "equalities"): 2.0}
"""Targets of the CPU seconds up to the first record, to those of 5 equalities."""
_EACH = {(500, "equalities"): 1.1, (500, "tenth"): 1.5}
"""Targets of the CPU seconds for each record, to those of 5 equalities."""


def measure(options: Options) -> Report:
    """Measures every table in turn, in rounds."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {each: [] for each in _TABLES}
    for _ in range(options.rounds):
        for count, kind in _TABLES:
            found[count, kind].append(run(count, kind))
            print(f"{count} routes, {kind}: {found[count, kind][-1]}", flush=True)

    def check(what: str, cost: Callable[[dict[str, Any]], float], of: tuple[int, str], target: float) -> Check:
        ratios = [cost(many) / cost(few) for many, few in zip(found[of], found[_FEW], strict=True)]
        return Check(f"{of[0]} routes, {of[1]}: CPU {what}, to that of 5 equalities", median(ratios), target)

    checks = [
        *(check("to the first record", _first, of, target) for of, target in _FIRST.items()),
        *(check("for each record", seconds_for_each, of, target) for of, target in _EACH.items()),
    ]
    rows = [
        [
            f"{count} routes, {kind}",
            *(_shown(rounds, phase, part) for phase in _PHASES for part in _PARTS),
            f"{median(map(seconds_for_each, rounds)):.2f}",
        ]
        for (count, kind), rounds in found.items()
    ]
    columns = ["", "reading: Python", "JVM", "first record: Python", "JVM", "JVM, per million records"]
    details = [each for rounds in found.values() for each in rounds]
    return Report("routes", [table("CPU seconds, medians", columns, rows)], checks, details)


def run(count: int, kind: str) -> dict[str, Any]:
    """Returns the figures of one table."""
    command = [sys.executable, "-m", "bench.route_start", str(count), kind, str(_RECORDS)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _first(found: dict[str, Any]) -> float:
    return sum(float(found[phase][part]) for phase in _PHASES for part in _PARTS)


def seconds_for_each(found: dict[str, Any]) -> float:
    """CPU seconds of the best pass, for a million records."""
    return min(map(float, found["passes"])) * 1e6 / _RECORDS


def _shown(rounds: list[dict[str, Any]], phase: str, part: str) -> str:
    return f"{median(each[phase][part] for each in rounds):.1f}"
