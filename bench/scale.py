"""Growth of the router's cost: what a record takes when one thing grows and all else stays.

A case is a full journal that the router takes to its end. Bodies, partitions of the journal, and output topics grow;
one long backlog shows whether rate and memory hold. All records have a route, by the equality of a property, and go to
all topics in turn. Figures are those between two shares of the records, so that neither start nor end counts.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from bench import programs
from bench.chart import Axis, Panel, chart
from bench.contestants import Bridge, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import Work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.broker import Broker
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = [
    "Case",
    "Figures",
    "Sample",
    "cases",
    "figures",
    "loaded",
    "measure",
    "pictures",
    "place_of",
    "quarters",
    "samples_of",
]

TARGET_COUNT = 1.5
"""Greatest CPU for a record with many partitions or topics, to that with the fewest."""
TARGET_BYTE = 1.1
"""Greatest CPU for a byte of a body, to that in bodies of the next smaller size."""
TARGET_RATE = 0.9
"""Least rate in the last quarter of a backlog, to that in its second."""
TARGET_MEMORY = 1.1
"""Greatest resident memory at the end of a backlog, to that after a quarter."""
_BODIES: dict[float, str] = {50: "50", 400: "400", 4096: "4 Ki", 65536: "64 Ki", 1048576: "1 Mi"}
_PARTITIONS = (4, 16, 64)
_TOPICS = (5, 50, 200)
_CASE_RECORDS, _CASE_BYTES = 2_000_000, 2 << 30
"""What the journal of a case holds at most, apart from the long backlog."""
_STEADY = (0.4, 0.95)
"""Shares of the records between which figures are taken; Java has compiled the relevant code by then."""
_STEPS = 20
"""Number of equal parts of the long backlog; its picture leaves out the first, in which the router starts."""
_SAMPLE_SECONDS = 0.25
_PATIENCE_SECONDS = 120.0
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """A journal, and the topics that its records go to."""

    body_bytes: int
    partitions: int
    topics: int
    records: int

    @property
    def name(self) -> str:
        """Everything about it."""
        shape = f"{self.body_bytes:,} B, {self.partitions} partitions, {self.topics} topics"
        return f"{shape}, {self.records:,} records"


@dataclass(frozen=True, slots=True)
class Sample:
    """State of a run at one moment."""

    routed: float
    """Records in the output topics."""
    seconds: float
    cpu_seconds: float
    """Those of the router's process tree so far."""
    resident_mb: float
    """Resident memory of Java and Python."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Cost of the records of a case."""

    rate: float
    """Records a second."""
    cpu_per_million: float
    average_mb: float
    peak_mb: float


Runs = dict[tuple[Case, str], list[list[Sample]]]
"""Samples of all rounds by case and mode."""


def cases(backlog: int) -> dict[str, list[Case]]:
    """The cases by what grows; a backlog smaller than a case makes the cases smaller."""
    usual = Case(400, _PARTITIONS[0], _TOPICS[0], min(_CASE_RECORDS, backlog))
    return {
        "size": [
            replace(usual, body_bytes=size, records=min(usual.records, _CASE_BYTES // size))
            for size in map(int, _BODIES)
        ],
        "partitions": [replace(usual, partitions=count) for count in _PARTITIONS],
        "topics": [replace(usual, topics=count) for count in _TOPICS],
        "backlog": [replace(usual, records=backlog)],
    }


def measure(broker: Broker, options: Options) -> Report:
    """Every case in each mode, in rounds; the long backlog once."""
    found: Runs = {}
    growing = cases(options.scale_records)
    (backlog,) = growing.pop("backlog")
    # The usual case occurs in every row, and is measured once.
    distinct = dict.fromkeys(case for row in growing.values() for case in row)
    for turn in range(options.rounds):
        for case in distinct:
            _run(broker, case, options, found)
        if turn == 0 and backlog not in distinct:
            _run(broker, backlog, options, found)
    if options.pictures:
        for name, drawn in pictures(found, options.scale_records).items():
            (options.pictures / f"scale-{name}.svg").write_text(drawn)
    return _report(found, options)


def _run(broker: Broker, case: Case, options: Options, found: Runs) -> None:
    """Loads the journal of a case and lets the bridge route it in each mode."""
    journal = loaded(broker, case, options)
    for mode in options.modes:
        place = place_of(broker, case, journal, options)
        samples = samples_of(broker, case, Bridge(mode, options.settings, options.router), place)
        found.setdefault((case, mode), []).append(samples)
        told = figures(samples)
        print(
            f"{mode}, {case.name}: {told.rate:,.0f} records/s, {told.cpu_per_million:.1f} CPU-s per million, "
            f"{told.average_mb:.0f} MB on average",
            flush=True,
        )
    broker.delete(journal)


def loaded(broker: Broker, case: Case, options: Options) -> str:
    """Makes a journal with the records of a case; returns its name."""
    journal = f"journal.{Place(broker.bootstrap, '', options.folder).run}"
    broker.create(journal, partitions=case.partitions)
    load = {"records": case.records, "regions": case.topics, "bytes": case.body_bytes}
    programs.run("Load", bootstrap=broker.bootstrap, topic=journal, **load)
    return journal


def place_of(broker: Broker, case: Case, journal: str, options: Options) -> Place:
    """Topics and files of a run on the journal of a case, with a route for each topic."""
    routes = {f"r{region}": f"msg.header.region==r{region}" for region in range(case.topics)}
    return Place(broker.bootstrap, journal, options.folder, work=Work(routes))


def samples_of(broker: Broker, case: Case, bridge: Bridge, place: Place, beside: Sequence[int] = ()) -> list[Sample]:
    """Samples of a bridge that routes the journal of a case; the processes `beside` it count as its own.

    Raises:
        RuntimeError: a topic does not have its number of records in the end.
    """
    broker.create(*place.outputs)
    with running(bridge.command(place), place.log, programs.ROOT, beside=beside) as process:
        seen = _watch(broker, case, place, process)
        broker.await_count(place.outputs, case.records, process, 0.0)
        samples = [
            Sample(routed, moment - process.started, process.cpu_seconds(process.started, moment), resident)
            for moment, routed, resident in seen
        ]
    counts = list(broker.counts(place.outputs).values())
    broker.delete(*place.outputs)
    # Records go to the topics in turn.
    wanted = [len(range(topic, case.records, case.topics)) for topic in range(case.topics)]
    if counts != wanted:
        msg = f"{bridge.name} did not route as it must: {counts} records by topic instead of {wanted}"
        raise RuntimeError(msg)
    place.clean()
    return samples


def _watch(broker: Broker, case: Case, place: Place, process: ProcessTree) -> list[tuple[float, int, float]]:
    """Time, number of routed records and resident memory, until all are routed."""
    seen: list[tuple[float, int, float]] = []
    progress, routed = time.monotonic(), 0
    while routed < case.records:
        time.sleep(_SAMPLE_SECONDS)
        process.check()
        if (now := broker.count(place.outputs)) > routed:
            progress, routed = time.monotonic(), now
        elif time.monotonic() - progress > _PATIENCE_SECONDS:
            msg = f"{routed} of {case.records} records, none for {_PATIENCE_SECONDS:.0f} s, see {process.log}"
            raise RuntimeError(msg)
        seen.append((time.time(), routed, sum(size for _, size in process.memory().values()) / _MEGABYTE))
    return seen


def figures(samples: Sequence[Sample], shares: tuple[float, float] = _STEADY) -> Figures:
    """The figures between two shares of the records."""
    first, last = (_at(samples, share * samples[-1].routed) for share in shares)
    between = [each.resident_mb for each in samples if first.routed < each.routed < last.routed]
    resident = [first.resident_mb, *between, last.resident_mb]
    records = last.routed - first.routed
    return Figures(
        rate=records / (last.seconds - first.seconds),
        cpu_per_million=(last.cpu_seconds - first.cpu_seconds) / records * 1e6,
        average_mb=fmean(resident),
        peak_mb=max(resident),
    )


def quarters(samples: Sequence[Sample]) -> tuple[float, float]:
    """Rate in the last quarter to that in the second, and memory at the end to that after a quarter."""
    second, last = (figures(samples, shares).rate for shares in ((0.25, 0.5), (0.75, 1.0)))
    return last / second, samples[-1].resident_mb / _at(samples, samples[-1].routed / 4).resident_mb


def _at(samples: Sequence[Sample], routed: float) -> Sample:
    """The state when so many records had been routed, between two samples in proportion."""
    after = bisect_left(samples, routed, key=lambda sample: sample.routed)
    if after == 0:
        return samples[0]
    one, other = samples[after - 1], samples[after]
    share = (routed - one.routed) / (other.routed - one.routed)

    def part(of: Callable[[Sample], float]) -> float:
        return of(one) + (of(other) - of(one)) * share

    return Sample(
        routed,
        part(lambda sample: sample.seconds),
        part(lambda sample: sample.cpu_seconds),
        part(lambda sample: sample.resident_mb),
    )


def _middle(rounds: Sequence[Sequence[Sample]]) -> Figures:
    """Medians of the rounds."""
    found = [asdict(figures(samples)) for samples in rounds]
    return Figures(**{name: median(each[name] for each in found) for name in found[0]})


def pictures(found: Runs, backlog: int) -> dict[str, str]:
    """A chart as SVG for each thing that grows, by its name."""
    modes = list(dict.fromkeys(mode for _, mode in found))
    growing = cases(backlog)
    (long,) = growing.pop("backlog")
    axes: dict[str, tuple[Axis, Callable[[Case], float]]] = {
        "size": (Axis("body, bytes", logarithmic=True, marks=_BODIES), lambda case: case.body_bytes),
        "partitions": (
            Axis("partitions of the journal", logarithmic=True, marks={each: str(each) for each in _PARTITIONS}),
            lambda case: case.partitions,
        ),
        "topics": (
            Axis("output topics", logarithmic=True, marks={each: str(each) for each in _TOPICS}),
            lambda case: case.topics,
        ),
    }
    drawn = {}
    for name, (axis, value) in axes.items():
        lines = {mode: [(value(case), _middle(found[case, mode])) for case in growing[name]] for mode in modes}
        drawn[name] = chart(f"Cost by {axis.label}", _panels(axis, lines, wide=name == "size"))
    steps = [step / _STEPS for step in range(1, _STEPS + 1)]
    lines = {
        mode: [
            (until * backlog, figures(samples, (since, until)))
            for since, until in pairwise(steps)
            for samples in found[long, mode][:1]
        ]
        for mode in modes
    }
    drawn["backlog"] = chart("Cost over a long backlog", _panels(Axis("records routed"), lines, wide=False))
    return drawn


def _panels(x: Axis, lines: dict[str, list[tuple[float, Figures]]], *, wide: bool) -> list[Panel]:
    """Panels for rate, CPU and memory; `wide` is for figures of different orders of magnitude."""

    def panel(title: str, unit: str, of: Callable[[Figures], float], *, logarithmic: bool) -> Panel:
        points = {mode: [(at, of(each)) for at, each in line] for mode, line in lines.items()}
        return Panel(title, x, Axis(unit, logarithmic=logarithmic), points)

    return [
        panel("Rate", "records/s", lambda each: each.rate, logarithmic=wide),
        panel("CPU for a million records", "CPU-s", lambda each: each.cpu_per_million, logarithmic=wide),
        panel("Resident memory", "MB", lambda each: each.average_mb, logarithmic=False),
    ]


def _report(found: Runs, options: Options) -> Report:
    growing = cases(options.scale_records)
    rows, checks = [], []
    for (case, mode), rounds in found.items():
        each = _middle(rounds)
        amounts = (case.body_bytes, case.partitions, case.topics, case.records, each.rate)
        cells = [f"{each.cpu_per_million:,.1f}", f"{each.average_mb:,.0f}", f"{each.peak_mb:,.0f}"]
        rows.append([mode, *(f"{amount:,.0f}" for amount in amounts), *cells])
    for mode in options.modes:

        def cpu(case: Case, mode: str = mode) -> float:
            return _middle(found[case, mode]).cpu_per_million

        few, many = growing["partitions"][0], growing["partitions"][-1]
        name = f"scale, {mode}: CPU with {many.partitions} partitions to that with {few.partitions}"
        checks.append(Check(name, cpu(many) / cpu(few), TARGET_COUNT))
        few, many = growing["topics"][0], growing["topics"][-1]
        name = f"scale, {mode}: CPU with {many.topics} topics to that with {few.topics}"
        checks.append(Check(name, cpu(many) / cpu(few), TARGET_COUNT))
        steps = pairwise(cpu(case) / case.body_bytes for case in growing["size"])
        name = f"scale, {mode}: CPU for a byte to that of the next smaller body, greatest"
        checks.append(Check(name, max(larger / smaller for smaller, larger in steps), TARGET_BYTE))
        rate, memory = quarters(found[growing["backlog"][0], mode][0])
        name = f"scale, {mode}: rate in a backlog's last quarter to its second"
        checks.append(Check(name, rate, TARGET_RATE, at_least=True))
        checks.append(Check(f"scale, {mode}: memory at a backlog's end to its first quarter", memory, TARGET_MEMORY))
    things = ["body, B", "partitions", "topics", "records"]
    columns = ["", *things, "records/s", "CPU-s per million", "memory, MB", "peak"]
    title = "Scale, steady state; every topic has its number of records"
    return Report("scale", [table(title, columns, rows)], checks, _details(found))


def _details(found: Runs) -> list[dict[str, Any]]:
    return [
        {**asdict(case), "mode": mode, **asdict(figures(samples)), "samples": [asdict(each) for each in samples]}
        for (case, mode), rounds in found.items()
        for samples in rounds
    ]
