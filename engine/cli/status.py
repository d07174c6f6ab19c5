"""`jms-bridge status | lag`: the state of a running bridge, and its waiting records."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.options import DEFAULT_CONFIG, ConfigFile, Json, command, load
from engine.cli.output import console, note
from engine.errors import UnreachableError
from engine.printable import json_text, listed, printable
from engine.telemetry.amounts import duration, number, rate, size
from engine.telemetry.http_section import HttpConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from engine.lag import LagReport
    from engine.telemetry.report import ComponentReport, PeerReport, Report
    from routes.model import Config

__all__ = ["lag", "status"]

NOT_READY = 1
"""Exit code of a single look at a bridge that is not ready."""

_ADDRESS, _ELLIPSIS = 30, 3
"""Most characters of an address, and the room for the sign that there are more."""
_DETAILED = 120
"""Columns of a terminal from which on the table has the report of each part."""
_MOST_PARTS = 20
"""Most parts in a table of some."""
_COLOURS = {
    "ready": "green",
    **dict.fromkeys(("starting", "stopping", "standing by", "paused"), "yellow"),
    **dict.fromkeys(("degraded", "down", "unreachable"), "red"),
}
_CALM = ("ready", "standing by")
"""States in which the report of a part may be cut."""


@command("jms-bridge status", "jms-bridge status --once", "jms-bridge status -c /etc/jms-bridge.properties --json")
def status(
    config: ConfigFile = DEFAULT_CONFIG,
    once: Annotated[
        bool, typer.Option("--once", help="Print the table once; the exit code says whether the bridge is ready.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="Show all parts, not only 20 of them. Parts that do not work come first.")
    ] = False,
    json_output: Json = False,
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, max=3600.0, metavar="SECONDS", help="Time between two updates.")
    ] = 2.0,
) -> None:
    """Show the state of the running bridge: its parts, their throughput, and waiting records. Ctrl-C ends the command.

    The command asks the bridge at `http.address` of the properties file, with the login given there. It also shows the
    parts on the hosts in `http.peers`, which that bridge asks. On a terminal the table is kept up to date; elsewhere,
    and with --once or --json, it is printed once. The exit code is then 0 if the bridge, on all hosts, is ready or
    stands by, 1 if it is not ready, 6 if no bridge answers.
    """
    from engine.telemetry.report import look, read_earlier

    settings = load(config, logs=False)
    http = settings.section(HttpConfig)
    if once or json_output or not sys.stdout.isatty():
        report, _ = look(settings.bridge_id, http, read_earlier(http))
        if json_output:
            typer.echo(json_text(asdict(report)))
        else:
            screen = console()
            screen.print(_shown(report, screen.width, every=every))
        raise typer.Exit(0 if report.is_well else NOT_READY)
    _watch(settings.bridge_id, http, interval, every=every)


def _watch(bridge_id: str, http: HttpConfig, interval: float, *, every: bool) -> None:
    from rich.live import Live
    from rich.text import Text

    from engine.telemetry.client import base_url
    from engine.telemetry.report import MetricSample, look

    before = MetricSample(time.monotonic())
    with Live(Text(f"asking {base_url(http)} …"), console=console(), auto_refresh=False) as live:
        while True:
            try:
                report, before = look(bridge_id, http, before)
                shown: RenderableType = _shown(report, live.console.width, every=every)
            except UnreachableError as error:
                shown = Text(printable(f"{error}\nasking again every {interval:g} s; Ctrl-C ends this"), style="red")
            live.update(shown, refresh=True)
            time.sleep(interval)


def _shown(report: Report, width: int, *, every: bool) -> RenderableType:
    """The report for a terminal of that many columns; with `every` part, or the first ones."""
    from rich.console import Group
    from rich.text import Text

    lines = [_flow(report), _waiting(report), *_unmatched(report, width), printable(_configuration(report)), ""]
    ordered = sorted(_parts(report), key=lambda each: each[0].state in _CALM)
    shown = ordered if every else ordered[:_MOST_PARTS]
    parts: list[RenderableType] = [_table(shown, hosts=bool(report.peers), detailed=width >= _DETAILED)]
    if width < _DETAILED:
        parts += [
            Text(printable(f"{_place(part, peer)}: {part.detail}"), style=_COLOURS.get(part.state, ""))
            for part, peer in shown
            if part.detail and part.state not in _CALM
        ]
    if more := ordered[len(shown) :]:
        bad = sum(part.state not in _CALM for part, _ in more)
        summary = f"{bad} of them not ready" if bad else "all of them ready"
        parts.append(Text(f"and {len(more)} more, {summary}; --all shows them"))
    parts += [
        Text(printable(f"{peer.address}: has not answered for {duration(peer.silent_seconds)}: {peer.trouble}"), "red")
        for peer in report.peers
        if not peer.reachable
    ]
    return Group(_headline(report), *map(Text, lines), *parts)


def _parts(report: Report) -> Iterator[tuple[ComponentReport, PeerReport | None]]:
    """The parts of the host that was asked, then those of its peers, each with its peer."""
    yield from ((part, None) for part in report.parts)
    yield from ((part, peer) for peer in report.peers for part in peer.parts)


def _place(part: ComponentReport, peer: PeerReport | None) -> str:
    return f"{part.component} at {peer.address}" if peer else part.component


def _table(
    parts: Sequence[tuple[ComponentReport, PeerReport | None]], *, hosts: bool, detailed: bool
) -> RenderableType:
    """The parts, with their hosts; `detailed` with the report of each, which needs a wide terminal."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("part", overflow="fold")
    if hosts:
        table.add_column("host", overflow="fold")
    table.add_column("state", no_wrap=True)
    for heading in ("messages", "waiting", "restarts", "cores", "memory"):
        table.add_column(heading, justify="right", no_wrap=True)
    if detailed:
        table.add_column("says")
    for part, peer in parts:
        row: list[RenderableType] = [
            printable(part.component),
            *([peer.address if peer else "this host"] if hosts else []),
            Text(part.state, style=_COLOURS.get(part.state, "")),
            rate(part.rate) if part.rate is not None else "",
            _lag(part),
            number(part.restarts) if part.restarts else "",
            f"{part.cpu:.2f}" if part.cpu is not None else "",
            size(part.memory) if part.memory is not None else "",
        ]
        if detailed:
            # A fault is shown in full.
            row.append(Text(printable(part.detail), no_wrap=part.state in _CALM, overflow="ellipsis"))
        table.add_row(*row)
    return table


def _lag(part: ComponentReport) -> str:
    """The number of records that wait; a dash for a source whose system does not say it."""
    is_told = part.lag is not None or part.component.startswith("source:")
    return number(part.lag) if is_told and "/" not in part.component else ""


def _headline(report: Report) -> RenderableType:
    from rich.text import Text

    line = Text.assemble((printable(report.bridge), "bold"), f" at {report.url}: ")
    waiting = [
        *(() if report.stands_by else report.waiting_for),
        *(each.address for each in report.peers if not each.ready),
    ]
    if waiting:
        return line.append(printable(f"not ready, waiting for {listed(waiting)}"), style="red")
    if report.stands_by:
        return line.append(printable(f"stands by, {report.standby}"), style="yellow")
    line.append("ready", style="green")
    parts = [part.component for part, _ in _parts(report) if part.state == "paused"]
    if paused := [*parts, *(f"route:{name}" for name in report.paused_routes)]:
        line.append(printable(f", paused: {listed(paused)}"), style="yellow")
    return line


def _flow(report: Report) -> str:
    figures = f"received {rate(report.received)}   routed {rate(report.routed)}   failed {rate(report.failed)}"
    return f"{figures}   latency {duration(report.latency_seconds)}"


def _waiting(report: Report) -> str:
    line = f"journal {number(report.journal_lag)} waiting, oldest {duration(report.journal_lag_seconds)}"
    if report.dead_letters is not None:
        line += f"   dead letters {number(report.dead_letters)} open"
        if report.dead_letters:
            line += f", oldest {duration(report.dead_letters_oldest_seconds)}"
    return line + (f"   held {number(report.held)}" if report.held else "")


def _unmatched(report: Report, width: int) -> list[str]:
    """A line about messages that no route took, with as many addresses as it has room for; none without any."""
    if not report.unmatched:
        return []
    line = f"no route took {number(sum(each.messages for each in report.unmatched))}"
    for place, each in enumerate(report.unmatched):
        address = printable(each.address)
        shown = address if len(address) <= _ADDRESS else f"{address[: _ADDRESS - 1]}…"
        more = f"{', ' if place else ': '}{number(each.messages)} to {shown or '(none)'}"
        if len(line) + len(more) > width - _ELLIPSIS:
            return [f"{line}, …" if place else line]
        line += more
    return [line]


def _configuration(report: Report) -> str:
    line = f"configuration {report.config_hash}, read at {report.reload_time}"
    return line if report.reload_success else f"{line}; the last reload was refused: {report.reload_why}"


@command("jms-bridge lag", "jms-bridge lag --kafka", "jms-bridge lag --json")
def lag(
    config: ConfigFile = DEFAULT_CONFIG,
    from_kafka: Annotated[
        bool, typer.Option("--kafka", help="Ask Kafka for the committed positions instead of the bridge.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Show how many records wait, by partition of the journal and by sink.

    The figures of a running bridge are at most seconds old. If no bridge answers, or with --kafka, the command asks
    Kafka, where the router notes its position every `router.interval`: some of the records that then seem to wait may
    have been published already.
    """
    reports = _lag_reports(load(config), ask_kafka=from_kafka)
    if json_output:
        for report in reports:
            typer.echo(json_text(asdict(report)))
    else:
        _print(reports)


def _lag_reports(config: Config, *, ask_kafka: bool) -> Sequence[LagReport]:
    from engine.lag import from_bridge, from_kafka

    if not ask_kafka:
        try:
            return from_bridge(config.section(HttpConfig), config.journal.topic, config.sinks)
        except UnreachableError as error:
            note(f"{error} Asking Kafka instead.")
    return from_kafka(config)


def _print(reports: Sequence[LagReport]) -> None:
    from rich.table import Table

    from engine.telemetry.amounts import duration, number

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("waits for", "in"):
        table.add_column(heading, no_wrap=True)
    for heading in ("records", "oldest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in reports:
        oldest = "" if each.oldest_seconds is None else duration(each.oldest_seconds)
        table.add_row(printable(each.component), printable(each.place), number(each.records), oldest)
    table.add_row("", "all", number(sum(each.records for each in reports)), "", style="bold")
    console().print(table)
