"""The alert rules: current, about metrics that exist, each with a run-book."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from engine.telemetry.metrics import METRICS, MetricType

ROOT = Path(__file__).parents[2]
RULES = ROOT / "grafana/rules/jms-bridge.yml"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}
TARGET = {"instance", "job", "bridge"}
"""Labels that Prometheus gives to what it scrapes."""


@pytest.fixture
def alerts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that writes the rules."""
    monkeypatch.syspath_prepend(ROOT / "grafana")
    return import_module("alerts")


def test_the_rules_are_current(alerts: ModuleType) -> None:
    assert alerts.render() == RULES.read_text(), "run: python grafana/alerts.py"


def test_every_metric_and_label_exists() -> None:
    known = {metric.name: {*metric.labels, *TARGET} for metric in METRICS if metric.kind is not MetricType.HISTOGRAM}
    for alert in ALERTS.values():
        used = set(re.findall(r"jmsbridge_\w+", alert["expr"]))
        assert used <= known.keys(), alert["alert"]
        labels = set().union(*(known[name] for name in used)) if used else TARGET
        assert set(re.findall(r"\$labels\.(\w+)", alert["annotations"]["summary"])) <= labels, alert["alert"]


@pytest.mark.parametrize("name", ALERTS)
def test_every_alert_has_a_run_book(name: str) -> None:
    page, _, heading = ALERTS[name]["annotations"]["runbook_url"].partition("#")
    text = (ROOT / page).read_text()
    assert heading == name.lower()
    assert f"\n## {name}\n" in text


def test_run_books_can_be_elsewhere(alerts: ModuleType) -> None:
    rules = yaml.safe_load(alerts.render("https://wiki.example/r"))["groups"][0]["rules"]
    urls = [rule["annotations"]["runbook_url"] for rule in rules]
    assert urls == [f"https://wiki.example/r#{name.lower()}" for name in ALERTS]


def test_no_run_book_takes_or_sends_messages_to_see_whether_a_broker_answers() -> None:
    commands = set(re.findall(r"`jms-bridge (\w+)", (ROOT / "docs/runbooks.md").read_text()))
    assert "doctor" in commands
    assert not commands & {"receive", "send", "request"}


def test_what_the_router_stands_at_is_found_as_soon_as_the_alert_fires() -> None:
    (minutes,) = re.findall(
        r"find-hanging [^`]*--max-transaction-timeout (\d+)`", (ROOT / "docs/runbooks.md").read_text()
    )
    seconds = int(re.findall(r"> (\d+)$", ALERTS["JmsBridgeRouterStands"]["expr"])[0])
    assert int(minutes) * 60 < seconds


def test_the_alertmanager_example_names_receivers_and_alerts_that_there_are() -> None:
    example = yaml.safe_load((ROOT / "deploy/alertmanager/alertmanager.yml").read_text())
    receivers = {each["name"] for each in example["receivers"]}
    routes = [example["route"], *example["route"]["routes"]]
    assert {each["receiver"] for each in routes} == receivers
    assert {rule["labels"]["severity"] for rule in ALERTS.values()} == {"critical", "warning", "none"}
    inhibited = [rule[f"{kind}_matchers"] for rule in example["inhibit_rules"] for kind in ("source", "target")]
    matchers = [each for found in (*inhibited, *(each["matchers"] for each in routes[1:])) for each in found]
    named = {name for matcher in matchers for name in re.findall(r'alertname!?="(\w+)"', matcher)}
    assert named <= ALERTS.keys()
    for rule in example["inhibit_rules"]:
        assert set(rule["equal"]) <= {"instance", "folder", "file"}
