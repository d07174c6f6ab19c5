"""`jms-bridge journal tail`: the newest messages between the sources and the router."""

from __future__ import annotations

from typing import Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, Base64, ConfigFile, Json, examples, load
from engine.cli.output import note
from engine.cli.receive import show
from engine.cli.records import Item

__all__ = ["app", "tail"]

app = typer.Typer(name="journal", help="The topic between the sources and the router.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `tail` a subcommand: Typer drops the name of a group's only command."""


@app.command(epilog=examples("jms-bridge journal tail", "jms-bridge journal tail -n 3 --follow"))
def tail(
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, metavar="NUMBER", help="How many of the newest messages.")
    ] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show the newest messages of the journal, oldest first."""
    from engine.kafka.reader import KafkaTopicReader

    settings = load(config)
    with KafkaTopicReader(settings, settings.journal.topic) as reader:
        ends = {partition: high for partition, (_, high) in reader.bounds().items()}
        shown = show(map(Item.of, reader.last(count)) if count else (), json_output, base64)
        if follow:
            show(map(Item.of, reader.read(ends, follow=True)), json_output, base64)
        elif not shown:
            note(f"no messages in '{settings.journal.topic}'")
