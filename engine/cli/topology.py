"""`jms-bridge topology`: what will run, as text or as a picture."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli import sinks
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, examples, load

__all__ = ["register", "topology"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("jms-bridge topology", "jms-bridge topology --mermaid > topology.mmd"))(topology)


def topology(
    config: ConfigFile = DEFAULT_CONFIG,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart instead of text.")] = False,
) -> None:
    """Show the router's topology: from the journal through the routes to topics and sinks. Needs no server.

    The text has the form of Kafka Streams' describe(); behind it stands where each sink sends what it reads.
    """
    from engine import router

    settings = load(config)
    built = router.topology(settings)
    shown = sinks.as_mermaid(settings, built.mermaid()) if as_mermaid else built.describe() + sinks.as_text(settings)
    typer.echo(shown, nl=False)
