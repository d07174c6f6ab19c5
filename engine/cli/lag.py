"""`jms-bridge lag`: what waits, in the journal for the router and in topics for sinks."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, load
from engine.cli.output import console, note
from engine.errors import UnreachableError
from engine.printable import json_text, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.lag import LagReport
    from routes.model import Config

__all__ = ["lag", "register"]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=examples("jms-bridge lag", "jms-bridge lag --kafka", "jms-bridge lag --json"))(lag)


def lag(
    config: ConfigFile = DEFAULT_CONFIG,
    from_kafka: Annotated[
        bool, typer.Option("--kafka", help="Ask Kafka, not the bridge: what has been committed counts.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Show how many records wait, by partition of the journal and by sink.

    The running bridge knows it to the second. If none answers, or with --kafka, Kafka is asked: the router writes its
    place there every `router.interval`, so that a part of what then seems to wait may have been published already.
    """
    settings = load(config)
    found = _from_kafka(settings) if from_kafka else _found(settings)
    if json_output:
        for each in found:
            typer.echo(json_text(asdict(each)))
    else:
        _print(found)


def _found(config: Config) -> Sequence[LagReport]:
    from engine.lag import from_bridge

    try:
        return from_bridge(config)
    except UnreachableError as error:
        note(f"{error} Asking Kafka instead.")
        return _from_kafka(config)


def _from_kafka(config: Config) -> Sequence[LagReport]:
    from engine.lag import from_kafka

    return from_kafka(config)


def _print(found: Sequence[LagReport]) -> None:
    from rich.table import Table

    from engine.telemetry.amounts import duration, number

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("waits for", "in"):
        table.add_column(heading, no_wrap=True)
    for heading in ("records", "oldest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in found:
        oldest = "" if each.oldest_seconds is None else duration(each.oldest_seconds)
        table.add_row(printable(each.component), printable(each.place), number(each.records), oldest)
    table.add_row("", "all", number(sum(each.records for each in found)), "", style="bold")
    console().print(table)
