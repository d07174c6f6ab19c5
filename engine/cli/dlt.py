"""`jms-bridge dlt list | show | replay | discard | audit`: messages that could not be routed."""

from __future__ import annotations

import heapq
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.dlt_output import (
    audit_table,
    counting,
    entry_json,
    histogram_json,
    histogram_table,
    letter_json,
    letter_table,
    progress,
    replayed_json,
    replayed_text,
)
from engine.cli.interrupts import INTERRUPTED, interruptible
from engine.cli.options import (
    DEFAULT_CONFIG,
    Base64,
    ConfigFile,
    Json,
    examples,
    grouped,
    load,
    read_body,
    read_pair,
    read_predicate,
)
from engine.cli.output import BodyFormat, Item, console, item_text, note, record_json
from engine.dead_letters.state import LetterState
from engine.errors import UsageError
from engine.printable import json_text, printable
from engine.times import iso, read_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from engine.dead_letters.correction import Correction
    from engine.dead_letters.letter import DeadLetter, Filters
    from engine.dead_letters.replay import Histogram, Options, Replayed
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.reader import KafkaTopicReader, Position

    Settle = Callable[..., Iterator[Replayed]]
    """`replay` or `discard` of `engine.dead_letters.replay`."""

__all__ = ["app", "read_filters"]

_SETTLED = ("replayed", "quarantined", "discarded")
"""Outcomes of dead letters that were open until then."""


app = typer.Typer(name="dlt", help="The dead letters: messages that could not be routed.", no_args_is_help=True)


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Options that select dead letters; see `engine.cli.options.grouped`."""

    reasons: Annotated[
        list[str],
        typer.Option(
            "--reason",
            metavar="REASON",
            help="Only dead letters with this reason, such as key-not-found. If repeated, with any of them.",
        ),
    ] = field(default_factory=list)
    routes: Annotated[
        list[str],
        typer.Option(
            "--route",
            metavar="NAME",
            help="Only dead letters of this route; - for those without a route. If repeated, of any of them.",
        ),
    ] = field(default_factory=list)
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only dead letters that failed at or after this time: 2026-11-22T06:00:00Z (UTC if it names no zone), "
            "or an age such as 2h.",
        ),
    ] = None
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Only dead letters that failed before this time; see --since."),
    ] = None
    headers: Annotated[
        list[str],
        typer.Option(
            "--header",
            "-H",
            metavar="NAME=VALUE",
            help="Only dead letters whose message has this value in a JMS field (JMSType), property or Kafka header. "
            "If repeated, any of the values of one name, and all names.",
        ),
    ] = field(default_factory=list)
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="PREDICATE",
            help="Only dead letters whose message matches a predicate of the routing language.",
        ),
    ] = None

    def select(self, config: Path) -> tuple[DeadLetterStore, Filters]:
        """Returns the dead letters of a bridge, and the filters for them; UsageError if an option is invalid."""
        filters = read_filters(self.reasons, self.routes, self.since, self.until, self.headers, self.where)
        store = _store(config)
        return store, replace(filters, bounds=store.bounds, documents=store.documents)


@dataclass(frozen=True, slots=True)
class CorrectionOptions:
    """Options that correct messages before they are sent again; see `engine.cli.options.grouped`."""

    given: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Correct a JMS field (JMSType) or a property of the messages. Can be repeated.",
        ),
    ] = field(default_factory=list)
    removed: Annotated[
        list[str],
        typer.Option("--unset", metavar="NAME", help="Remove a JMS field or a property. Can be repeated."),
    ] = field(default_factory=list)
    key: Annotated[str | None, typer.Option("--key", metavar="TEXT", help="Key of the messages in the journal.")] = None
    body_file: Annotated[
        str | None,
        typer.Option(
            "--body-file",
            metavar="FILE",
            help="File with another body for the message at the one POSITION that is given; - for standard input.",
        ),
    ] = None

    def correction(self, positions: Sequence[str] | None) -> Correction:
        """Makes the correction of the messages at `positions`; UsageError if an option is invalid."""
        from engine.dead_letters.correction import Correction

        if self.body_file is not None and len(positions or ()) != 1:
            msg = "--body-file is the body of one message: give one POSITION"
            raise UsageError(msg)
        body = None if self.body_file is None else read_body(None, self.body_file)[0]
        key = None if self.key is None else self.key.encode()
        return Correction(dict(map(read_pair, self.given)), tuple(self.removed), key, body)


Quarantine = Annotated[
    bool,
    typer.Option("--quarantine", help="Dead letters in quarantine, which were replayed routing.max-replays times."),
]
Most = Annotated[
    int | None, typer.Option("--max", min=1, metavar="NUMBER", help="Stop after this number of dead letters.")
]
_Position = Annotated[
    str, typer.Argument(metavar="POSITION", help="PARTITION:OFFSET or TOPIC:PARTITION:OFFSET, as dlt list shows it.")
]
_Positions = Annotated[
    list[str] | None,
    typer.Argument(metavar="POSITION", help="PARTITION:OFFSET or TOPIC:PARTITION:OFFSET, as dlt list shows it."),
]
_All = Annotated[bool, typer.Option("--all", help="All dead letters that are in the topic now.")]
_DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Show the number of dead letters by reason and route, and their treatment, and change nothing.",
    ),
]


@app.command(
    "list",
    epilog=examples(
        "jms-bridge dlt list",
        "jms-bridge dlt list -n 1000 --json",
        "jms-bridge dlt list --reason key-not-found --since 2h",
        "jms-bridge dlt list --state open --route orders",
        "jms-bridge dlt list --quarantine",
    ),
)
@grouped
def list_letters(
    selection: FilterOptions,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Number of dead letters to show.")
    ] = 50,
    state: Annotated[
        LetterState | None,
        typer.Option("--state", metavar="|".join(LetterState), help="Only dead letters in this state."),
    ] = None,
    quarantine: Quarantine = False,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """List the newest dead letters, the newest last: position, state, time, route, reason, key, size.

    A dead letter must match all filters that are given.
    """
    from engine.dead_letters.replay import retry_ms, state_reader
    from engine.kafka.reader import KafkaTopicReader
    from engine.kafka.topics import exists

    store, filters = selection.select(config)
    topic = store.source(quarantine=quarantine)
    if quarantine and not exists(store.kafka, topic):
        note(f"no dead letters in '{topic}'")
        return
    with KafkaTopicReader(store.kafka, topic) as reader:
        bounds = reader.bounds()
        if state is None:
            letters = _newest(reader, count, filters.takes if filters else None)
            state_of = state_reader(store, topic, bounds, {letter.position for letter in letters})
        else:
            state_of = state_reader(store, topic, bounds, None)
            letters = _newest(reader, count, lambda each: state_of(each) == state and filters.takes(each))
    listed = [(letter, state_of(letter)) for letter in letters]
    # The bridge retries none that is in quarantine.
    retries = () if quarantine else store.retries
    retry_of = {each.position: retry_ms(each, retries) for each, found in listed if found is LetterState.OPEN}
    if json_output:
        for letter, found in listed:
            due = retry_of.get(letter.position)
            typer.echo(json_text({**letter_json(letter), "state": found, "retry": None if due is None else iso(due)}))
    elif letters:
        console().print(letter_table([(each, found, retry_of.get(each.position)) for each, found in listed]))
    else:
        note(f"no {'such ' if filters or state else ''}dead letters in '{topic}'")


@app.command(
    epilog=examples(
        "jms-bridge dlt show 0:17", "jms-bridge dlt show 0:17 --json", "jms-bridge dlt show 0:3 --quarantine"
    )
)
def show(
    position: _Position,
    quarantine: Quarantine = False,
    json_output: Json = False,
    base64: Base64 = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show one dead letter: its reason, headers and body."""
    from engine.dead_letters.letter import DeadLetter
    from engine.kafka.reader import KafkaTopicReader, Position

    store = _store(config)
    located_at = Position.parse(position, store.source(quarantine=quarantine))
    with KafkaTopicReader(store.kafka, located_at.topic) as reader:
        letter = DeadLetter(reader.at(located_at.partition, located_at.offset))
    if json_output:
        typer.echo(json_text({**letter_json(letter), **record_json(letter.located.record)}))
        return
    route = f" in route '{letter.route}'" if letter.route else ""
    target = f" to {letter.target}" if letter.target else ""
    typer.echo(printable(f"{letter.reason}{route}{target}: {letter.detail}"))
    typer.echo(item_text(Item.of(letter.located), BodyFormat.BASE64 if base64 else BodyFormat.HEX))


@app.command(
    epilog=examples(
        "jms-bridge dlt replay 0:17 0:18",
        "jms-bridge dlt replay --all --dry-run",
        "jms-bridge dlt replay --all",
        "jms-bridge dlt replay --reason key-not-found --route orders --since 2h --max 100 --rate 20",
        "jms-bridge dlt replay --where \"region = 'emea' AND amount > 1000\"",
        "jms-bridge dlt replay --quarantine --force 0:3",
        "jms-bridge dlt replay 0:17 --set region=emea --body-file corrected.json",
    )
)
@grouped
def replay(
    selection: FilterOptions,
    correcting: CorrectionOptions,
    positions: _Positions = None,
    everything: _All = False,
    quarantine: Quarantine = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Also replay letters that were replayed too often, discarded ones, and those whose mark is doubtful.",
        ),
    ] = False,
    most: Most = None,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=0.001, max=1e9, metavar="NUMBER", help="Limit in messages a second, evenly spaced."),
    ] = None,
    dry_run: _DryRun = False,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Send the original messages of dead letters through the journal again, each once.

    A replay is recorded in the topic `<dead-letter topic>.replayed`: a dead letter that was replayed before is not sent
    again, and an interrupted command continues where it ended. If a message fails again, the new dead letter has a new
    position and can be replayed too, `routing.max-replays` times; after that a replay moves it to the topic
    `<dead-letter topic>.quarantine`. With `--set`, `--unset`, `--key` and `--body-file` messages are corrected first;
    their dead letters stay as they are, and the audit has the correction.

    A dead letter must match all filters that are given.
    """
    from engine.dead_letters.audit import Actor
    from engine.dead_letters.replay import Options
    from engine.dead_letters.replay import replay as replay_letters

    store, filters = selection.select(config)
    wanted = _wanted(store, positions, everything, filters, quarantine=quarantine)
    correction = correcting.correction(positions)
    said = correction.options(correcting.body_file or "")
    actor = Actor.here(_called("replay", positions, everything, filters, quarantine, *["--force"] * force, *said))
    options = Options(filters, quarantine, force, most, rate, correction, actor)
    _settle(replay_letters, store, wanted, options, dry_run=dry_run, json_output=json_output)


@app.command(
    epilog=examples(
        "jms-bridge dlt discard 0:17",
        "jms-bridge dlt discard --reason too-large --until 7d --dry-run",
        "jms-bridge dlt discard --quarantine --all",
    )
)
@grouped
def discard(
    selection: FilterOptions,
    positions: _Positions = None,
    everything: _All = False,
    quarantine: Quarantine = False,
    most: Most = None,
    dry_run: _DryRun = False,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Settle dead letters that are no longer needed, without a replay.

    The command records each in the topic `<dead-letter topic>.replayed`; the dead letters themselves stay in their
    topic for as long as its retention says. They no longer count in any figure, and are replayed only with `--force`.

    A dead letter must match all filters that are given.
    """
    from engine.dead_letters.audit import Actor
    from engine.dead_letters.replay import Options
    from engine.dead_letters.replay import discard as discard_letters

    store, filters = selection.select(config)
    wanted = _wanted(store, positions, everything, filters, quarantine=quarantine)
    actor = Actor.here(_called("discard", positions, everything, filters, quarantine))
    options = Options(filters, quarantine, most=most, actor=actor)
    _settle(discard_letters, store, wanted, options, dry_run=dry_run, json_output=json_output)


@app.command(epilog=examples("jms-bridge dlt audit", "jms-bridge dlt audit -n 1000 --json"))
def audit(
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="NUMBER", help="Number of dead letters to show.")
    ] = 50,
    json_output: Json = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show which user replayed, discarded or quarantined which dead letters, the newest last."""
    from engine.dead_letters.audit import last

    entries = last(_store(config), count)
    if json_output:
        for entry in entries:
            typer.echo(entry_json(entry))
    elif entries:
        console().print(audit_table(entries))
    else:
        note("no dead letter was replayed or discarded yet")


def _newest(reader: KafkaTopicReader, count: int, takes: Callable[[DeadLetter], bool] | None) -> list[DeadLetter]:
    """The newest letters, oldest first, of those that `takes` is true for."""
    from engine.dead_letters.letter import DeadLetter

    if takes is None:
        return [DeadLetter(located) for located in reader.last(count)]
    letters = filter(takes, map(DeadLetter, reader.present()))
    return heapq.nlargest(count, letters, key=lambda letter: (letter.located.time_ms, letter.position))[::-1]


def _store(config: Path) -> DeadLetterStore:
    """The dead letters of the bridge with that configuration file."""
    from engine.dead_letters.store import DeadLetterStore

    return DeadLetterStore.of(load(config))


def _wanted(
    store: DeadLetterStore, positions: Sequence[str] | None, everything: bool, filters: Filters, *, quarantine: bool
) -> list[Position] | None:
    """The positions that were given; None for all that the filters take."""
    from engine.kafka.reader import Position

    if bool(positions) == (everything or bool(filters)):
        msg = "say which dead letters: either positions (as 0:17) or --all, or filters (as --reason key-not-found)"
        raise UsageError(msg)
    topic = store.source(quarantine=quarantine)
    return [Position.parse(text, topic) for text in positions] if positions else None


def _called(
    command: str, positions: Sequence[str] | None, everything: bool, filters: Filters, quarantine: bool, *more: str
) -> str:
    """The command for the audit, without the options that do not select dead letters."""
    # Each entry is under its position: there is no need to repeat those of all others.
    which = ["POSITION..."] if positions else ["--all"] * everything
    return " ".join(["dlt", command, *which, *filters.options(), *["--quarantine"] * quarantine, *more])


def _settle(
    settle: Settle,
    store: DeadLetterStore,
    wanted: Sequence[Position] | None,
    options: Options,
    *,
    dry_run: bool,
    json_output: bool,
) -> None:
    """Settles dead letters and shows how many are left; a dry run shows what would be done."""
    such = "such " if options.filters else ""
    nothing = f"no {such}dead letters in '{store.source(quarantine=options.quarantine)}'"
    if dry_run:
        _foretell(_survey(settle, store, wanted, options), nothing, json_output)
        return
    # Counted first, so that an interrupted command can show how many are left.
    total = len(set(wanted)) if wanted else _open(_survey(settle, store, wanted, options))
    counts: Counter[str] = Counter()
    with interruptible() as stop, progress(min(total, options.most or total)) as advance:
        for replayed in settle(store, wanted, options=options, stop=stop):
            counts[replayed.outcome] += 1
            if wanted or replayed.outcome in _SETTLED:
                advance()
            typer.echo(replayed_json(replayed) if json_output else replayed_text(replayed))
    left = total - sum(count for outcome, count in counts.items() if wanted or outcome in _SETTLED)
    interrupted = stop.is_set() and left > 0
    done = _counts(counts) or ("nothing done" if interrupted else nothing)
    rest = f"; {left} left, the same command goes on with them" if left > 0 else ""
    note(f"{'interrupted: ' * interrupted}{done}{rest}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _survey(settle: Settle, store: DeadLetterStore, wanted: Sequence[Position] | None, options: Options) -> Histogram:
    from engine.dead_letters.replay import Histogram

    histogram = Histogram()
    with counting():
        for replayed in settle(store, wanted, options=options, dry_run=True):
            histogram.add(replayed)
    return histogram


def _open(histogram: Histogram) -> int:
    from engine.dead_letters.replay import ReplayOutcome

    return histogram.count(ReplayOutcome.WOULD_REPLAY, ReplayOutcome.WOULD_QUARANTINE, ReplayOutcome.WOULD_DISCARD)


def _foretell(histogram: Histogram, nothing: str, json_output: bool) -> None:
    if json_output:
        for line in histogram_json(histogram):
            typer.echo(line)
    elif histogram.rows:
        console().print(histogram_table(histogram))
    counts: Counter[str] = Counter()
    for group, row in histogram.rows:
        counts[group.outcome] += row.count
    note(_counts(counts) or nothing)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in counts.items())


def read_filters(
    reasons: Iterable[str],
    routes: Iterable[str],
    since: str | None,
    until: str | None,
    headers: Iterable[str],
    where: str | None,
) -> Filters:
    """The filters that the options make; UsageError says which one makes none."""
    from engine.dead_letters.letter import Filters

    now_ms = round(time.time() * 1000)
    values: dict[str, frozenset[str]] = {}
    for pair in headers:
        name, value = read_pair(pair, "--header")
        values[name] = values.get(name, frozenset()) | {value}
    return Filters(
        frozenset(reasons),
        frozenset(routes),
        None if since is None else read_moment("--since", since, now_ms),
        None if until is None else read_moment("--until", until, now_ms),
        values,
        None if where is None else read_predicate(where),
    )
