"""Topologies of users' own: their rate, what they have still to process, what they did not process, their state."""

from __future__ import annotations

from grafana_foundation_sdk.builders.dashboard import Dashboard, Row

from boards.frame import BRIDGE, choice, frame
from boards.panels import draw, number

__all__ = ["topologies"]

_CHOSEN = f'{BRIDGE}, topology=~"$topology"'
_REJECTED = f'{_CHOSEN}, reason="rejected_records"'


def topologies() -> Dashboard:
    """The dashboard of topologies."""
    board = frame("topologies", "JMS bridge: topologies", "Rate, lag, failures and state of each topology.")
    board.with_variable(choice("topology", "Topology", f"jmsbridge_topology_records_total{{{BRIDGE}}}"))
    board.with_row(Row("Topologies at a glance")).with_panel(
        number(
            "Records",
            "Records per second that the chosen topologies process, those of internal topics included.",
            "rps",
            f"sum(rate(jmsbridge_topology_records_total{{{_CHOSEN}}}[$__rate_interval]))",
        )
    ).with_panel(
        number(
            "Lag",
            "Records of the topologies' topics that are not processed yet.",
            "short",
            f"sum(jmsbridge_topology_lag_records{{{_CHOSEN}}})",
            limits=[(10_000, "orange"), (1_000_000, "red")],
        )
    ).with_panel(
        number(
            "Rejected records",
            "Records in the time shown that could not be read or computed. They are in the topics NAME-dead-letters, "
            "unless `on-failure` says otherwise.",
            "short",
            f"sum(increase(jmsbridge_topology_unprocessed_records_total{{{_REJECTED}}}[$__range])) or vector(0)",
            limits=[(1, "orange")],
        )
    ).with_panel(
        number(
            "State",
            "Size of the state in local files and in memory, as of the last commits.",
            "bytes",
            f"sum(jmsbridge_topology_state_bytes{{{_CHOSEN}}})",
        )
    )
    board.with_row(Row("Each topology")).with_panel(
        draw(
            "Records of each topology",
            "Records per second that a topology processes.",
            "rps",
            (
                f"sum by (topology) (rate(jmsbridge_topology_records_total{{{_CHOSEN}}}[$__rate_interval]))",
                "{{topology}}",
            ),
        )
    ).with_panel(
        draw(
            "Lag of each topology",
            "Records not processed yet. A line that only rises: the topology is slower than its topics.",
            "short",
            (f"sum by (topology) (jmsbridge_topology_lag_records{{{_CHOSEN}}})", "{{topology}}"),
        )
    ).with_panel(
        draw(
            "Records that nodes did not process",
            "Per second, by node and reason: late, repeated, without key or value, or rejected.",
            "rps",
            (
                "sum by (topology, node, reason) "
                f"(rate(jmsbridge_topology_unprocessed_records_total{{{_CHOSEN}}}[$__rate_interval]))",
                "{{topology}} {{node}} {{reason}}",
            ),
        )
    ).with_panel(
        draw(
            "State of each topology",
            "Size in local files and in memory. State without windows grows with the number of its keys.",
            "bytes",
            (f"sum by (topology) (jmsbridge_topology_state_bytes{{{_CHOSEN}}})", "{{topology}}"),
        )
    ).with_panel(
        draw(
            "Restarts of topologies",
            "How often the process of each topology died and was started again since its bridge started.",
            "short",
            (
                f'sum by (component) (jmsbridge_component_restarts_total{{{BRIDGE}, component=~"topology:.*"}})',
                "{{component}}",
            ),
        )
    )
    return board
