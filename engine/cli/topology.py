"""`jms-bridge topology`: the router's topology as text or as a picture, and topologies of the user's own."""

from __future__ import annotations

import re
import signal
import threading
import time
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from engine.cli.options import (
    DEFAULT_CONFIG,
    ConfigFile,
    Json,
    command,
    examples,
    load,
    read_registry_urls,
    read_seconds,
)
from engine.cli.topology_test import check_topologies
from engine.errors import UsageError
from engine.printable import json_text
from engine.schemas.section import SchemaConfig
from engine.times import read_time
from engine.topologies.section import TopologyGuarantee, TopologyMode
from routes.sections import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.topologies.runtime.query import TopologyFigures
    from routes.model import Config, Route, SinkConfig

__all__ = ["app"]

_PROGRESS_SECONDS = 10.0
_MOST_KEY = 100


_EXAMPLES = (
    "jms-bridge topology",
    "jms-bridge topology --mermaid > topology.mmd",
    "jms-bridge topology --json",
    "jms-bridge topology run examples.word_count:build",
    "jms-bridge topology test examples/order_totals.test.yaml",
    "jms-bridge topology state examples.word_count:build counts --key spark",
    "jms-bridge topology migrate examples.order_totals:build --rename totals=gold-totals",
    "jms-bridge topology skip order-totals orders:0:1742",
    "jms-bridge topology reset word-count",
)
app = typer.Typer(
    name="topology",
    help="The router's topology, and topologies of your own.",
    epilog=examples(*_EXAMPLES),
    invoke_without_command=True,
)


def _words(choices: type[StrEnum]) -> str:
    """The choices of an option as its usage shows them: `auto|realtime|batch`."""
    return "|".join(choices)


@app.callback()
def show(
    context: typer.Context,
    config: ConfigFile = DEFAULT_CONFIG,
    as_mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart instead of text.")] = False,
    json_output: Json = False,
) -> None:
    """Show the router's topology: from the journal through the routes to topics and sinks. Needs no server.

    The text has the form of Kafka Streams' describe(), followed by the destinations of each sink.
    """
    if context.invoked_subcommand is not None:
        return
    from engine import router
    from engine.topologies.library.describe import records

    if as_mermaid and json_output:
        msg = "--json and --mermaid do not go together"
        raise UsageError(msg)

    settings = load(config)
    built = router.topology(settings)
    sinks = _sinks(settings)
    if json_output:
        for node in [*records(built.nodes), *map(_sink_json, sinks)]:
            typer.echo(json_text(node))
        return
    shown = _sinks_mermaid(sinks, built.mermaid()) if as_mermaid else built.describe() + _sinks_text(sinks)
    typer.echo(shown, nl=False)


@command(
    "jms-bridge topology run examples.word_count:build",
    "jms-bridge topology run examples.order_totals:build --mode batch --interval 5s",
    "jms-bridge topology run billing.topology:build --guarantee at_least_once",
)
def run(
    build: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="The function that returns the topology.")],
    config: ConfigFile = DEFAULT_CONFIG,
    mode: Annotated[
        TopologyMode,
        typer.Option(
            metavar=_words(TopologyMode),
            help="Mode of processing: record by record (realtime), in batches, or as fits the topology (auto).",
        ),
    ] = TopologyMode.AUTO,
    guarantee: Annotated[
        TopologyGuarantee,
        typer.Option(
            metavar=_words(TopologyGuarantee),
            help="Guarantee for outputs: exactly_once writes them in transactions with the positions.",
        ),
    ] = TopologyGuarantee.EXACTLY_ONCE,
    interval: Annotated[
        float | None,
        typer.Option(parser=read_seconds, metavar="SECONDS", help="Time between two commits of the state."),
    ] = None,
    on_failure: Annotated[
        Policy,
        typer.Option(metavar=_words(Policy), help="Treatment of a record that cannot be read or computed."),
    ] = Policy.DEAD_LETTER,
    schema_registry: Annotated[
        str | None,
        typer.Option(
            parser=read_registry_urls,
            metavar="URL",
            help="URL of the schema registry, in place of schema.registry.url.",
        ),
    ] = None,
) -> None:
    """Run a topology until Ctrl-C, on the Kafka of the properties file.

    Its state is in the data folder, under topologies/NAME, or in topologies.state; a later run goes on from there.
    """
    from engine.topologies.runtime.run import run_topology
    from engine.topologies.runtime.settings import TopologySettings
    from routes.keys.addresses import REGISTRY_URLS

    settings = TopologySettings(build, mode.value, guarantee.value, interval, on_failure.value)
    loaded = load(config)
    if schema_registry is not None:
        registry = replace(loaded.section(SchemaConfig), urls=REGISTRY_URLS.parse(schema_registry))
        loaded = loaded.with_section(registry)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    progress = _Progress()

    run_topology(loaded, settings, stop, progress.show)


@command("jms-bridge topology reset word-count", "jms-bridge topology reset examples.word_count:build")
def reset(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="The name given to StreamsBuilder, or MODULE:FUNCTION, which is needed where the state is gone.",
        ),
    ],
    config: ConfigFile = DEFAULT_CONFIG,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete the state of a topology, so that its next run reads its topics from their beginning.

    The command also deletes its internal topics, which the state lists, and its positions in Kafka. Its published
    records stay.
    """
    from engine.topologies.runtime.reset import reset_topology

    loaded = load(config)
    if not yes:
        typer.confirm(f"Throw away the state of topology '{name}', its internal topics and its positions?", abort=True)
    for line in reset_topology(loaded, name):
        typer.echo(line)


@command(
    "jms-bridge topology skip order-totals orders:0:1742 --dry-run",
    "jms-bridge topology skip order-totals order-totals-by-customer-repartition:3:99 --yes",
)
def skip(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name given to StreamsBuilder.")],
    position: Annotated[
        str, typer.Argument(metavar="TOPIC:PARTITION:OFFSET", help="The record, as logs and dead letters name it.")
    ],
    config: ConfigFile = DEFAULT_CONFIG,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Have a stopped topology set aside a record that it cannot process.

    The next run sends the record to the topology's dead letters unprocessed, with the reason `skipped`, together with
    the position behind it, and goes on.
    """
    from engine.topologies.runtime.skip import open_skip

    with open_skip(load(config), name, position) as skip:
        record = skip.record.record
        key = "none" if record.key is None else repr(record.key.decode("utf-8", "replace")[:_MOST_KEY])
        size = "no value" if record.value is None else f"a value of {len(record.value):,} bytes"
        typer.echo(f"{skip.record.position}: key {key}, {size}")
        if skip.is_noted:
            typer.echo("It is set aside already: start the topology.")
            return
        typer.echo(f"The next run of '{name}' sends it to {name}-dead-letters unprocessed.")
        if dry_run:
            return
        if not yes:
            typer.confirm(f"Set {skip.record.position} aside?", abort=True)
        skip.run()


@command(
    "jms-bridge topology migrate billing.topology:build --rename totals=totals-by-day --dry-run",
    "jms-bridge topology migrate billing.topology:build --drop totals",
)
def migrate(
    build: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="The function that returns the topology.")],
    config: ConfigFile = DEFAULT_CONFIG,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="A node with a new name, which keeps its state. May be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE",
            help="A node that is gone or has changed, whose state is thrown away. May be repeated.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Fit the state of a stopped topology to its changed definition.

    Nodes that did not change keep their state, and all topics are read on from where the last run stopped. The next run
    begins changed nodes with empty state.
    """
    from engine.topologies.runtime.migrate import open_migration

    renames = {}
    for pair in rename or ():
        old, separator, new = pair.partition("=")
        if not separator or not old or not new:
            msg = f"--rename {pair}: expected OLD=NEW"
            raise UsageError(msg)
        renames[old] = new
    drops = list(dict.fromkeys(drop or ()))
    with open_migration(load(config), build, renames, drops) as migration:
        for step in migration.steps:
            typer.echo(step)
        if dry_run:
            return
        if drops and not yes:
            typer.confirm(f"Throw away the state of {', '.join(drops)}?", abort=True)
        migration.run()


def _read_time(text: str | int) -> int:
    try:
        return read_time(str(text))
    except UsageError as error:
        raise typer.BadParameter(str(error)) from error


@command(
    "jms-bridge topology state examples.order_totals:build totals --key ann",
    "jms-bridge topology state examples.order_totals:build totals --key ann --live",
    "jms-bridge topology state examples.order_totals:build totals --since 2026-01-01T12:00 --until 2026-01-01T12:59",
    "jms-bridge topology state examples.word_count:build counts --prefix sp --limit 20",
    "jms-bridge topology state examples.word_count:build counts --from-key a --to-key czz",
)
def state(
    build: Annotated[str, typer.Argument(metavar="MODULE:FUNCTION", help="The function that returns the topology.")],
    node: Annotated[str, typer.Argument(metavar="NODE", help="A table or an aggregate, by the name of its node.")],
    config: ConfigFile = DEFAULT_CONFIG,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Rows of this key alone.")] = None,
    from_key: Annotated[str | None, typer.Option(metavar="KEY", help="Rows of this key and of greater ones.")] = None,
    to_key: Annotated[str | None, typer.Option(metavar="KEY", help="Rows of this key and of smaller ones.")] = None,
    prefix: Annotated[str | None, typer.Option(metavar="TEXT", help="Rows of keys that begin with this text.")] = None,
    since: Annotated[
        int | None,
        typer.Option(
            parser=_read_time,
            metavar="TIME",
            help="Windows that begin at this time or later: ISO 8601, in UTC if it names no zone, or milliseconds "
            "since 1970.",
        ),
    ] = None,
    until: Annotated[
        int | None,
        typer.Option(parser=_read_time, metavar="TIME", help="Windows that begin at this time or earlier."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Greatest number of rows.")] = 100,
    live: Annotated[
        bool,
        typer.Option("--live", help="Ask the running bridge for all that is processed, not only for the last commit."),
    ] = False,
) -> None:
    """Show the state of a topology as lines of JSON.

    The state is that of the last commit, whether the topology runs or not; with --live, the present state.
    """
    from engine.topologies.state import open_state

    with open_state(load(config), build, node, live=live) as asked:
        for row in asked.rows(
            key, from_key=from_key, to_key=to_key, prefix=prefix, since=since, until=until, limit=limit
        ):
            typer.echo(json_text(row))


for each in (run, check_topologies, state, migrate, skip, reset):
    app.command(each.name, epilog=each.epilog)(each.run)


class _Progress:
    """Prints a line when a topology runs, and one every ten seconds in which it processed records."""

    def __init__(self) -> None:
        self._shown_at = 0.0
        self._records = -1

    def show(self, figures: TopologyFigures) -> None:
        now = time.monotonic()
        if self._records < 0:
            typer.echo(f"{figures.topology} runs ({figures.mode}); Ctrl-C ends it")
        elif figures.records == self._records or now - self._shown_at < _PROGRESS_SECONDS:
            return
        if self._records >= 0:
            rate = (figures.records - self._records) / (now - self._shown_at)
            typer.echo(f"{figures.records:,} records, {rate:,.0f}/s{figures.remarks}")
        self._records, self._shown_at = figures.records, now


class _Sink(NamedTuple):
    """A sink as the topology shows it."""

    name: str
    topic: str
    url: str
    routes: Mapping[str, str]
    """Destination in the sink's system by the name of each route to it."""


def _sinks(config: Config) -> list[_Sink]:
    return [_Sink(sink.name, sink.topic, config.url(sink), _destinations(config.routes, sink)) for sink in config.sinks]


def _destinations(routes: Sequence[Route], sink: SinkConfig) -> dict[str, str]:
    destinations = {}
    for route in routes:
        targets = [str(target) for target in route.targets if target.sink == sink.name]
        if targets:
            destinations[route.name] = f"{sink.name}: requesters" if route.added else ", ".join(targets)
    return destinations


def _sinks_text(sinks: Sequence[_Sink]) -> str:
    """Each sink with its topic and the destinations of its routes, below a topology in the form of Kafka Streams."""
    lines = ["Sinks:"]
    for sink in sinks:
        lines.append(f"   Sink: {sink.name} (topic: {sink.topic}, broker: {sink.url})")
        lines += [f"    {name} --> {destination}" for name, destination in sink.routes.items()]
    return "\n".join(lines) + "\n" if sinks else ""


def _sinks_mermaid(sinks: Sequence[_Sink], flowchart: str) -> str:
    """The flowchart with the destinations of sinks behind their topics."""
    lines = [flowchart.rstrip("\n")]
    ids = {match[2]: match[1] for match in re.finditer(r'^  (t[0-9]+)\[\("(.*)"\)\]$', flowchart, re.MULTILINE)}
    for sink in sinks:
        for name, destination in sink.routes.items():
            place = f"s{len(lines)}"
            lines += [f'  {ids[sink.topic]} -- "{_quoted(name)}" --> {place}[/"{_quoted(destination)}"/]']
    return "\n".join(lines) + "\n"


def _sink_json(sink: _Sink) -> dict[str, Any]:
    """The JSON object of a sink, in the form of `engine.topologies.library.describe.records`."""
    return {
        "kind": "sink connector",
        "name": sink.name,
        "topics": [sink.topic],
        "broker": sink.url,
        "routes": sink.routes,
    }


def _quoted(text: str) -> str:
    return text.replace("#", "#35;").replace('"', "#quot;")
