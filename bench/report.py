"""Results for people (tables), for programs (JSON), and against the project's targets."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Check", "Report", "machine", "save", "table", "targets"]


@dataclass(frozen=True, slots=True)
class Check:
    """A figure that has a target."""

    name: str
    value: float
    target: float
    at_least: bool = False
    """True if the target is a lower bound, else it is an upper one."""

    @property
    def passed(self) -> bool:
        """True if the target is met."""
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True, slots=True)
class Report:
    """Result of one measurement."""

    name: str
    tables: list[Table]
    checks: list[Check]
    details: Any
    """All measured figures, as JSON values."""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column holds names and whose others hold figures."""
    made = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        made.add_column(column, justify="right" if index else "left")
    for row in rows:
        made.add_row(*row)
    return made


def targets(checks: Sequence[Check]) -> Table:
    """Table of the targets, and whether they are met."""
    rows = [
        [
            check.name,
            f"{check.value:.3g}",
            f"{'at least' if check.at_least else 'at most'} {check.target:g}",
            "[green]met[/]" if check.passed else "[red]missed[/]",
        ]
        for check in checks
    ]
    return table("Targets", ["", "measured", "target", ""], rows)


def machine() -> dict[str, Any]:
    """Machine and time of the measurement."""
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpus": os.cpu_count(),
        "cpu": cpu.partition(":")[2].strip(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "load_average": os.getloadavg(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "pyspark": metadata.version("pyspark"),
    }


def save(folder: Path, reports: Sequence[Report], before: dict[str, Any], command: str) -> Path:
    """Writes everything to a JSON file of its own."""
    path = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    found = {
        "command": command,
        "machine": before,
        "checks": [
            {"name": check.name, "value": check.value, "target": check.target, "passed": check.passed}
            for report in reports
            for check in report.checks
        ],
        **{report.name: report.details for report in reports},
    }
    path.write_text(json.dumps(found, indent=1) + "\n")
    return path
