"""`jms-bridge journal tail | replay`: the messages between the sources and the router."""

from __future__ import annotations

import re
import shlex
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.interrupts import interruptible
from engine.cli.messages import journal as app
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, examples, grouped, load, read_predicate
from engine.cli.output import console, note
from engine.errors import UsageError
from engine.printable import json_text, printable
from engine.times import iso, read_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rich.table import Table

    from engine.rerouting.replay import JournalReplay, Rerouted, ReroutingTable
    from engine.rerouting.selection import JournalSelection

__all__ = ["app"]

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class JournalOptions:
    """Options that select records of the journal; see `engine.cli.options.grouped`."""

    unrouted: Annotated[
        bool,
        typer.Option(
            "--unrouted", help="Only messages that no route took, by the routes that were in force when they were read."
        ),
    ] = False
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="PREDICATE", help="Only messages that match a predicate of the routing language."
        ),
    ] = None
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only records with this timestamp or a later one: 2026-11-22T06:00:00Z (UTC if it names no zone), or "
            "an age such as 2h.",
        ),
    ] = None
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Only records from before this time; see --since.")
    ] = None
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, metavar="NUMBER", help="Only records of this partition.")
    ] = None
    from_offset: Annotated[
        int | None,
        typer.Option("--from-offset", min=0, metavar="OFFSET", help="First offset; needs --partition."),
    ] = None
    to_offset: Annotated[
        int | None,
        typer.Option("--to-offset", min=0, metavar="OFFSET", help="Last offset, itself included; needs --partition."),
    ] = None

    def selection(self, positions: Iterable[str], journal: str) -> JournalSelection:
        """Makes the selection; UsageError if an option is invalid, or if nothing is selected."""
        from engine.kafka.reader import Position
        from engine.rerouting.selection import JournalSelection

        now_ms = round(time.time() * 1000)
        made = JournalSelection(
            tuple(Position.parse(text, journal) for text in positions),
            self.partition,
            self.from_offset,
            self.to_offset,
            None if self.since is None else read_moment("--since", self.since, now_ms),
            None if self.until is None else read_moment("--until", self.until, now_ms),
            None if self.where is None else read_predicate(self.where),
            self.unrouted,
        )
        made.check()
        return made

    def words(self, selection: JournalSelection) -> list[str]:
        """Returns the selection as options of the command line, quoted for a shell; times are absolute."""
        given: list[tuple[str, object]] = [("--partition", self.partition), ("--from-offset", self.from_offset)]
        given += [("--to-offset", self.to_offset), ("--where", self.where)]
        given += [("--since", None if selection.since_ms is None else iso(selection.since_ms))]
        given += [("--until", None if selection.until_ms is None else iso(selection.until_ms))]
        options = [f"{name} {shlex.quote(str(value))}" for name, value in given if value is not None]
        return [*["POSITION..."] * bool(selection.positions), *["--unrouted"] * self.unrouted, *options]


@app.command(
    epilog=examples(
        "jms-bridge journal replay --unrouted --dry-run",
        "jms-bridge journal replay --unrouted",
        "jms-bridge journal replay 0:17 0:18",
        "jms-bridge journal replay --partition 0 --from-offset 100 --to-offset 200",
        "jms-bridge journal replay --since 2h --where \"msg.address==orders AND region = 'emea'\" --yes",
    )
)
@grouped
def replay(
    selection: JournalOptions,
    positions: Annotated[
        list[str] | None,
        typer.Argument(metavar="POSITION", help="PARTITION:OFFSET or TOPIC:PARTITION:OFFSET of a journal record."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Make a further copy of records that were replayed before.")
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", min=1, metavar="NUMBER", help="Stop after this number of copies.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, max=1e9, metavar="NUMBER", help="Limit in messages a second, evenly spaced."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the number of messages by address, and the routes that would take them now, and change nothing.",
        ),
    ] = False,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Write messages of the journal into it again, each once, so that the present routes apply to them.

    A replay is recorded in the topic `<dead-letter topic>.replayed` (`jms-bridge dlt audit` shows it): a position that
    was replayed before is not repeated, and an interrupted command continues where it ended. The copy names its
    original in the header `jmsbridge.copy-of`. A message that no route takes now is not copied.

    `--unrouted` selects messages that were only counted, because no route took them. The replay of any other message
    publishes it a second time.
    """
    from engine.dead_letters.audit import Actor
    from engine.dead_letters.replay import ReplayOutcome
    from engine.rerouting.replay import JournalReplay, ReroutingOptions

    settings = load(config)
    wanted = selection.selection(positions or (), settings.journal.topic)
    called = " ".join(["journal", "replay", *selection.words(wanted), *["--again"] * again])
    journal = JournalReplay(settings, ReroutingOptions(wanted, again, most, rate, Actor.here(called)))
    table = _surveyed(journal)
    if dry_run:
        _foretell(table, journal.unknown, settings.journal.topic, json_output)
        return
    total = min(table.count(ReplayOutcome.WOULD_REPLAY), most or sys.maxsize)
    if total and not (yes or wanted.positions):
        _confirm(total, table, settings.journal.topic)
    _run(journal, table, total, settings.journal.topic, json_output)


def _surveyed(journal: JournalReplay) -> ReroutingTable:
    from engine.rerouting.replay import ReroutingTable

    table = ReroutingTable()
    with _reading() as report:
        for each in journal.survey(report):
            table.add(each)
    return table


@contextmanager
def _reading() -> Iterator[Callable[[int, int], None]]:
    """A line on stderr with the number of records that are read, if that is a terminal."""
    from rich.console import Console

    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield lambda _read, _total: None
        return
    with terminal.status("reading the journal") as status:
        yield lambda read, total: status.update(f"{read:,} of {total:,} records read")


def _foretell(table: ReroutingTable, unknown: int, topic: str, json_output: bool) -> None:
    if json_output:
        for row in table.rows:
            typer.echo(
                json_text(
                    {
                        "address": row.address or None,
                        "routes": list(row.routes),
                        "outcome": row.outcome,
                        "detail": row.detail,
                        "count": row.count,
                        "oldest": iso(row.oldest_ms),
                        "newest": iso(row.newest_ms),
                    }
                )
            )
    elif table.rows:
        console().print(_table(table))
    counts: Counter[str] = Counter()
    for row in table.rows:
        counts[row.outcome] += row.count
    note(_told(counts, topic))
    _tell_unknown(unknown)


def _table(rerouted: ReroutingTable) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("address", "routes now"):
        table.add_column(name)
    table.add_column("count", justify="right")
    for name in ("oldest", "outcome"):
        table.add_column(name)
    for row in rerouted.rows:
        outcome = f"{row.outcome}: {row.detail}" if row.detail else str(row.outcome)
        cells = (printable(row.address) or "-", printable(", ".join(row.routes)) or "-", f"{row.count:,}")
        table.add_row(*cells, re.sub(r"\.\d+Z$", "Z", iso(row.oldest_ms)), outcome)
    return table


def _confirm(total: int, table: ReroutingTable, topic: str) -> None:
    """Asks whether to go on; typer.Abort if not."""
    if not sys.stdin.isatty():
        msg = f"{total:,} message{'s' * (total != 1)} would be replayed: add --yes to do it, or --dry-run to see which"
        raise UsageError(msg)
    console().print(_table(table))
    typer.confirm(f"write {total:,} message{'s' * (total != 1)} to {topic} again?", abort=True, err=True)


def _run(journal: JournalReplay, table: ReroutingTable, total: int, topic: str, json_output: bool) -> None:
    from engine.cli.dlt_output import progress
    from engine.dead_letters.replay import ReplayOutcome

    counts: Counter[str] = Counter()
    with interruptible() as stop, progress(total, "messages") as advance:
        for each in journal.run(stop):
            counts[each.outcome] += 1
            if each.outcome is ReplayOutcome.REPLAYED:
                advance()
            typer.echo(_json(each) if json_output else _text(each))
    left = table.count(ReplayOutcome.WOULD_REPLAY) - counts[ReplayOutcome.REPLAYED]
    interrupted = stop.is_set() and left > 0
    rest = f"; {left:,} left, the same command goes on with them" if left > 0 else ""
    note(f"{'interrupted: ' * interrupted}{_told(counts, topic)}{rest}")
    _tell_unknown(journal.unknown)
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _json(each: Rerouted) -> str:
    return json_text(
        {
            "position": str(each.position),
            "outcome": each.outcome,
            "detail": each.detail,
            "address": each.address or None,
            "routes": list(each.routes),
        }
    )


def _text(each: Rerouted) -> str:
    joint = " to" if each.outcome in ("replayed", "already replayed") else ":"
    return printable(f"{each.position}  {each.outcome}{f'{joint} {each.detail}' if each.detail else ''}")


def _told(counts: Mapping[str, int], topic: str) -> str:
    told = ", ".join(f"{number:,} {outcome}" for outcome, number in counts.items())
    return told or f"no such messages in '{topic}'"


def _tell_unknown(unknown: int) -> None:
    if unknown:
        note(
            f"{unknown:,} records were read by routes that are not known any more, and are left out; "
            "select them by --where or by their positions"
        )
