"""Comparison of a run with those that were saved before it on the same kind of machine."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.report import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.table import Table

    from bench.report import Check

__all__ = ["compared", "worse"]

_RUNS = 8
"""Number of the latest runs that are compared with, at most."""
_LEAST_RUNS = 3
"""Number of runs from which their spread tells the noise."""
_NOISE = 0.15
"""Change that counts as noise where fewer runs are known, and the least that does; a share of the value."""


def compared(folder: Path, machine: dict[str, Any], checks: Sequence[Check]) -> Table | None:
    """A table of the figures with a target beside those of earlier runs; None if no run has one of them.

    Args:
        folder: folder of the saved runs.
        machine: the present machine (`bench.report.machine`); runs on others are left out.
        checks: figures of the present run, which is not in the folder yet.
    """
    runs = _runs(folder, machine)
    rows = []
    for check in checks:
        earlier = [run[check.name] for run in runs if check.name in run]
        if not earlier:
            continue
        verdict = "[red]worse[/]" if worse(check, earlier) else ""
        rows.append(
            [
                check.name,
                f"{check.value:.3g}",
                f"{earlier[-1]:.3g}",
                f"{median(earlier):.3g}",
                str(len(earlier)),
                verdict,
            ]
        )
    columns = ["", "now", "last", "median", "runs", ""]
    return table("Compared with earlier runs on this machine", columns, rows) if rows else None


def worse(check: Check, earlier: Sequence[float]) -> bool:
    """True if the figure is worse than the median of earlier ones by more than the noise.

    Noise is the largest distance of an earlier figure from that median, and at least 15 %.
    """
    middle = median(earlier)
    spread = max(abs(value - middle) for value in earlier) if len(earlier) >= _LEAST_RUNS else 0.0
    noise = max(spread, _NOISE * middle)
    return check.value < middle - noise if check.at_least else check.value > middle + noise


def _runs(folder: Path, machine: dict[str, Any]) -> list[dict[str, float]]:
    """Figures by name of the latest runs, the oldest first."""
    found = []
    for path in sorted(folder.glob("*.json")):
        saved = json.loads(path.read_text(encoding="utf-8"))
        if all(saved["machine"][trait] == machine[trait] for trait in ("cpu", "cpus")):
            found.append({check["name"]: float(check["value"]) for check in saved["checks"]})
    return found[-_RUNS:]
