"""`jms-bridge topology`: what will run, as text or as a picture."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli import sinks
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, load
from engine.errors import UsageError
from engine.printable import json_text

__all__ = ["register", "topology"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        epilog=examples(
            "jms-bridge topology", "jms-bridge topology --mermaid > topology.mmd", "jms-bridge topology --json"
        )
    )(topology)


def topology(
    config: ConfigFile = DEFAULT_CONFIG,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart instead of text.")] = False,
    json_output: Json = False,
) -> None:
    """Show the router's topology: from the journal through the routes to topics and sinks. Needs no server.

    The text has the form of Kafka Streams' describe(); behind it stands where each sink sends what it reads.
    """
    from engine import router
    from engine.streams.describe import records

    if as_mermaid and json_output:
        msg = "--json and --mermaid do not go together"
        raise UsageError(msg)

    settings = load(config)
    built = router.topology(settings)
    if json_output:
        for node in [*records(built.nodes), *sinks.records(settings)]:
            typer.echo(json_text(node))
        return
    shown = sinks.as_mermaid(settings, built.mermaid()) if as_mermaid else built.describe() + sinks.as_text(settings)
    typer.echo(shown, nl=False)
