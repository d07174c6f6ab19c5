"""Is it healthy, how late is it, how much comes through, what fails: all on one screen, first things first."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, frame
from boards.panels import draw, number, on_off

__all__ = ["overview"]


def overview() -> Dashboard:
    """The one to keep open."""
    board = frame(
        "overview", "JMS bridge", "Messages from JMS sources through the journal and the routes to where they belong."
    )
    _health(board)
    _traffic(board)
    _delay(board)
    _faults(board)
    return board


def _health(board: Dashboard) -> None:
    bad_from_one = [(1.0, "red")]
    up, paused = f"jmsbridge_component_up{{{BRIDGE}}}", f"jmsbridge_component_paused{{{BRIDGE}}}"
    board.with_row(Row("Healthy?")).with_panel(
        number(
            "Components not ready",
            "Processes that are not ready now, paused ones and those of a standby left out. /ready says why.",
            "none",
            _not_up(f"({up} unless on (instance, component) {paused} == 1)"),
            limits=bad_from_one,
        )
    ).with_panel(
        number(
            "Connections down",
            "Connections to JMS brokers and Kafka that are down now, those of a standby left out.",
            "none",
            _not_up(f"jmsbridge_connection_up{{{BRIDGE}}}"),
            limits=bad_from_one,
        )
    ).with_panel(
        number(
            "Open dead letters",
            "Messages that wait for a person: `jms-bridge dlt list`.",
            "short",
            f'sum(jmsbridge_dead_letters{{{BRIDGE}, reason!="route-paused"}})',
            limits=[(1, "orange")],
        )
    ).with_panel(
        number(
            "Oldest unrouted",
            "Age of the oldest journal record that is not routed yet.",
            "s",
            f"max(jmsbridge_journal_lag_seconds{{{BRIDGE}}})",
            limits=[(60, "orange"), (300, "red")],
        )
    ).with_panel(
        on_off(
            "Components",
            "Whether each process of the bridge runs and is ready, or is paused.",
            f"max by (component) ({up} + 2 * {paused} or {up})",
            "{{component}}",
            span=24,
        )
    )


def _not_up(up: str) -> str:
    """Query for the number of parts for which `up` is 0, except those of standbys; no value without a bridge."""
    standby = f"sum(1 - {up} and on (instance) jmsbridge_leader{{{BRIDGE}}} == 0)"
    return f"sum(1 - {up}) - ({standby} or 0 * sum({up}))"


def _traffic(board: Dashboard) -> None:
    steps = {
        "received": "source_received_messages_total",
        "routed": "routed_messages_total",
        "delivered by sinks": "sink_delivered_messages_total",
    }
    board.with_row(Row("How much?")).with_panel(
        draw(
            "Messages",
            "Per second: delivered by the brokers, sent to destination topics (once for each route), and confirmed by "
            "the systems behind sinks.",
            "mps",
            *((f"sum(rate(jmsbridge_{name}{{{BRIDGE}}}[$__rate_interval]))", step) for step, name in steps.items()),
        )
    ).with_panel(
        draw(
            "Routed by topic",
            "Messages per second that each destination topic gets from the bridge.",
            "mps",
            (f"sum by (topic) (rate(jmsbridge_routed_messages_total{{{BRIDGE}}}[$__rate_interval]))", "{{topic}}"),
            stacked=True,
        )
    )


def _delay(board: Dashboard) -> None:
    bucket = f"jmsbridge_routing_latency_seconds_bucket{{{BRIDGE}}}"
    quantiles = [
        (f"histogram_quantile({share}, sum by (le) (rate({bucket}[$__rate_interval])))", name)
        for share, name in ((0.5, "median"), (0.99, "p99"))
    ]
    board.with_row(Row("How late?")).with_panel(
        draw("Routing latency", "From arrival in the journal to routing.", "s", *quantiles, span=8)
    ).with_panel(
        draw(
            "Journal lag",
            "Journal records not routed yet. Growth means that more comes in than the router takes, or that it stands.",
            "short",
            (f"sum by (partition) (jmsbridge_journal_lag_records{{{BRIDGE}}})", "partition {{partition}}"),
            stacked=True,
            span=8,
        )
    ).with_panel(
        draw(
            "Waiting for sinks",
            "Routed messages that the system behind a sink has not confirmed yet. Growth means that it is slow or "
            "gone.",
            "short",
            (f"max by (component) (jmsbridge_sink_lag_records{{{BRIDGE}}})", "{{component}}"),
            span=8,
        )
    )


def _faults(board: Dashboard) -> None:
    board.with_row(Row("What fails?")).with_panel(
        draw(
            "Failed messages",
            "Per second, by route and reason. A route `-` stands for messages that none wanted.",
            "mps",
            (
                f"sum by (route, reason) (rate(jmsbridge_failed_messages_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{route}}: {{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "Restarts",
            "How often each process died and was started again since its bridge started.",
            "short",
            (f"sum by (component) (jmsbridge_component_restarts_total{{{BRIDGE}}})", "{{component}}"),
        )
    )
