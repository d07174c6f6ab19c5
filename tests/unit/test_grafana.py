"""The dashboards, without Grafana: current, complete, and about metrics that exist."""

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from engine.telemetry.metrics import METRICS, MetricType

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "grafana/dashboards").glob("*.json"))


def panels(file: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(file.read_text())["panels"] if panel["type"] != "row"]


def names() -> dict[str, set[str]]:
    series = {}
    for metric in METRICS:
        suffixes = ("_bucket", "_sum", "_count") if metric.kind is MetricType.HISTOGRAM else ("",)
        bounds = {"le"} if metric.kind is MetricType.HISTOGRAM else set()
        labels = {*metric.labels, "bridge", "instance", "job"} | bounds
        series |= {metric.name + suffix: labels for suffix in suffixes}
    return series


def test_the_dashboards_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "grafana")
    assert import_module("build").rendered() == {file.name: file.read_text() for file in FILES}, (
        "run: python grafana/build.py"
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_panel_says_what_it_shows_in_which_unit(file: Path) -> None:
    for panel in panels(file):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]
        assert re.search(r'"unit": "\w+"', json.dumps(panel)), panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_metric_and_label_in_a_dashboard_exists(file: Path) -> None:
    known = names()
    for panel in panels(file):
        for target in panel["targets"]:
            for name, chosen in re.findall(r"(jmsbridge_\w+)\{([^}]*)\}", target["expr"]):
                assert name in known, panel["title"]
                assert set(re.findall(r"(\w+)=", chosen)) <= known[name]
            (used,) = [set(re.findall(r"jmsbridge_\w+", target["expr"]))]
            assert used <= known.keys(), panel["title"]
            for group in re.findall(r"by \(([^)]*)\)", target["expr"]):
                assert {label.strip() for label in group.split(",")} <= set().union(*(known[name] for name in used))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_rates_are_taken_over_the_interval_that_grafana_works_out(file: Path) -> None:
    windows = set(re.findall(r"\[([^]]*)\]", " ".join(t["expr"] for p in panels(file) for t in p["targets"])))
    assert windows - {"$__range"} == {"$__rate_interval"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_panels_do_not_overlap(file: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(file.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_every_metric_is_on_a_dashboard() -> None:
    shown = " ".join(file.read_text() for file in FILES)
    assert [metric.name for metric in METRICS if metric.name not in shown] == []


def test_restarts_are_a_count() -> None:
    shown = [each for file in FILES for each in panels(file) if each["title"] == "Restarts"]
    assert shown
    assert not [each for each in shown if re.search(r"rate\(|increase\(", each["targets"][0]["expr"])]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_query_is_of_the_bridges_that_are_chosen(file: Path) -> None:
    variables = [each["name"] for each in json.loads(file.read_text())["templating"]["list"]]
    assert variables[:3] == ["datasource", "bridge", "instance"]
    for panel in panels(file):
        for target in panel["targets"]:
            for chosen in re.findall(r"jmsbridge_\w+(\{[^}]*\})?", target["expr"]):
                assert 'bridge=~"$bridge", instance=~"$instance"' in chosen, panel["title"]
