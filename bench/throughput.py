"""Rate at which a full journal is routed, and its cost in CPU.

Every contestant starts on the same full journal and writes to fresh topics, one after the other, in rounds. Times are
the broker's append times of the routed records, so they mean the same for all contestants: "steady" is from the moment
at which the share of the warm-up had been routed to the last record, "whole" from the first record to the last.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from bench import programs
from bench.contestants import Bridge, Peer, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import BRIDGE_ID, expected

if TYPE_CHECKING:
    from rich.table import Table

    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["JOURNAL", "LINGER_MS", "Pass", "load", "measure", "middle", "pass_of", "passes_of", "summary"]

TARGETS = {"bridge realtime": (1.1, 0.9), "bridge batch": (1.25, 0.8)}
"""Least rate and greatest CPU for a record, to the peer's."""
JOURNAL = "bench.journal"
LINGER_MS = 100
"""The peer's, which is the default of Kafka Streams."""
_PATIENCE_SECONDS = 540.0


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass of one contestant through the journal."""

    contestant: str
    start_seconds: float
    """Time from the start of the process to the first routed record."""
    whole_seconds: float
    steady_seconds: float
    rate: float
    """Journal records a second while steady."""
    cpu_per_million: float
    """CPU seconds of the process tree for a million journal records while steady."""
    cpu_seconds: float
    """CPU time of the process tree, from its start to the last record."""
    digest: str
    """Digest of the keys and bodies in each output topic, whatever their order."""


def measure(broker: Broker, options: Options) -> Report:
    """Loads the journal once and lets every contestant route it."""
    contestants: list[Contestant] = [Peer(LINGER_MS)] if options.peer else []
    contestants += [Bridge(mode, options.settings, options.router) for mode in options.modes]
    return _report(passes_of(broker, options, contestants))


def passes_of(broker: Broker, options: Options, contestants: list[Contestant], **further: object) -> list[Pass]:
    """Loads the journal once, with these arguments of `Load.java`, and lets every contestant route it, in rounds.

    RuntimeError unless all publish the same keys and bodies to their topics.
    """
    load(broker, options, **further)
    # The broker's own JVM is cold in the beginning, which must not count against the first contestant.
    first = pass_of(broker, contestants[0], options)
    print(f"to warm the broker: {_line(first)}", flush=True)
    passes: list[Pass] = []
    for _ in range(options.rounds):
        for contestant in contestants:
            passes.append(pass_of(broker, contestant, options))
            print(_line(passes[-1]), flush=True)
            if passes[-1].digest != first.digest:
                msg = f"{contestant.name} published other keys or bodies than {first.contestant}"
                raise RuntimeError(msg)
    broker.delete(JOURNAL)
    return passes


def load(broker: Broker, options: Options, **further: object) -> None:
    """Writes the journal, with further arguments of `Load.java`."""
    records = options.warm_up + options.records
    broker.create(JOURNAL)
    begun = time.monotonic()
    programs.run("Load", bootstrap=broker.bootstrap, topic=JOURNAL, records=records, **further)
    print(f"journal loaded: {records} records in {time.monotonic() - begun:.0f} s", flush=True)


def pass_of(broker: Broker, contestant: Contestant, options: Options) -> Pass:
    """Lets a contestant route the journal into fresh topics; RuntimeError unless it routes as it must."""
    place = Place(broker.bootstrap, JOURNAL, options.folder, work=contestant.work)
    copies = contestant.work.copies
    wanted = dict(zip(place.outputs, expected(options.warm_up + options.records) * copies, strict=True))
    warm = sum(expected(options.warm_up)) * copies
    broker.create(*place.outputs)
    with running(contestant.command(place), place.log, programs.ROOT) as process:
        broker.await_still(place.outputs, sum(wanted.values()), process, _PATIENCE_SECONDS)
        started = process.started
    found = programs.verify(broker.bootstrap, place.outputs, BRIDGE_ID, warm)
    broker.delete(*place.outputs)
    _check(contestant.name, found, wanted)
    place.clean()
    first, steady, last = (found[name] / 1000 for name in ("first_ms", "warm_ms", "last_ms"))
    millions = options.records / 1e6 * found["steady"] / (sum(wanted.values()) - warm)
    return Pass(
        contestant=contestant.name,
        start_seconds=first - started,
        whole_seconds=last - first,
        steady_seconds=last - steady,
        rate=millions * 1e6 / (last - steady),
        cpu_per_million=process.cpu_seconds(steady, last) / millions,
        cpu_seconds=process.cpu_seconds(started, last),
        digest=found["digest"],
    )


def _check(name: str, found: dict[str, Any], wanted: dict[str, int]) -> None:
    wrong = {fault: found[fault] for fault in ("misrouted", "repeated", "unmarked", "wrong_key") if found[fault]}
    if found["topics"] != wanted or wrong:
        msg = f"{name} did not route as it must: {found['topics']} instead of {wanted}, {wrong}"
        raise RuntimeError(msg)


def _line(each: Pass) -> str:
    return (
        f"{each.contestant}: {each.rate:,.0f} records/s steady, {each.cpu_per_million:.1f} CPU-s per million, "
        f"first to last {each.whole_seconds:.1f} s, first record after {each.start_seconds:.1f} s"
    )


def _report(passes: list[Pass]) -> Report:
    names = list(dict.fromkeys(each.contestant for each in passes))
    peer = names[0] if not names[0].startswith("bridge") else None
    checks = []
    for name in names:
        if peer and name in TARGETS:
            least, most = TARGETS[name]
            rate, cpu = (
                middle(passes, name, field) / middle(passes, peer, field) for field in ("rate", "cpu_per_million")
            )
            checks.append(Check(f"throughput, {name}: rate to the peer's", rate, least, at_least=True))
            checks.append(Check(f"throughput, {name}: CPU to the peer's", cpu, most))
    title = "Throughput, steady state; every record counted, in the right topic, once"
    return Report("throughput", [summary(title, passes, peer)], checks, [asdict(each) for each in passes])


def middle(passes: list[Pass], name: str, field: str) -> float:
    """Returns the median of a figure over the passes of one contestant."""
    return float(median(getattr(each, field) for each in passes if each.contestant == name))


def summary(title: str, passes: list[Pass], peer: str | None) -> Table:
    """Returns the table of all contestants, with rates to that of `peer`."""
    rows = []
    for name in dict.fromkeys(each.contestant for each in passes):
        rates = sorted(each.rate for each in passes if each.contestant == name)
        ratio = middle(passes, name, "rate") / middle(passes, peer, "rate") if peer else None
        rows.append(
            [
                name,
                f"{rates[0]:,.0f} / {middle(passes, name, 'rate'):,.0f} / {rates[-1]:,.0f}",
                f"{ratio:.2f}" if ratio else "",
                *(
                    f"{middle(passes, name, field):.1f}"
                    for field in ("cpu_per_million", "whole_seconds", "start_seconds")
                ),
            ]
        )
    columns = ["", "records/s min / median / max", "ratio", "CPU-s per million", "first to last, s", "to first, s"]
    return table(title, columns, rows)
