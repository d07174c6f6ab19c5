"""Writes the dashboards in `grafana/dashboards/`: `python grafana/build.py`; a test keeps them current.

Change panels here, never in the JSON. Metrics and labels are those of `engine/telemetry/metrics.py`, described for
people in `docs/metrics.md`.
"""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as model
from panels import draw, heat, number, on_off
from processes import processes

__all__ = ["DASHBOARDS", "overview", "render"]

DASHBOARDS = Path(__file__).with_name("dashboards")
_SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


def overview() -> dashboard.Dashboard:
    """The bridge at a glance, then its routes, sources, journal and processes."""
    board = (
        dashboard.Dashboard("JMS bridge")
        .uid("jms-bridge-overview")
        .description("Messages from JMS sources through the journal and the routes into Kafka topics.")
        .tags(["jms-bridge"])
        .refresh("10s")
        .time("now-30m", "now")
        .timezone("browser")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(_choice("instance", "Bridge", "jmsbridge_build_info"))
        .with_variable(_choice("route", "Route", 'jmsbridge_routed_messages_total{instance=~"$instance"}'))
        .with_variable(_choice("source", "Source", 'jmsbridge_source_received_messages_total{instance=~"$instance"}'))
    )
    _glance(board)
    _routes(board)
    _sources(board)
    _sinks(board)
    _journal(board)
    _dead_letters(board)
    processes(board)
    return board


def render(board: dashboard.Dashboard) -> str:
    """A dashboard as Grafana imports it."""
    built = board.build()
    for identifier, panel in enumerate(built.panels or [], start=1):
        panel.id = identifier
    return JSONEncoder(sort_keys=True, indent=2).encode(built) + "\n"


def _glance(board: dashboard.Dashboard) -> None:
    bad_from_one = [(1, "red")]
    board.with_row(dashboard.Row("At a glance"))
    board.with_panel(
        number(
            "Components not ready",
            "Processes of the bridge that are not ready now. /ready names each and says why.",
            "none",
            'sum(1 - jmsbridge_component_up{instance=~"$instance"})',
            limits=bad_from_one,
        )
    ).with_panel(
        number(
            "Received",
            "Messages per second delivered by the JMS brokers.",
            "mps",
            'sum(rate(jmsbridge_source_received_messages_total{instance=~"$instance", source=~"$source"}'
            "[$__rate_interval]))",
        )
    ).with_panel(
        number(
            "Routed",
            "Messages per second sent to destination topics.",
            "mps",
            'sum(rate(jmsbridge_routed_messages_total{instance=~"$instance", route=~"$route"}[$__rate_interval]))',
        )
    ).with_panel(
        number(
            "Failed",
            "Messages per second that failed softly: skipped, dead-lettered, or the reason of a stop. The panel below "
            "shows route and reason; `jms-bridge dlt list` shows the dead letters.",
            "mps",
            'sum(rate(jmsbridge_failed_messages_total{instance=~"$instance"}[$__rate_interval]))',
            limits=[(0.001, "orange")],
        )
    ).with_panel(
        number(
            "Journal lag",
            "Journal records that are not routed yet, over all partitions.",
            "short",
            'sum(jmsbridge_journal_lag_records{instance=~"$instance"})',
            limits=[(10_000, "orange"), (1_000_000, "red")],
        )
    ).with_panel(
        number(
            "Oldest unrouted",
            "Age of the oldest journal record that is not routed yet.",
            "s",
            'max(jmsbridge_journal_lag_seconds{instance=~"$instance"})',
            limits=[(60, "orange"), (300, "red")],
        )
    ).with_panel(
        number(
            "Latency p99",
            "99 of 100 messages are routed within this time of their arrival in the journal.",
            "s",
            "histogram_quantile(0.99, sum by (le) "
            '(rate(jmsbridge_routing_latency_seconds_bucket{instance=~"$instance"}[$__rate_interval])))',
        )
    ).with_panel(
        number(
            "Connections down",
            "Connections to JMS brokers and Kafka that are down now.",
            "none",
            'sum(1 - jmsbridge_connection_up{instance=~"$instance"})',
            limits=bad_from_one,
        )
    )


def _routes(board: dashboard.Dashboard) -> None:
    picked = 'instance=~"$instance", route=~"$route"'
    bucket = 'jmsbridge_routing_latency_seconds_bucket{instance=~"$instance"}'
    quantiles = [
        (f"histogram_quantile({share}, sum by (le) (rate({bucket}[$__rate_interval])))", name)
        for share, name in ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
    ]
    average = 'max(jmsbridge_routing_latency_average_seconds{instance=~"$instance"})', "average of the last minute"
    board.with_row(dashboard.Row("Routes"))
    board.with_panel(
        draw(
            "Routed by route",
            "Messages per second that each route has sent to its topic. A route at 0 matches nothing: `jms-bridge "
            "explain` says why for one message.",
            "mps",
            (f"sum by (route) (rate(jmsbridge_routed_messages_total{{{picked}}}[$__rate_interval]))", "{{route}}"),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Routed by topic",
            "Messages per second that each destination topic gets from the bridge.",
            "mps",
            (f"sum by (topic) (rate(jmsbridge_routed_messages_total{{{picked}}}[$__rate_interval]))", "{{topic}}"),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Failed by route and reason",
            "Messages per second that failed softly, with what was done with them. A route `-` stands for messages "
            "that none wanted.",
            "mps",
            (
                "sum by (route, reason, policy) "
                '(rate(jmsbridge_failed_messages_total{instance=~"$instance", route=~"$route|-"}'
                "[$__rate_interval]))",
                "{{route}}: {{reason}} ({{policy}})",
            ),
        )
    ).with_panel(
        draw(
            "Not routed",
            "Messages per second passed over without a failure: unmatched, expired, from this bridge itself, or not "
            "durable.",
            "mps",
            (
                'sum by (reason) (rate(jmsbridge_unrouted_messages_total{instance=~"$instance"}[$__rate_interval]))',
                "{{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "Routing latency",
            "Time from arrival in the journal to routing: milliseconds in real-time mode, about half the interval "
            "in batch mode.",
            "s",
            *quantiles,
            average,
        )
    ).with_panel(
        heat(
            "Routing latency, distribution",
            "Messages per second by how long they took; a second band is often an interval's boundary.",
            "s",
            f"sum by (le) (rate({bucket}[$__rate_interval]))",
        )
    )


def _sources(board: dashboard.Dashboard) -> None:
    picked = 'instance=~"$instance", source=~"$source"'
    steps = [
        (f"sum by (source) (rate(jmsbridge_source_{step}_messages_total{{{picked}}}[$__rate_interval]))", step)
        for step in ("received", "journaled", "acknowledged")
    ]
    board.with_row(dashboard.Row("Sources"))
    board.with_panel(
        draw(
            "From broker to journal",
            "Messages per second received, confirmed by the journal and acknowledged to the broker. The three lines "
            "of a source lie on each other; a gap that stays means that the journal or the broker is slow.",
            "mps",
            *((query, f"{{{{source}}}} {step}") for query, step in steps),
        )
    ).with_panel(
        on_off(
            "Connections",
            "Whether each source and sink is connected to its broker, and the router to Kafka.",
            'max by (component) (jmsbridge_connection_up{instance=~"$instance"})',
            "{{component}}",
        )
    ).with_panel(
        draw(
            "Rejected",
            "Messages per second that could not enter the journal as they are.",
            "mps",
            (
                f"sum by (source, reason) (rate(jmsbridge_source_rejected_messages_total{{{picked}}}"
                "[$__rate_interval]))",
                "{{source}}: {{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "Reconnects",
            "Connections made anew, and the messages that came again and were left out because the journal had them.",
            "short",
            (
                f"sum by (source) (increase(jmsbridge_source_reconnects_total{{{picked}}}[$__rate_interval]))",
                "{{source}}",
            ),
            (
                f"sum by (source) (increase(jmsbridge_source_duplicates_total{{{picked}}}[$__rate_interval]))",
                "{{source}}: came again",
            ),
        )
    )


def _sinks(board: dashboard.Dashboard) -> None:
    picked = 'instance=~"$instance"'

    def rate(name: str) -> str:
        return f"sum by (sink) (rate(jmsbridge_sink_{name}_total{{{picked}}}[$__rate_interval]))"

    board.with_row(dashboard.Row("Sinks"))
    board.with_panel(
        draw(
            "Delivered",
            "Messages per second that the system behind each sink has confirmed.",
            "mps",
            (rate("delivered_messages"), "{{sink}}"),
        )
    ).with_panel(
        draw(
            "Waiting for sinks",
            "Routed messages that the system behind a sink has not confirmed yet. Growth means that it is slow or "
            "gone.",
            "short",
            (f"max by (component) (jmsbridge_sink_lag_records{{{picked}}})", "{{component}}"),
        )
    ).with_panel(
        draw(
            "Refused by the other side",
            "Messages per second that a sink's system will never take, by what was done with them; and connections "
            "made anew.",
            "mps",
            (
                f"sum by (sink, policy) (rate(jmsbridge_sink_rejected_messages_total{{{picked}}}[$__rate_interval]))",
                "{{sink}} ({{policy}})",
            ),
            (
                f"sum by (sink) (rate(jmsbridge_sink_reconnects_total{{{picked}}}[$__rate_interval]))",
                "{{sink}} reconnects",
            ),
        )
    ).with_panel(
        draw(
            "Requests",
            "Per second: requests sent, replies taken back, and requests that had no reply in time.",
            "mps",
            (rate("requests"), "{{sink}} requests"),
            (rate("replies"), "{{sink}} replies"),
            (rate("request_timeouts"), "{{sink}} timed out"),
        )
    )


def _journal(board: dashboard.Dashboard) -> None:
    board.with_row(dashboard.Row("Journal"))
    board.with_panel(
        draw(
            "Lag by partition",
            "Journal records not routed yet. Growth means that more comes in than the router takes, or that it stands.",
            "short",
            (
                'sum by (partition) (jmsbridge_journal_lag_records{instance=~"$instance"})',
                "partition {{partition}}",
            ),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Oldest unrouted record",
            "Its age. In batch mode up to one interval is normal.",
            "s",
            ('max by (instance) (jmsbridge_journal_lag_seconds{instance=~"$instance"})', "{{instance}}"),
        )
    )


def _dead_letters(board: dashboard.Dashboard) -> None:
    picked = 'instance=~"$instance"'
    board.with_row(dashboard.Row("Dead letters"))
    board.with_panel(
        draw(
            "Open dead letters by reason",
            "Messages that could not be routed and are neither replayed nor discarded: `jms-bridge dlt list` shows "
            "them, `jms-bridge dlt replay --all --dry-run` what a replay would do.",
            "short",
            (f"max by (reason) (jmsbridge_dead_letters{{{picked}}}) > 0", "{{reason}}"),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Oldest open dead letter",
            "Its age. The topic's retention removes it in the end, replayed or not.",
            "s",
            (f"max by (instance) (jmsbridge_dead_letters_oldest_seconds{{{picked}}})", "{{instance}}"),
            span=6,
        )
    ).with_panel(
        number(
            "In quarantine",
            "Messages that failed again after `routing.max-replays` replays: `jms-bridge dlt list --quarantine`.",
            "short",
            f"sum(jmsbridge_dead_letters_quarantined{{{picked}}})",
            limits=[(1, "orange")],
        )
    )


def _choice(label: str, title: str, series: str) -> dashboard.QueryVariable:
    everything = model.VariableOption(selected=True, text=["All"], value=["$__all"])
    return (
        dashboard.QueryVariable(label)
        .label(title)
        .datasource(_SOURCE)
        .query(f"label_values({series}, {label})")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(multi=True)
        .include_all(include_all=True)
        .all_value(".*")
        .current(everything)
    )


if __name__ == "__main__":
    (DASHBOARDS / "overview.json").write_text(render(overview()))
