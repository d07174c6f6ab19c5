"""`jms-bridge schema check`: a changed schema, tried on messages of the journal before it is registered."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, load
from engine.cli.output import note
from engine.printable import json_text, printable

__all__ = ["app"]

_BROKEN = 1
"""Exit code if the schema would break messages."""
_MOST_SHOWN = 20

app = typer.Typer(
    name="schema", help="Schemas of the registry, and the messages that they are for.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Keep `check` a subcommand: Typer drops the name of a group's only command."""


@app.command(
    epilog=examples(
        "jms-bridge schema check orders-value schemas/order.avsc",
        "jms-bridge schema check orders-value schemas/order.json --last 100000 --json",
        "jms-bridge schema check orders-value orders.desc --message shop.Order",
    )
)
def check(
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="Subject of the registry.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The changed schema: .avsc, .json, or .desc for Protobuf.", readable=False),
    ],
    last: Annotated[int, typer.Option("--last", min=1, metavar="NUMBER", help="Newest messages to try.")] = 10_000,
    message: Annotated[
        str | None, typer.Option(metavar="NAME", help="Full name of the message in a Protobuf schema.")
    ] = None,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Try a changed schema on the last messages of the journal, before it is registered. Registers nothing.

    A message would break if it is a value of the subject that the schema cannot read, or if a route that names the
    subject in in.schema or out.schema takes it now, and could not with the schema. The exit code is 1 if a message
    would break.
    """
    from engine.kafka.clients import KafkaClients
    from engine.kafka.reader import KafkaTopicReader
    from engine.schemas.trial import SchemaTrial

    settings = load(config)
    trial = SchemaTrial(settings, subject, file, message or "")
    concerned = broken = 0
    with KafkaTopicReader(KafkaClients(settings.kafka_access), settings.journal.topic) as reader:
        records = reader.last(last)
        for located in records:
            verdict = trial.verdict(located.record)
            concerned += verdict.concerns
            broken += bool(verdict.broken)
            for each in verdict.broken if json_output or broken <= _MOST_SHOWN else ():
                place, who = str(located.position), f"route {each.route}" if each.route else f"readers of {subject}"
                row = {"position": place, "route": each.route or None, "reason": each.reason}
                typer.echo(json_text(row) if json_output else printable(f"{place}  {who}: {each.reason}"))
    if not json_output and broken > _MOST_SHOWN:
        typer.echo(f"and {broken - _MOST_SHOWN} more messages")
    what = f"{broken} would break" if broken else "none would break"
    note(f"{len(records)} messages read, {concerned} of them concern '{subject}': {what}")
    if not concerned:
        note(f"so nothing is known of '{file}': read more with --last, or send a message first")
    if broken:
        raise typer.Exit(_BROKEN)
