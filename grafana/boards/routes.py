"""Dashboard of the routes: rates, latency, failures, and messages without a route."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, choice, frame
from boards.panels import draw, heat, number

__all__ = ["routes"]

_PICKED = f'{BRIDGE}, route=~"$route"'
_BUCKET = f"jmsbridge_routing_latency_seconds_bucket{{{BRIDGE}}}"


def routes() -> Dashboard:
    """Dashboard of one route, or of all."""
    board = frame("routes", "JMS bridge: routes", "What each route takes, how long it takes, and what fails.")
    board.with_variable(choice("route", "Route", f"jmsbridge_routed_messages_total{{{BRIDGE}}}"))
    _sums(board)
    _traffic(board)
    _failures(board)
    _latency(board)
    return board


def _sums(board: Dashboard) -> None:
    def total(metric: str, picked: str) -> str:
        return f"sum(increase(jmsbridge_{metric}_messages_total{{{picked}}}[$__range]))"

    board.with_row(Row("In the time shown")).with_panel(
        number("Routed", "Messages sent to destination topics.", "short", total("routed", _PICKED), span=8)
    ).with_panel(
        number(
            "Failed",
            "Messages that failed softly, those that no route wanted among them.",
            "short",
            total("failed", f'{BRIDGE}, route=~"$route|-"'),
            limits=[(1, "orange")],
            span=8,
        )
    ).with_panel(
        number(
            "Passed over",
            "Messages that did not fail, but were routed nowhere.",
            "short",
            total("unrouted", BRIDGE),
            span=8,
        )
    )


def _traffic(board: Dashboard) -> None:
    board.with_row(Row("Traffic")).with_panel(
        draw(
            "Routed by route",
            "Messages per second that each route has sent to its topic. A route at 0 matches nothing: `jms-bridge "
            "explain` says why for one message.",
            "mps",
            (f"sum by (route) (rate(jmsbridge_routed_messages_total{{{_PICKED}}}[$__rate_interval]))", "{{route}}"),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Routed by topic",
            "Messages per second that each destination topic gets from the bridge.",
            "mps",
            (f"sum by (topic) (rate(jmsbridge_routed_messages_total{{{_PICKED}}}[$__rate_interval]))", "{{topic}}"),
            stacked=True,
        )
    )


def _failures(board: Dashboard) -> None:
    board.with_row(Row("Failures")).with_panel(
        draw(
            "Failed by destination and reason",
            "Messages per second that failed softly, with what was done with them. A route `-` stands for messages "
            "that none wanted.",
            "mps",
            (
                "sum by (route, destination, reason, policy) "
                f'(rate(jmsbridge_failed_messages_total{{{BRIDGE}, route=~"$route|-"}}[$__rate_interval]))',
                "{{route}} > {{destination}}: {{reason}} ({{policy}})",
            ),
        )
    ).with_panel(
        draw(
            "Not routed",
            "Messages per second passed over without a failure: unmatched, expired, from this bridge itself, or not "
            "durable.",
            "mps",
            (
                f"sum by (reason) (rate(jmsbridge_unrouted_messages_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "Taken by no route",
            "Messages per second that no route took, by address. They stay in the journal: `jms-bridge journal replay "
            "--unrouted` routes them again.",
            "mps",
            (
                f"sum by (address) (rate(jmsbridge_unmatched_messages_total{{{BRIDGE}}}[$__rate_interval]))",
                "{{address}}",
            ),
        )
    )


def _latency(board: Dashboard) -> None:
    quantiles = [
        (f"histogram_quantile({share}, sum by (le) (rate({_BUCKET}[$__rate_interval])))", name)
        for share, name in ((0.5, "median"), (0.95, "p95"), (0.99, "p99"))
    ]
    average = f"max(jmsbridge_routing_latency_average_seconds{{{BRIDGE}}})", "average of the last minute"
    board.with_row(Row("Latency, of all routes")).with_panel(
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
            f"sum by (le) (rate({_BUCKET}[$__rate_interval]))",
        )
    )
