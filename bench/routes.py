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
    from bench.options import Options

__all__ = ["measure"]

_RECORDS = 100_000
_TABLES = ((5, "equalities"), (500, "equalities"), (500, "tenth"), (500, "mixed"), (2_000, "equalities"))
_PHASES, _PARTS = ("configuration", "first record"), ("python", "java")
_TARGET = 2.0
"""CPU seconds up to the first record of 500 other conditions, to those of 5 equalities."""


def measure(options: Options) -> Report:
    """Measures every table in turn, in rounds."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {each: [] for each in _TABLES}
    for _ in range(options.rounds):
        for count, kind in _TABLES:
            found[count, kind].append(_run(count, kind))
            print(f"{count} routes, {kind}: {found[count, kind][-1]}", flush=True)
    ratios = [
        _first(mixed) / _first(few) for mixed, few in zip(found[500, "mixed"], found[5, "equalities"], strict=True)
    ]
    checks = [Check("500 other conditions: CPU to the first record, to that of 5 equalities", median(ratios), _TARGET)]
    rows = [
        [
            f"{count} routes, {kind}",
            *(
                _shown(rounds, phase, part)
                for phase in ("configuration", "first record")
                for part in ("python", "java")
            ),
            f"{median(each['records']['java'] * 1e6 / _RECORDS for each in rounds):.1f}",
        ]
        for (count, kind), rounds in found.items()
    ]
    columns = ["", "reading: Python", "JVM", "first record: Python", "JVM", "JVM, per million records"]
    details = [each for rounds in found.values() for each in rounds]
    return Report("routes", [table("CPU seconds, medians", columns, rows)], checks, details)


def _run(count: int, kind: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.route_start", str(count), kind, str(_RECORDS)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _first(found: dict[str, Any]) -> float:
    return sum(float(found[phase][part]) for phase in _PHASES for part in _PARTS)


def _shown(rounds: list[dict[str, Any]], phase: str, part: str) -> str:
    return f"{median(each[phase][part] for each in rounds):.1f}"
