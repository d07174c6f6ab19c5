"""`jms-bridge config docs | show`: what can be configured, and what is."""

from __future__ import annotations

import dataclasses

import typer
from rich.table import Table

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples
from engine.cli.output import console
from engine.printable import json_text, printable

__all__ = ["app", "docs", "show"]

app = typer.Typer(name="config", help="What can be configured, and what is.", no_args_is_help=True)


@app.command(epilog=examples("jms-bridge config docs", "jms-bridge config docs > configuration.md"))
def docs() -> None:
    """Print the reference of all keys, in Markdown: type, default, meaning, example."""
    from routes.config import reference

    typer.echo(reference(), nl=False)


@app.command(epilog=examples("jms-bridge config show", "jms-bridge config show -c /etc/jms-bridge.properties --json"))
def show(config: ConfigFile = DEFAULT_CONFIG, json_output: Json = False) -> None:
    """Show the configuration in force: each key, its value (secrets masked) and where it comes from."""
    from routes import config as configuration

    rows = configuration.show(config)
    if json_output:
        for row in rows:
            typer.echo(json_text(dataclasses.asdict(row)))
        return
    table = Table("key", "value", "from", box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(row.key, printable(row.value), row.origin)
    console().print(table)
