"""Comparison of a benchmark with earlier runs: what counts as worse, and which runs are compared with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.history import compared, worse
from bench.report import Check

MACHINE = {"cpu": "AMD EPYC", "cpus": 2}


@pytest.mark.parametrize(
    ("value", "at_least", "earlier", "expected"),
    [
        (0.84, True, [1.0], True),
        (0.86, True, [1.0], False),
        (2.0, True, [1.0], False),
        (1.16, False, [1.0, 1.0, 1.0], True),
        (1.14, False, [1.0, 1.0, 1.0], False),
        (0.1, False, [1.0], False),
        # The earlier runs themselves differ by 40 %.
        (1.35, False, [1.0, 1.4, 1.0], False),
        (1.45, False, [1.0, 1.4, 1.0], True),
    ],
)
def test_a_figure_is_worse_only_beyond_the_noise(
    value: float, at_least: bool, earlier: list[float], expected: bool
) -> None:
    assert worse(Check("rate", value, 1.0, at_least=at_least), earlier) is expected


def test_runs_on_other_machines_and_other_figures_are_left_out(tmp_path: Path) -> None:
    for number, (cpus, name, value) in enumerate(
        [(2, "rate", 1.0), (8, "rate", 9.0), (2, "other", 1.0), (2, "rate", 2.0)]
    ):
        run = {"machine": {"cpu": "AMD EPYC", "cpus": cpus}, "checks": [{"name": name, "value": value}]}
        (tmp_path / f"2026010{number}-000000.json").write_text(json.dumps(run))
    shown = compared(tmp_path, MACHINE, [Check("rate", 1.0, 1.1, at_least=True), Check("new", 1.0, 1.0)])
    console = Console(width=100, record=True)
    console.print(shown)
    line = next(line for line in console.export_text().splitlines() if "rate" in line)
    assert [cell.strip() for cell in line.split("│")[1:-1]] == ["rate", "1", "2", "1.5", "2", "worse"]


def test_nothing_is_shown_without_earlier_runs(tmp_path: Path) -> None:
    assert compared(tmp_path, MACHINE, [Check("rate", 1.0, 1.0)]) is None
