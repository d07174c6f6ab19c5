"""Dead letters: how many, how old, why, and how they come in."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, frame
from boards.panels import draw, number

__all__ = ["dead_letters"]


def dead_letters() -> Dashboard:
    """Open dead letters, and dead letters that are made now."""
    board = frame("dead-letters", "JMS bridge: dead letters", "Messages that wait for a person, and why.")
    board.with_row(Row("Waiting")).with_panel(
        number(
            "Open",
            "Dead letters that are neither replayed nor discarded: `jms-bridge dlt list`.",
            "short",
            f'sum(jmsbridge_dead_letters{{{BRIDGE}, reason!="route-paused"}})',
            limits=[(1, "orange")],
            span=8,
        )
    ).with_panel(
        number(
            "Oldest",
            "Age of the oldest open dead letter. The topic's retention removes it in the end, replayed or not.",
            "s",
            f"max(jmsbridge_dead_letters_oldest_seconds{{{BRIDGE}}})",
            limits=[(86_400, "orange")],
            span=8,
        )
    ).with_panel(
        number(
            "In quarantine",
            "Messages that failed again after `routing.max-replays` replays: `jms-bridge dlt list --quarantine`.",
            "short",
            f"sum(jmsbridge_dead_letters_quarantined{{{BRIDGE}}})",
            limits=[(1, "orange")],
            span=8,
        )
    )
    _course(board)
    return board


def _course(board: Dashboard) -> None:
    board.with_row(Row("Over time")).with_panel(
        draw(
            "Open by reason",
            "Replays and discards reduce the number: `jms-bridge dlt replay --all --dry-run` shows what a "
            "replay would do.",
            "short",
            (f"max by (reason) (jmsbridge_dead_letters{{{BRIDGE}}})", "{{reason}}"),
            stacked=True,
        )
    ).with_panel(
        draw(
            "Age of the oldest",
            "Growth means that dead letters are not handled.",
            "s",
            (f"max by (instance) (jmsbridge_dead_letters_oldest_seconds{{{BRIDGE}}})", "{{instance}}"),
        )
    ).with_panel(
        draw(
            "Made by routes",
            "Messages per second that routes could not publish and made dead letters of. A route `-` stands for "
            "messages that none wanted.",
            "mps",
            (
                "sum by (route, reason) (rate(jmsbridge_failed_messages_total"
                f'{{{BRIDGE}, policy="dead-letter"}}[$__rate_interval]))',
                "{{route}}: {{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "Made by sources and sinks",
            "Messages per second that could not enter the journal, or that the system behind a sink refused for good.",
            "mps",
            (
                f"sum by (source, reason) (rate(jmsbridge_source_rejected_messages_total{{{BRIDGE}}}"
                "[$__rate_interval]))",
                "from {{source}}: {{reason}}",
            ),
            (
                "sum by (sink, reason) (rate(jmsbridge_sink_rejected_messages_total"
                f'{{{BRIDGE}, policy="dead-letter"}}[$__rate_interval]))',
                "for {{sink}}: {{reason}}",
            ),
        )
    )
