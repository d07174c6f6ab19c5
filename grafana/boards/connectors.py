"""Sources and sinks: what comes in, what goes out, what waits, and whether they are connected."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, choice, frame
from boards.panels import draw, number, on_off

__all__ = ["connectors"]

_SOURCE = f'{BRIDGE}, source=~"$source"'
_SINK = f'{BRIDGE}, sink=~"$sink"'


def connectors() -> Dashboard:
    """Dashboard of one source and sink, or of all."""
    board = frame(
        "connectors", "JMS bridge: sources and sinks", "From brokers into the journal, and from topics to brokers."
    )
    board.with_variable(choice("source", "Source", f"jmsbridge_source_received_messages_total{{{BRIDGE}}}"))
    board.with_variable(choice("sink", "Sink", f"jmsbridge_sink_delivered_messages_total{{{BRIDGE}}}"))
    _glance(board)
    _sources(board)
    _sinks(board)
    _requests(board)
    return board


def _rate(of: str, name: str, by: str = "") -> str:
    picked = _SOURCE if of == "source" else _SINK
    return f"sum by ({of}{by}) (rate(jmsbridge_{of}_{name}_total{{{picked}}}[$__rate_interval]))"


def _glance(board: Dashboard) -> None:
    board.with_row(Row("At a glance")).with_panel(
        number(
            "Received",
            "Messages per second delivered by the JMS brokers.",
            "mps",
            f"sum({_rate('source', 'received_messages')})",
        )
    ).with_panel(
        number(
            "Delivered",
            "Messages per second that the systems behind sinks have confirmed.",
            "mps",
            f"sum({_rate('sink', 'delivered_messages')})",
        )
    ).with_panel(
        number(
            "Waiting for sinks",
            "Routed messages that the systems behind sinks have not confirmed yet.",
            "short",
            f"sum(jmsbridge_sink_lag_records{{{BRIDGE}}})",
            limits=[(10_000, "orange"), (1_000_000, "red")],
        )
    ).with_panel(
        number(
            "Connections down",
            "Connections to brokers and Kafka that are down now.",
            "none",
            f"sum(1 - jmsbridge_connection_up{{{BRIDGE}}})",
            limits=[(1, "red")],
        )
    ).with_panel(
        on_off(
            "Connections",
            "Whether each source and sink is connected to its broker, and the router to Kafka.",
            f"max by (component) (jmsbridge_connection_up{{{BRIDGE}}})",
            "{{component}}",
            span=24,
        )
    )


def _sources(board: Dashboard) -> None:
    steps = ("received", "journaled", "acknowledged")
    board.with_row(Row("Sources")).with_panel(
        draw(
            "From broker to journal",
            "Messages per second received, confirmed by the journal and acknowledged to the broker. The three lines "
            "of a source lie on each other; a gap that stays means that the journal or the broker is slow.",
            "mps",
            *((_rate("source", f"{step}_messages"), f"{{{{source}}}} {step}") for step in steps),
            span=24,
        )
    ).with_panel(
        draw(
            "Rejected",
            "Messages per second that could not enter the journal as they are.",
            "mps",
            (_rate("source", "rejected_messages", ", reason"), "{{source}}: {{reason}}"),
        )
    ).with_panel(
        draw(
            "Waiting at the brokers",
            "Messages that wait at the system of each source. Growth means that the bridge takes them too slowly, or "
            "not at all. A source without a line does not know it: `jms-bridge status` says why.",
            "short",
            (f"max by (source) (jmsbridge_source_waiting_messages{{{_SOURCE}}})", "{{source}}"),
        )
    ).with_panel(
        draw(
            "Outages of sources",
            "Connections made anew per second, the messages that came again and were left out because the journal had "
            "them, those without an id, which would not be recognised, those that Kafka removed unread, and headers "
            "that could not be kept.",
            "short",
            (_rate("source", "reconnects"), "{{source}}"),
            (_rate("source", "duplicates"), "{{source}}: came again"),
            (_rate("source", "unidentified_messages"), "{{source}}: without an id"),
            (_rate("source", "lost_records"), "{{source}}: removed unread"),
            (_rate("source", "headers_not_kept"), "{{source}}: headers not kept"),
        )
    )


def _sinks(board: Dashboard) -> None:
    board.with_row(Row("Sinks")).with_panel(
        draw(
            "Delivered by sink",
            "Messages per second that the system behind each sink has confirmed.",
            "mps",
            (_rate("sink", "delivered_messages"), "{{sink}}"),
        )
    ).with_panel(
        draw(
            "Waiting, by sink",
            "Routed messages that the system behind a sink has not confirmed yet. Growth means that it is slow or "
            "gone.",
            "short",
            (f"max by (component) (jmsbridge_sink_lag_records{{{BRIDGE}}})", "{{component}}"),
        )
    ).with_panel(
        draw(
            "Refused by the other side, or expired",
            "Messages per second that a sink's system will never take, by what was done with them, and those that "
            "expired before they were sent.",
            "mps",
            (_rate("sink", "rejected_messages", ", policy"), "{{sink}} ({{policy}})"),
            (_rate("sink", "expired_messages"), "{{sink}}: expired"),
            (_rate("sink", "headers_not_kept"), "{{sink}}: headers not kept"),
        )
    ).with_panel(
        draw(
            "Outages of sinks",
            "Connections made anew per second.",
            "short",
            (_rate("sink", "reconnects"), "{{sink}}"),
        )
    )


def _requests(board: Dashboard) -> None:
    board.with_row(Row("Requests and replies")).with_panel(
        draw(
            "Requests",
            "Per second: requests sent, replies taken back, and requests that had no reply in time.",
            "reqps",
            (_rate("sink", "requests"), "{{sink}} requests"),
            (_rate("sink", "replies"), "{{sink}} replies"),
            (_rate("sink", "request_timeouts"), "{{sink}} timed out"),
            span=24,
        )
    )
