"""Metrics, alert rules and dashboards as Prometheus takes them; each alert fires when it has to and not else."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from prometheus_client import generate_latest

from routes.config import loads
from tests.unit.test_alerts import ALERTS, RULES
from tests.unit.test_grafana import FILES, panels
from tests.unit.test_metrics import TWO_ROUTES, everything

if TYPE_CHECKING:
    from pathlib import Path

HERE = 'job="jms-bridge", instance="a:8480"'
FAILED = "jmsbridge_failed_messages_total"
UNPROCESSED = "jmsbridge_topology_unprocessed_records_total"
STANDBY = 'job="jms-bridge", instance="b:8480"'

# By alert: series that make it fire by the given minute, and series that must not. Values are of every minute.
FIRES: dict[str, tuple[int, dict[str, str], dict[str, str]]] = {
    "JmsBridgeDown": (3, {f"up{{{HERE}}}": "0x60"}, {f"up{{{HERE}}}": "1 0 1x60", 'up{job="other"}': "0x60"}),
    "JmsBridgeAbsent": (
        12,
        {f'up{{{HERE}, bridge="a"}}': "1x60", f'up{{{STANDBY}, bridge="b"}}': "1x5 stale"},
        {f'up{{{HERE}, bridge="a"}}': "1 1 stale _ _ 0x60", f'up{{{STANDBY}, bridge="b"}}': "1x60"},
    ),
    "JmsBridgeWithoutLeader": (
        3,
        {f"jmsbridge_leader{{{HERE}}}": "0x60", f"jmsbridge_leader{{{STANDBY}}}": "0x60"},
        {f"jmsbridge_leader{{{HERE}}}": "1x60", f"jmsbridge_leader{{{STANDBY}}}": "0x60"},
    ),
    "JmsBridgePartNotReady": (
        4,
        {f'jmsbridge_component_up{{{HERE}, component="router"}}': "0x60", f"jmsbridge_leader{{{HERE}}}": "1x60"},
        {
            f'jmsbridge_component_up{{{STANDBY}, component="router"}}': "0x60",
            f"jmsbridge_leader{{{STANDBY}}}": "0x60",
            f'jmsbridge_component_up{{{HERE}, component="sink:jms"}}': "0x60",
            f'jmsbridge_component_paused{{{HERE}, component="sink:jms"}}': "1x60",
            f"jmsbridge_leader{{{HERE}}}": "1x60",
        },
    ),
    "JmsBridgePartPaused": (
        62,
        {f'jmsbridge_component_paused{{{HERE}, component="sink:jms"}}': "1x70"},
        {f'jmsbridge_component_paused{{{HERE}, component="sink:jms"}}': "1x30 0x40"},
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
    "JmsBridgeExecutorShortOfMemory": (
        20,
        {f'jmsbridge_spark_executor_gc_seconds_total{{{HERE}, executor="3"}}': "0+15x60"},
        {f'jmsbridge_spark_executor_gc_seconds_total{{{HERE}, executor="3"}}': "0+6x60"},
    ),
    "JmsBridgeMessagesLost": (
        5,
        {f'jmsbridge_unrouted_messages_total{{{HERE}, reason="retention"}}': "0 0 7x60"},
        {f'jmsbridge_unrouted_messages_total{{{HERE}, reason="unmatched"}}': "0+9x60"},
    ),
    "JmsBridgeMessagesUnmatched": (
        5,
        {f'jmsbridge_unmatched_messages_total{{{HERE}, address="a"}}': "_ _ 7x60"},
        {f'jmsbridge_unmatched_messages_total{{{HERE}, address="a"}}': "0x60"},
    ),
    "JmsBridgeRecordsGone": (
        5,
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="retention"}}': "0 0 7x60"},
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="late_records"}}': "0+9x60"},
    ),
    "JmsBridgeMessagesFail": (
        5,
        {f'{FAILED}{{{HERE}, route="r", destination="kafka:t", reason="key-not-found", policy="skip"}}': "0 0 1x60"},
        {f'{FAILED}{{{HERE}, route="r", destination="kafka:t", reason="key-not-found", policy="skip"}}': "5x60"},
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
    "JmsBridgeTopologyIsBehind": (
        20,
        {f'jmsbridge_topology_lag_records{{{HERE}, topology="t"}}': "10001x60"},
        {f'jmsbridge_topology_lag_records{{{HERE}, topology="t"}}': "50000 900 50000 900 50000 50000 9 50000 9x60"},
    ),
    "JmsBridgeTopologyRejects": (
        5,
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="rejected_records"}}': "0 0 7x60"},
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="late_records"}}': "0+9x60"},
    ),
    "JmsBridgeTopologyDropsLateRecords": (
        5,
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="late_records"}}': "0 0 7x60"},
        {f'{UNPROCESSED}{{{HERE}, topology="t", node="n", reason="null_keys"}}': "0+9x60"},
    ),
    "JmsBridgeDiskIsFull": (
        3,
        {f'jmsbridge_disk_free_bytes{{{HERE}, folder="embedded.data"}}': "104857599x60"},
        {f'jmsbridge_disk_free_bytes{{{HERE}, folder="embedded.data"}}': "104857600x60"},
    ),
    "JmsBridgeDiskIsLow": (
        7,
        {f'jmsbridge_disk_free_bytes{{{HERE}, folder="embedded.data"}}': "1073741823x60"},
        {f'jmsbridge_disk_free_bytes{{{HERE}, folder="embedded.data"}}': "1073741824x60"},
    ),
    # The time of these tests begins at 0.
    "JmsBridgeCertificateHasExpired": (
        31,
        {f'jmsbridge_certificate_expiry_timestamp_seconds{{{HERE}, file="a.pem"}}': "1800x60"},
        {f'jmsbridge_certificate_expiry_timestamp_seconds{{{HERE}, file="a.pem"}}': "3600x60"},
    ),
    "JmsBridgeCertificateExpires": (
        62,
        {f'jmsbridge_certificate_expiry_timestamp_seconds{{{HERE}, file="a.pem"}}': "1209600x90"},
        {f'jmsbridge_certificate_expiry_timestamp_seconds{{{HERE}, file="a.pem"}}': "1220000x90"},
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


def test_promtool_finds_nothing_to_improve(promtool: str) -> None:
    metrics = generate_latest(everything(loads(TWO_ROUTES)))
    done = subprocess.run([promtool, "check", "metrics"], input=metrics, capture_output=True)
    assert (done.returncode, done.stdout.decode(), done.stderr.decode()) == (0, "", "")


def test_promtool_takes_them(promtool: str) -> None:
    done = subprocess.run([promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_its_cases() -> None:
    assert FIRES.keys() | {"JmsBridgeWatchdog"} == ALERTS.keys()


@pytest.mark.parametrize("name", FIRES)
def test_an_alert_fires_when_it_has_to_and_not_else(name: str, promtool: str, tmp_path: Path) -> None:
    minute, bad, good = FIRES[name]
    quiet = [firing(name, at, 0) for at in range(40)]
    check(promtool, tmp_path, [(bad, [firing(name, minute, 1)]), (good, quiet)])


def test_without_any_target_the_absence_and_the_watchdog_are_told(promtool: str, tmp_path: Path) -> None:
    told = [firing("JmsBridgeAbsent", 4, 0), firing("JmsBridgeAbsent", 6, 1), firing("JmsBridgeWatchdog", 0, 1)]
    check(promtool, tmp_path, [({}, told)])


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


@pytest.mark.parametrize(
    ("panel", "metric"),
    [("Components not ready", "jmsbridge_component_up"), ("Connections down", "jmsbridge_connection_up")],
)
def test_a_standby_has_no_part_that_is_not_ready(panel: str, metric: str, promtool: str, tmp_path: Path) -> None:
    (overview,) = [file for file in FILES if file.stem == "overview"]
    (shown,) = [each for each in panels(overview) if each["title"] == panel]
    expression = shown["targets"][0]["expr"].replace("$bridge", ".*").replace("$instance", ".*")

    def series(leads: int, first: int, instance: str) -> dict[str, str]:
        return {f'jmsbridge_leader{{instance="{instance}"}}': f"{leads}x2"} | {
            f'{metric}{{instance="{instance}", component="{name}"}}': f"{up}x2"
            for name, up in (("router", first), ("source:s", 1))
        }

    parts = metric == "jmsbridge_component_up"
    cases: list[tuple[dict[str, str], int | None]] = [
        (series(1, 1, "a") | series(0, 0, "b"), 0),
        (series(1, 0, "a") | series(0, 0, "b"), 1),
        (series(1, 0, "a"), 1),
        ({name: value for name, value in series(0, 0, "a").items() if "leader" not in name}, 1),
        (series(1, 0, "a") | {'jmsbridge_component_paused{instance="a", component="router"}': "1x2"}, int(not parts)),
        ({}, None),
    ]
    tests = [
        {
            "input_series": [{"series": name, "values": values} for name, values in given.items()],
            "promql_expr_test": [
                {
                    "expr": expression,
                    "eval_time": "1m",
                    "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
                }
            ],
        }
        for given, value in cases
    ]
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
