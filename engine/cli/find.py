"""`jms-bridge find`: search for messages in all topics of the bridge at once."""

from __future__ import annotations

import shlex
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.interrupts import INTERRUPTED, interruptible
from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load, read_pair, read_predicate
from engine.cli.output import Item, note, progress_bar, record_json
from engine.errors import UsageError
from engine.printable import LONGEST_REASON, json_text, printable, shortened
from engine.times import iso, read_moment
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from engine.find.question import FindQuestion
    from engine.find.search import FindProgress, FoundRecord

__all__ = ["find"]

_PLURALS = {"destinations": "destination", "sinks": "sink"}
_KINDS = ("journal", "destinations", "sinks", "dead-letters")
_TIME = "2026-11-22T06:00:00Z (UTC if it names no zone), or an age such as 2h"


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Options that say what is looked for; see `engine.cli.options.grouped`."""

    message_id: Annotated[
        str | None, typer.Option("--message-id", metavar="ID", help="JMSMessageID, with ID: in front or without.")
    ] = None
    correlation_id: Annotated[
        str | None,
        typer.Option("--correlation-id", metavar="ID", help="JMSCorrelationID, with ID: in front or without."),
    ] = None
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="Key of the record, as text.")] = None
    headers: Annotated[
        list[str],
        typer.Option(
            "--header",
            "-H",
            metavar="NAME=VALUE",
            help="Value of a JMS field (JMSType), property or Kafka header. If repeated, any of the values of one "
            "name, and all names.",
        ),
    ] = field(default_factory=list)
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="PREDICATE", help="Predicate of the routing language, also about the body."),
    ] = None
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="TEXT",
            help="Text in the body as it is in the record: bytes of UTF-8, not unpacked and not decoded.",
        ),
    ] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help=f"Oldest time of the record in Kafka: {_TIME}.")
    ] = None
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Time in Kafka before which the record is; see --since."),
    ] = None
    places: Annotated[
        list[str],
        typer.Option(
            "--in",
            metavar="PLACE,...",
            help=f"Places to read: {', '.join(_KINDS)}, or single topics of the bridge. Default: all. Repeatable.",
        ),
    ] = field(default_factory=list)
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=100_000, metavar="NUMBER", help="Most messages to find.")
    ] = 20
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume", metavar="TOKEN", help="Token that the same search gave; the search goes on from there."
        ),
    ] = None

    def question(self, either_id: str | None) -> FindQuestion:
        """Makes the question about messages with an id, or any; UsageError if an option is invalid."""
        from engine.find.question import FindQuestion, TopicKind

        now_ms = round(time.time() * 1000)
        if self.where is not None:
            read_predicate(self.where)
        if self.text == "":
            msg = "--text is empty; leave it out to find any body"
            raise UsageError(msg)
        names = [name for places in self.places for each in places.split(",") if (name := each.strip())]
        names = [_PLURALS.get(name, name) for name in names]
        kinds = frozenset(TopicKind(name) for name in names if name in frozenset(TopicKind))
        return FindQuestion(
            self.message_id,
            self.correlation_id,
            self.key,
            tuple(read_pair(each, "--header") for each in self.headers),
            self.where,
            self.text,
            None if self.since is None else read_moment("--since", self.since, now_ms),
            None if self.until is None else read_moment("--until", self.until, now_ms),
            kinds if names else frozenset(TopicKind),
            self.count,
            self.resume,
            frozenset(names) - kinds,
            either_id,
        )


@command(
    "jms-bridge find ID:42",
    "jms-bridge find --where \"msg.body.amount > 1000 AND region = 'emea'\" --since 2h",
    "jms-bridge find --text 4711 --in dead-letters,orders --json",
    "jms-bridge find --correlation-id order-7 --since 2026-11-22T09:00:00Z --until 2026-11-22T11:00:00Z",
)
def find(
    asked: QuestionOptions,
    either_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="JMSMessageID or JMSCorrelationID, with ID: in front or without.", show_default=False
        ),
    ] = None,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Find messages in the journal, destination topics, topics of sinks and dead letters, the newest first.

    A message is found if it matches all the options; without any, the newest messages are found. Topics are read
    backwards, stretch by stretch, and the messages of a stretch are shown before the next one is read. The last line
    says how much was read, and, if that is not everything, the command that continues with --resume.
    """
    from engine.find.search import FindProgress
    from engine.find.search import find as search

    question = asked.question(either_id)
    settings = load(config)
    last: FindProgress | None = None
    try:
        with interruptible() as stop, _shown() as show:
            for each in search(settings, question, stop):
                if isinstance(each, FindProgress):
                    last = each
                    show(each, question)
                else:
                    typer.echo(_json(each) if json_output else _lines(each))
    except BridgeError:
        _end(last, question, config, json_output=False)
        raise
    _end(last, question, config, json_output=json_output)
    if stop.is_set() and last is not None and not last.done:
        raise typer.Exit(INTERRUPTED)


def _end(last: FindProgress | None, question: FindQuestion, config: Path, *, json_output: bool) -> None:
    """Says what was read, and how to go on."""
    if last is None:
        return
    if json_output:
        amounts = {"read": last.read, "total": last.total, "records": last.records, "removed": last.removed}
        amounts |= {"excluded": last.excluded}
        rest = {"found": last.found, "done": last.done, "resume": last.resume, "notes": last.notes}
        typer.echo(json_text(amounts | rest))
        return
    for each in last.notes:
        note(each)
    note(last.summary(question))
    if last.resume is not None:
        note(f"continue with: {_command(question, config)} --resume {last.resume}")


def _command(question: FindQuestion, config: Path) -> str:
    """The command that asks the same question, quoted for a shell; its times are absolute."""
    from engine.find.question import TopicKind

    places = [*sorted(question.kinds), *sorted(question.topics)]
    given = [
        ("--message-id", question.message_id),
        ("--correlation-id", question.correlation_id),
        ("--key", question.key),
        *(("--header", f"{name}={value}") for name, value in question.headers),
        ("--where", question.where),
        ("--text", question.text),
        ("--since", None if question.since is None else iso(question.since)),
        ("--until", None if question.until is None else iso(question.until)),
        ("--in", None if question.kinds == frozenset(TopicKind) else ",".join(places)),
        ("-n", str(question.most)),
        ("-c", None if config == DEFAULT_CONFIG else str(config)),
    ]
    options = (f" {name} {shlex.quote(value)}" for name, value in given if value is not None)
    either_id = "" if question.either_id is None else f" {shlex.quote(question.either_id)}"
    return f"jms-bridge find{either_id}{''.join(options)}"


def _lines(record: FoundRecord) -> str:
    """Two lines for people: where the record is, and what it is."""
    located = record.located
    address, route = record.text("JMSDestination"), record.text("jmsbridge.route")
    about = [record.text("JMSMessageID") or "(no message id)", address, route and f"route {route}"]
    about.append(record.text("jmsbridge.reason"))
    line = "  ".join(shortened(each, LONGEST_REASON) for each in about if each)
    return printable(f"{iso(located.time_ms)}  {record.kind:<12}  {located.position}\n    {line}")


def _json(record: FoundRecord) -> str:
    item = Item.of(record.located)
    return json_text({"kind": record.kind, **item.place, **record_json(item.record)})


@contextmanager
def _shown() -> Iterator[Callable[[FindProgress, FindQuestion], None]]:
    """A bar on stderr, if that is a terminal, with what was read and found."""
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    with progress_bar(BarColumn(20), TextColumn("{task.description}"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=None)
        yield lambda progress, question: bar.update(
            task, total=progress.total, completed=progress.read, description=progress.summary(question)
        )
