"""`jms-bridge run`: the bridge itself."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, command

__all__ = ["run"]


@command(
    "jms-bridge run",
    "jms-bridge run -c /etc/jms-bridge.properties",
    "jms-bridge run --only router",
    "jms-bridge run --only source:orders",
    "jms-bridge run --only sinks",
)
def run(
    config: ConfigFile = DEFAULT_CONFIG,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PART",
            help="Run one part only: router, sources, source:NAME, topologies, topology:NAME, sinks, sink:NAME, or an "
            "embedded kafka, artemis or nats. The others run elsewhere.",
        ),
    ] = None,
) -> None:
    """Run the bridge until Ctrl-C: sources, journal, router and sinks, and embedded brokers where none are configured.

    Ctrl-C (or SIGTERM) stops the sources first, then the router, the sinks, and the embedded brokers; a second one
    stops all at once. After `jms-bridge reload`, or SIGHUP, the bridge reads the properties file and the source files
    of its topologies again; it applies or refuses the changes as a whole.
    The exit code gives the reason for the end: 0 stopped on request, 2 configuration, 3 this machine (Java, ports), 4 a
    broker refuses (topic missing or not authorised), 5 a message failed and its route says stop, 6 Kafka is gone.
    """
    from engine.telemetry import light_structlog  # noqa: F401, I001 # before those that import structlog
    from engine.supervision import supervisor

    raise typer.Exit(supervisor.run(config, only))
