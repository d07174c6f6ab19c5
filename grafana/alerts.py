"""Writes the alert rules for Prometheus in `grafana/rules/`: `python grafana/alerts.py`; a test keeps them current.

Change alerts here, never in the YAML. Each has a run-book under its name in `docs/runbooks.md`; `--runbooks URL` writes
links to a copy of that page elsewhere.
"""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

import yaml

__all__ = ["ALERTS", "RULES", "Alert", "render"]

RULES = Path(__file__).with_name("rules") / "jms-bridge.yml"
_RUNBOOKS = "docs/runbooks.md"
_LEADS = "unless on (instance) jmsbridge_leader == 0"
"""A standby is not ready, and not connected, on purpose."""
_ONE_BRIDGE = "job, bridge"
"""Labels that the bridges of one `bridge.id` share; for `bridge` see `docs/operations.md`."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Alerting rule."""

    name: str
    expression: str
    """PromQL; each series of its result is an alert."""
    lasts: str
    """Time for which the condition must hold, as Prometheus writes durations."""
    severity: str
    """`critical`: messages do not flow or are lost; `warning`: an operator has to act before; `none`: no news."""
    summary: str
    """Summary in one line, with `{{ $labels.… }}` and `{{ $value }}`."""

    @property
    def heading(self) -> str:
        """Anchor of the run-book on the page of run-books, as GitHub makes it."""
        return self.name.lower()


ALERTS: tuple[Alert, ...] = (
    Alert(
        "JmsBridgeDown",
        'up{job="jms-bridge"} == 0',
        "1m",
        "critical",
        "The bridge at {{ $labels.instance }} gives no figures: it is down, or cannot be reached.",
    ),
    Alert(
        "JmsBridgeAbsent",
        # Of a target that is removed, Prometheus has no `up` at all.
        f'absent(up{{job="jms-bridge"}}) or group by ({_ONE_BRIDGE}) (last_over_time(up{{job="jms-bridge"}}[1h])) '
        f'unless group by ({_ONE_BRIDGE}) (up{{job="jms-bridge"}})',
        "5m",
        "critical",
        "Prometheus does not find the bridge{{ with $labels.bridge }} {{ . }}{{ end }}: all its targets are gone.",
    ),
    Alert(
        "JmsBridgeWithoutLeader",
        f"max by ({_ONE_BRIDGE}) (jmsbridge_leader) == 0",
        "1m",
        "critical",
        "Bridges {{ with $labels.bridge }}of {{ . }} {{ end }}run, but none of them leads: nothing is routed.",
    ),
    Alert(
        "JmsBridgePartNotReady",
        f"jmsbridge_component_up == 0 unless on (instance, component) jmsbridge_component_paused == 1 {_LEADS}",
        "2m",
        "critical",
        "{{ $labels.component }} of {{ $labels.instance }} is not ready.",
    ),
    Alert(
        "JmsBridgePartPaused",
        "jmsbridge_component_paused == 1",
        "1h",
        "warning",
        "{{ $labels.component }} of {{ $labels.instance }} has been paused by an operator for an hour.",
    ),
    Alert(
        "JmsBridgeDisconnected",
        f"jmsbridge_connection_up == 0 {_LEADS}",
        "2m",
        "critical",
        "{{ $labels.component }} of {{ $labels.instance }} has no connection to its broker.",
    ),
    Alert(
        "JmsBridgeRestartsOften",
        "increase(jmsbridge_component_restarts_total[15m]) > 3",
        "0m",
        "warning",
        "{{ $labels.component }} of {{ $labels.instance }} died {{ $value | humanize }} times within 15 minutes.",
    ),
    Alert(
        "JmsBridgeRouterIsLate",
        "max by (instance) (jmsbridge_journal_lag_seconds) > 60",
        "2m",
        "warning",
        "The oldest message that {{ $labels.instance }} has not routed waits for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "JmsBridgeRouterStands",
        "max by (instance) (jmsbridge_journal_lag_seconds) > 300",
        "2m",
        "critical",
        "The oldest message that {{ $labels.instance }} has not routed waits for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "JmsBridgeRouterShortOfMemory",
        "max by (instance) (rate(jmsbridge_spark_gc_seconds_total[5m])) > 0.2",
        "10m",
        "warning",
        "Spark of {{ $labels.instance }} spends {{ $value | humanizePercentage }} of its time on collecting garbage.",
    ),
    Alert(
        "JmsBridgeExecutorShortOfMemory",
        "max by (instance, executor) (rate(jmsbridge_spark_executor_gc_seconds_total[5m])) > 0.2",
        "10m",
        "warning",
        "Executor {{ $labels.executor }} of {{ $labels.instance }} spends {{ $value | humanizePercentage }} of its "
        "time on collecting garbage.",
    ),
    Alert(
        "JmsBridgeMessagesLost",
        'increase(jmsbridge_unrouted_messages_total{reason="retention"}[15m]) > 0',
        "0m",
        "critical",
        "The journal's retention removed {{ $value | humanize }} messages before {{ $labels.instance }} routed them.",
    ),
    Alert(
        "JmsBridgeMessagesUnmatched",
        # A series that has just begun has no increase: its first value counts as one.
        "sum by (instance, address) (jmsbridge_unmatched_messages_total - (jmsbridge_unmatched_messages_total offset "
        "10m or 0 * jmsbridge_unmatched_messages_total)) > 0",
        "0m",
        "warning",
        "No route took {{ $value | humanize }} messages to {{ $labels.address }} within ten minutes.",
    ),
    Alert(
        "JmsBridgeRecordsGone",
        "sum by (instance, source) (increase(jmsbridge_source_lost_records_total[15m])) > 0 or "
        'sum by (instance, topology) (increase(jmsbridge_topology_unprocessed_records_total{reason="retention"}[15m])) '
        "> 0",
        "0m",
        "critical",
        "Kafka removed {{ $value | humanize }} records before {{ $labels.source }}{{ $labels.topology }} of "
        "{{ $labels.instance }} had read them.",
    ),
    Alert(
        "JmsBridgeMessagesFail",
        "sum by (instance, route, destination, reason, policy) (increase(jmsbridge_failed_messages_total[10m])) > 0",
        "0m",
        "warning",
        "{{ $value | humanize }} messages of route {{ $labels.route }} to {{ $labels.destination }} failed within ten "
        "minutes: {{ $labels.reason }} ({{ $labels.policy }}).",
    ),
    Alert(
        "JmsBridgeSourceRejects",
        "sum by (instance, source, reason) (increase(jmsbridge_source_rejected_messages_total[10m])) > 0",
        "0m",
        "warning",
        "Source {{ $labels.source }} rejected {{ $value | humanize }} messages within ten minutes: "
        "{{ $labels.reason }}.",
    ),
    Alert(
        "JmsBridgeSinkRejects",
        "sum by (instance, sink, reason) (increase(jmsbridge_sink_rejected_messages_total[10m])) > 0",
        "0m",
        "warning",
        "The system behind sink {{ $labels.sink }} refused {{ $value | humanize }} messages within ten minutes.",
    ),
    Alert(
        "JmsBridgeSinkIsBehind",
        "jmsbridge_sink_lag_records > 1000",
        "10m",
        "warning",
        "{{ $labels.component }} of {{ $labels.instance }} has had more than 1,000 messages to give away for ten "
        "minutes; now {{ $value | humanize }}.",
    ),
    Alert(
        "JmsBridgeTopologyIsBehind",
        "max by (instance, topology) (min_over_time(jmsbridge_topology_lag_records[10m])) > 10000",
        "5m",
        "warning",
        "Topology {{ $labels.topology }} of {{ $labels.instance }} has had more than 10,000 records to process for "
        "fifteen minutes; at least {{ $value | humanize }}.",
    ),
    Alert(
        "JmsBridgeTopologyRejects",
        "sum by (instance, topology, node) "
        '(increase(jmsbridge_topology_unprocessed_records_total{reason="rejected_records"}[10m])) > 0',
        "0m",
        "warning",
        "Node {{ $labels.node }} of topology {{ $labels.topology }} rejected {{ $value | humanize }} records within "
        "ten minutes.",
    ),
    Alert(
        "JmsBridgeTopologyDropsLateRecords",
        "sum by (instance, topology, node) "
        '(increase(jmsbridge_topology_unprocessed_records_total{reason="late_records"}[10m])) > 0',
        "0m",
        "warning",
        "{{ $value | humanize }} records came too late for node {{ $labels.node }} of topology {{ $labels.topology }} "
        "within ten minutes, and are missing in its results.",
    ),
    Alert(
        "JmsBridgeDiskIsFull",
        "min by (instance, folder) (jmsbridge_disk_free_bytes) < 100 * 1024 * 1024",
        "1m",
        "critical",
        "The disk of {{ $labels.folder }} of {{ $labels.instance }} has {{ $value | humanize1024 }}B left.",
    ),
    Alert(
        "JmsBridgeDiskIsLow",
        "min by (instance, folder) (jmsbridge_disk_free_bytes) < 1024 * 1024 * 1024",
        "5m",
        "warning",
        "The disk of {{ $labels.folder }} of {{ $labels.instance }} has {{ $value | humanize1024 }}B left.",
    ),
    Alert(
        "JmsBridgeCertificateHasExpired",
        "min by (instance, file) (jmsbridge_certificate_expiry_timestamp_seconds - time()) <= 0",
        "0m",
        "critical",
        "The certificate in {{ $labels.file }} of {{ $labels.instance }} has expired: new connections fail.",
    ),
    Alert(
        "JmsBridgeCertificateExpires",
        "0 < min by (instance, file) (jmsbridge_certificate_expiry_timestamp_seconds - time()) < 14 * 86400",
        "1h",
        "warning",
        "The certificate in {{ $labels.file }} of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "JmsBridgeDeadLettersWait",
        "max by (instance) (jmsbridge_dead_letters_oldest_seconds) > 86400",
        "5m",
        "warning",
        "The oldest open dead letter of {{ $labels.instance }} waits for {{ $value | humanizeDuration }}; the topic's "
        "retention removes it some day.",
    ),
    Alert(
        "JmsBridgeQuarantineGrows",
        "delta(jmsbridge_dead_letters_quarantined[1h]) > 0",
        "0m",
        "warning",
        "{{ $value | humanize }} messages of {{ $labels.instance }} failed again and again, and are in quarantine.",
    ),
    Alert(
        "JmsBridgeReloadRefused",
        "jmsbridge_config_last_reload_success == 0",
        "0m",
        "warning",
        "{{ $labels.instance }} refused a changed configuration: the one before it is in force.",
    ),
    Alert(
        "JmsBridgeReconnectsOften",
        "increase(jmsbridge_source_reconnects_total[15m]) > 5 or increase(jmsbridge_sink_reconnects_total[15m]) > 5",
        "0m",
        "warning",
        "{{ $labels.source }}{{ $labels.sink }} of {{ $labels.instance }} connected {{ $value | humanize }} times "
        "within 15 minutes.",
    ),
    Alert(
        "JmsBridgeRequestsTimeOut",
        "sum by (instance, sink) (increase(jmsbridge_sink_request_timeouts_total[10m])) > 0",
        "0m",
        "warning",
        "{{ $value | humanize }} requests through sink {{ $labels.sink }} had no reply within ten minutes.",
    ),
    Alert(
        "JmsBridgeWatchdog",
        "vector(1)",
        "0m",
        "none",
        "Fires always: where this alert ends, Prometheus or Alertmanager is down.",
    ),
)
"""By importance."""


def render(runbooks: str = _RUNBOOKS) -> str:
    """The file for `rule_files` of Prometheus; `runbooks` is the address of the page of run-books."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "runbook_url": f"{runbooks}#{alert.heading}"},
        }
        for alert in ALERTS
    ]
    groups = {"groups": [{"name": "jms-bridge", "rules": rules}]}
    return "# Made by grafana/alerts.py; change alerts there.\n" + yaml.safe_dump(groups, sort_keys=False, width=1000)


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--runbooks", default=_RUNBOOKS, metavar="URL", help="the page of run-books (%(default)s)")
    RULES.write_text(render(parser.parse_args().runbooks), encoding="utf-8")
