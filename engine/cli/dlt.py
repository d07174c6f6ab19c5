"""`jms-bridge dlt list | show | replay`: messages that could not be routed."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from engine.cli.options import DEFAULT_CONFIG, Base64, ConfigFile, Json, examples, load
from engine.cli.output import BodyFormat, console, note, printable, show_bytes
from engine.cli.records import Item, as_text, record_json
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.dead_letters.letter import DeadLetter
    from engine.dead_letters.replay import Replayed

__all__ = ["app", "list_letters", "replay", "show"]

app = typer.Typer(name="dlt", help="The dead letters: messages that could not be routed.", no_args_is_help=True)

_KEY_BYTES = 60
_Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="PARTITION:OFFSET or TOPIC:PARTITION:OFFSET, as dlt list shows it.")
]
_Positions = Annotated[
    list[str] | None,
    typer.Argument(metavar="POSITION", help="PARTITION:OFFSET or TOPIC:PARTITION:OFFSET, as dlt list shows it."),
]


@app.command("list", epilog=examples("jms-bridge dlt list", "jms-bridge dlt list -n 1000 --json"))
def list_letters(
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="How many of the newest.")] = 50,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """List the newest dead letters, the newest last: position, time, route, reason, key, size."""
    from engine.dead_letters.letter import DeadLetter, topic_of
    from engine.peek import Reader

    topic = topic_of(settings := load(config))
    with Reader(settings, topic) as reader:
        letters = [DeadLetter(located) for located in reader.last(count)]
    if json_output:
        for letter in letters:
            typer.echo(json.dumps(_summary(letter), ensure_ascii=False))
    elif letters:
        console().print(_table(letters))
    else:
        note(f"no dead letters in '{topic}'")


@app.command(epilog=examples("jms-bridge dlt show 0:17", "jms-bridge dlt show 0:17 --json"))
def show(
    position: _Position, json_output: Json = False, base64: Base64 = False, config: ConfigFile = DEFAULT_CONFIG
) -> None:
    """Show one dead letter: why it is here, its headers, its body."""
    from engine.dead_letters.letter import DeadLetter, topic_of
    from engine.peek import Position, Reader

    settings = load(config)
    at = Position.parse(position, topic_of(settings))
    with Reader(settings, at.topic) as reader:
        letter = DeadLetter(reader.at(at.partition, at.offset))
    if json_output:
        typer.echo(json.dumps({**_summary(letter), **record_json(letter.located.record)}, ensure_ascii=False))
        return
    route = f" in route '{letter.route}'" if letter.route else ""
    typer.echo(printable(f"{letter.reason}{route}: {letter.detail}"))
    typer.echo(as_text(Item.of(letter.located), BodyFormat.BASE64 if base64 else BodyFormat.HEX))


@app.command(
    epilog=examples(
        "jms-bridge dlt replay 0:17 0:18", "jms-bridge dlt replay --all --dry-run", "jms-bridge dlt replay --all"
    )
)
def replay(
    positions: _Positions = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters that are there now.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, do nothing.")] = False,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send the originals of dead letters through the journal again, each once.

    A replay is remembered in the topic `<dead-letter topic>.replayed`: a dead letter replayed before is not sent again.
    If it fails again, the new dead letter has a new position and can be replayed in turn.
    """
    from engine.dead_letters.letter import topic_of
    from engine.dead_letters.replay import replay as replay_letters
    from engine.peek import Position

    if everything == bool(positions):
        msg = "say which dead letters: either positions (as 0:17) or --all"
        raise UsageError(msg)
    settings = load(config)
    topic = topic_of(settings)
    wanted = None if everything else [Position.parse(text, topic) for text in positions or ()]
    tally: Counter[str] = Counter()
    for replayed in replay_letters(settings, wanted, dry_run=dry_run):
        tally[replayed.outcome] += 1
        typer.echo(_replayed_json(replayed) if json_output else _replayed_text(replayed))
    note(", ".join(f"{number} {outcome}" for outcome, number in tally.items()) or f"no dead letters in '{topic}'")


def _table(letters: list[DeadLetter]) -> Table:
    table = Table("position", "time", "route", "reason", "key", box=None, pad_edge=False, header_style="bold")
    table.add_column("bytes", justify="right")
    for letter in letters:
        record = letter.located.record
        at = letter.position
        table.add_row(
            f"{at.partition}:{at.offset}",
            letter.time,
            printable(letter.route) or "-",
            printable(letter.reason),
            printable(show_bytes(record.key, limit=_KEY_BYTES)),
            str(len(record.value or b"")),
        )
    return table


def _summary(letter: DeadLetter) -> dict[str, Any]:
    at = letter.position
    key = letter.located.record.key
    return {
        "position": str(at),
        "time": letter.time,
        "route": letter.route or None,
        "reason": letter.reason,
        "detail": letter.detail,
        "journal": letter.journal_position,
        "key": None if key is None else key.decode("utf-8", "replace"),
        "bytes": len(letter.located.record.value or b""),
    }


def _replayed_text(replayed: Replayed) -> str:
    joint = " to" if replayed.outcome in ("replayed", "already replayed") else ":"
    rest = f"{joint} {replayed.detail}" if replayed.detail else ""
    return printable(f"{replayed.position}  {replayed.outcome}{rest}")


def _replayed_json(replayed: Replayed) -> str:
    row = {"position": str(replayed.position), "outcome": replayed.outcome, "detail": replayed.detail}
    return json.dumps(row, ensure_ascii=False)
