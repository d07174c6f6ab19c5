"""The alert rules: current, about metrics that exist, each with a run-book; each fires when it has to and not else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
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
HERE = 'job="jms-bridge", instance="a:8480"'
STANDBY = 'job="jms-bridge", instance="b:8480"'

# By alert: series that make it fire by the given minute, and series that must not. Values are of every minute.
FIRES: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "JmsBridgeDown": (3, {f"up{{{HERE}}}": "0x60"}, {f"up{{{HERE}}}": "1 0 1x60", 'up{job="other"}': "0x60"}),
    "JmsBridgeWithoutLeader": (
        3,
        {f"jmsbridge_leader{{{HERE}}}": "0x60", f"jmsbridge_leader{{{STANDBY}}}": "0x60"},
        {f"jmsbridge_leader{{{HERE}}}": "1x60", f"jmsbridge_leader{{{STANDBY}}}": "0x60"},
    ),
    "JmsBridgePartNotReady": (
        4,
        {f'jmsbridge_component_up{{{HERE}, component="router"}}': "0x60", f"jmsbridge_leader{{{HERE}}}": "1x60"},
        {f'jmsbridge_component_up{{{STANDBY}, component="router"}}': "0x60", f"jmsbridge_leader{{{STANDBY}}}": "0x60"},
    ),
    "JmsBridgeDisconnected": (
        4,
        {f'jmsbridge_connection_up{{{HERE}, component="sink:jms"}}': "0x60"},
        {f'jmsbridge_connection_up{{{HERE}, component="sink:jms"}}': "0 1 0 1 0 1x60"},
    ),
    "JmsBridgeRestartsOften": (
        15,
        {f'jmsbridge_component_restarts_total{{{HERE}, component="router"}}': "0+1x60"},
        {f'jmsbridge_component_restarts_total{{{HERE}, component="router"}}': "0 0 1 1 2x60"},
    ),
    "JmsBridgeRouterIsLate": (
        6,
        {f"jmsbridge_journal_lag_seconds{{{HERE}}}": "0 61x60"},
        {f"jmsbridge_journal_lag_seconds{{{HERE}}}": "59x60"},
    ),
    "JmsBridgeRouterStands": (
        10,
        {f"jmsbridge_journal_lag_seconds{{{HERE}}}": "0+60x60"},
        {f"jmsbridge_journal_lag_seconds{{{HERE}}}": "299x60"},
    ),
    "JmsBridgeRouterShortOfMemory": (
        20,
        {f"jmsbridge_spark_gc_seconds_total{{{HERE}}}": "0+15x60"},
        {f"jmsbridge_spark_gc_seconds_total{{{HERE}}}": "0+6x60"},
    ),
    "JmsBridgeMessagesLost": (
        5,
        {f'jmsbridge_unrouted_messages_total{{{HERE}, reason="retention"}}': "0 0 7x60"},
        {f'jmsbridge_unrouted_messages_total{{{HERE}, reason="unmatched"}}': "0+9x60"},
    ),
    "JmsBridgeMessagesFail": (
        5,
        {f'jmsbridge_failed_messages_total{{{HERE}, route="r", reason="key-not-found", policy="skip"}}': "0 0 1x60"},
        {f'jmsbridge_failed_messages_total{{{HERE}, route="r", reason="key-not-found", policy="skip"}}': "5x60"},
    ),
    "JmsBridgeSourceRejects": (
        5,
        {f'jmsbridge_source_rejected_messages_total{{{HERE}, source="s", reason="too-large"}}': "0 0 1x60"},
        {f'jmsbridge_source_rejected_messages_total{{{HERE}, source="s", reason="too-large"}}': "3x60"},
    ),
    "JmsBridgeSinkRejects": (
        5,
        {f'jmsbridge_sink_rejected_messages_total{{{HERE}, sink="s", reason="refused", policy="skip"}}': "0 0 1x60"},
        {f'jmsbridge_sink_rejected_messages_total{{{HERE}, sink="s", reason="refused", policy="skip"}}': "0x60"},
    ),
    "JmsBridgeSinkIsBehind": (
        12,
        {f'jmsbridge_sink_lag_records{{{HERE}, component="sink:jms"}}': "1001x60"},
        {f'jmsbridge_sink_lag_records{{{HERE}, component="sink:jms"}}': "50000 900 50000 900 50000 900x60"},
    ),
    "JmsBridgeDeadLettersWait": (
        10,
        {f"jmsbridge_dead_letters_oldest_seconds{{{HERE}}}": "86300+60x60"},
        {f"jmsbridge_dead_letters_oldest_seconds{{{HERE}}}": "600+60x60"},
    ),
    "JmsBridgeQuarantineGrows": (
        5,
        {f"jmsbridge_dead_letters_quarantined{{{HERE}}}": "3 3 4x60"},
        {f"jmsbridge_dead_letters_quarantined{{{HERE}}}": "3 3 3 2x60"},
    ),
    "JmsBridgeReloadRefused": (
        2,
        {f"jmsbridge_config_last_reload_success{{{HERE}}}": "1 0x60"},
        {f"jmsbridge_config_last_reload_success{{{HERE}}}": "1x60"},
    ),
    "JmsBridgeReconnectsOften": (
        15,
        {f'jmsbridge_sink_reconnects_total{{{HERE}, sink="s"}}': "0+1x60"},
        {f'jmsbridge_source_reconnects_total{{{HERE}, source="s"}}': "0 1 2 3x60"},
    ),
    "JmsBridgeRequestsTimeOut": (
        5,
        {f'jmsbridge_sink_request_timeouts_total{{{HERE}, sink="s"}}': "0 0 1x60"},
        {f'jmsbridge_sink_request_timeouts_total{{{HERE}, sink="s"}}': "4x60"},
    ),
}


@pytest.fixture(scope="module")
def promtool() -> str:
    return shutil.which("promtool") or pytest.skip("no promtool: switch this test on with `apt-get install prometheus`")


def test_the_rules_are_current() -> None:
    program = "import sys; sys.path.insert(0, 'grafana'); import alerts; print(alerts.render(), end='')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == RULES.read_text(), "run: python grafana/alerts.py"


def test_promtool_takes_them(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_run_books_can_be_elsewhere() -> None:
    program = "import sys; sys.path.insert(0, 'grafana'); import alerts; print(alerts.render('https://wiki.example/r'))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    urls = [rule["annotations"]["runbook_url"] for rule in yaml.safe_load(done.stdout)["groups"][0]["rules"]]
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


def test_every_alert_has_its_cases() -> None:
    assert FIRES.keys() == ALERTS.keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_fires_when_it_has_to_and_not_else(name: str, promtool: str, tmp_path: Path) -> None:
    minute, bad, good = FIRES[name]
    quiet = [firing(name, at, 0) for at in range(40)]
    check(promtool, tmp_path, [(bad, [firing(name, minute, 1)]), (good, quiet)])


def test_a_bridge_that_leads_does_not_hide_one_of_another_id(promtool: str, tmp_path: Path) -> None:
    shared = {f'jmsbridge_leader{{{HERE}, bridge="a"}}': "0x60", f'jmsbridge_leader{{{STANDBY}, bridge="b"}}': "1x60"}
    check(promtool, tmp_path, [(shared, [firing("JmsBridgeWithoutLeader", 3, 1)])])


def check(promtool: str, folder: Path, cases: list[tuple[dict[str, str], list[dict[str, Any]]]]) -> None:
    """That each set of series, with a value a minute, makes the alerts that are expected of it."""
    tests = [
        {"interval": "1m", "input_series": series(values), "promql_expr_test": expected} for values, expected in cases
    ]
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def series(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": numbers} for name, numbers in values.items()]


def firing(name: str, minute: int, count: int) -> dict[str, Any]:
    """That so many alerts of this name fire at that minute."""
    expression = f'count(ALERTS{{alertname="{name}", alertstate="firing"}})'
    found = [{"labels": "{}", "value": count}] if count else []
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": found}
