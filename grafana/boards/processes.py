"""The row about the bridge's processes: which bridge leads, restarts, versions, and the configuration in force."""

from __future__ import annotations

from grafana_foundation_sdk.builders import dashboard

from boards.frame import BRIDGE
from boards.panels import draw, on_off, versions

__all__ = ["processes"]


def processes(board: dashboard.Dashboard) -> None:
    """Adds it."""
    board.with_row(dashboard.Row("Processes"))
    board.with_panel(
        on_off(
            "Leader",
            "Which bridge of those with one id is at work; the others stand by.",
            f"max by (instance) (jmsbridge_leader{{{BRIDGE}}})",
            "{{instance}}",
            span=6,
        )
    ).with_panel(
        on_off(
            "A leader is known",
            "Down: this bridge knows of no bridge of its id that leads, or Kafka does not answer it.",
            'min by (instance) (jmsbridge_has_leader{bridge=~"$bridge", instance=~"$instance"})',
            "{{instance}}",
            span=6,
        )
    ).with_panel(
        draw(
            "Restarts",
            "How often each process died and was started again since its bridge started.",
            "short",
            (f"sum by (component) (jmsbridge_component_restarts_total{{{BRIDGE}}})", "{{component}}"),
            span=6,
        )
    ).with_panel(versions("Versions", "What runs where.", f"jmsbridge_build_info{{{BRIDGE}}}", span=6)).with_panel(
        on_off(
            "Last reload of the configuration",
            "Down: a changed configuration was refused or given up, the one before it is in force; the log says why.",
            f"max by (instance) (jmsbridge_config_last_reload_success{{{BRIDGE}}})",
            "{{instance}}",
            span=6,
        )
    ).with_panel(
        draw(
            "Age of the configuration's last reload",
            "Time since the configuration was last read, at the start or by a reload.",
            "s",
            (
                f"time() - max by (instance) (jmsbridge_config_last_reload_timestamp_seconds{{{BRIDGE}}})",
                "{{instance}}",
            ),
            span=6,
        )
    ).with_panel(
        versions("Configuration", "Which file is in force where.", f"jmsbridge_config_info{{{BRIDGE}}}")
    ).with_panel(
        draw(
            "Free space",
            "Free space of the file systems that the bridge writes to. A full one stops the bridge.",
            "bytes",
            (f"min by (instance, folder) (jmsbridge_disk_free_bytes{{{BRIDGE}}})", "{{instance}} {{folder}}"),
            span=6,
        )
    ).with_panel(
        draw(
            "Certificates that expire within 14 days",
            "Number of the files of the configuration whose certificates expire within 14 days or have expired.",
            "short",
            (
                f"count(jmsbridge_certificate_expiry_timestamp_seconds{{{BRIDGE}}} < time() + 14 * 86400) or vector(0)",
                "certificates",
            ),
            span=6,
        )
    )
