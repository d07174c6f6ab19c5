"""Latency of messages from the journal's producer to a consumer of their output topic, at an even rate.

`peer/…/Paced.java` sends and receives, with one clock. Each contestant is warmed with a loaded journal, then ten
seconds of the paced messages are left out, then the window begins; it is as long as four intervals of the bridge's
real-time mode. "without boundaries" leaves out the second before and after each interval's commit.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, Any

from bench import programs
from bench.contestants import Bridge, Peer, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.workload import expected

if TYPE_CHECKING:
    from pathlib import Path

    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = [
    "QUANTILES",
    "TARGET_MILLISECONDS",
    "latency_of",
    "measure",
    "paced_samples",
    "quantiles",
    "read_samples",
]

TARGET_MEDIAN, TARGET_P99 = 1.0, 1.0
TARGET_MILLISECONDS = 100.0
"""Greatest latency of all but one message in a thousand, boundaries included."""
_WARM_RECORDS = 320_000
_WARM_SECONDS = 10
_AROUND_MICROS = 1_000_000
_PATIENCE_SECONDS = 180.0
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}

Sample = tuple[int, int]
"""Time at which a message was sent (microseconds since 1970), and its latency (microseconds)."""


def measure(broker: Broker, options: Options) -> Report:
    """All contestants in turn, in rounds."""
    contestants: list[Contestant] = [Peer(linger_ms=0)] if options.peer else []
    if "realtime" in options.modes:
        contestants.append(Bridge("realtime", options.settings, options.router))
    runs = []
    for _ in range(options.rounds):
        if options.floor:
            runs.append(_floor(broker, options))
            print(_line(runs[-1]), flush=True)
        for contestant in contestants:
            runs.append(latency_of(broker, contestant, options))
            print(_line(runs[-1]), flush=True)
    return _report(runs)


def latency_of(broker: Broker, contestant: Contestant, options: Options) -> dict[str, Any]:
    """Quantiles of one contestant in milliseconds, of all messages and of those far from boundaries."""
    place = _place(broker, options)
    broker.create(place.journal, *place.outputs)
    programs.run("Load", bootstrap=broker.bootstrap, topic=place.journal, records=_WARM_RECORDS)
    with running(contestant.command(place), place.log, programs.ROOT) as process:
        broker.await_count(place.outputs, sum(expected(_WARM_RECORDS)), process, _PATIENCE_SECONDS)
        samples = _samples(place, ",".join(place.outputs), options)
        commits = [int(moment * 1e6) for moment in Bridge.commits(place)]
    broker.delete(place.journal, *place.outputs)
    place.clean()
    quiet = [sample for sample in samples if not _near(commits, sample[0])]
    begin, end = samples[0][0], samples[-1][0]
    return {
        "contestant": contestant.name,
        "messages": len(samples),
        "boundaries": sum(begin < commit < end for commit in commits),
        "milliseconds": quantiles(samples),
        "milliseconds_without_boundaries": quantiles(quiet),
    }


def _floor(broker: Broker, options: Options) -> dict[str, Any]:
    place = _place(broker, options)
    broker.create(place.journal)
    samples = _samples(place, place.journal, options)
    broker.delete(place.journal)
    figures = quantiles(samples)
    return {
        "contestant": "plain consumer",
        "messages": len(samples),
        "boundaries": 0,
        "milliseconds": figures,
        "milliseconds_without_boundaries": figures,
    }


def _place(broker: Broker, options: Options) -> Place:
    place = Place(broker.bootstrap, "", options.folder)
    return Place(broker.bootstrap, f"journal.{place.run}", options.folder, place.run)


def _samples(place: Place, outputs: str, options: Options) -> list[Sample]:
    file = place.folder / f"{place.run}.csv"
    return paced_samples(file, options, bootstrap=place.bootstrap, journal=place.journal, outputs=outputs)


def paced_samples(file: Path, options: Options, **arguments: object) -> list[Sample]:
    """Samples of `Paced` in the order of sending, without the warm-up; it writes to the file, which is removed."""
    seconds = options.latency_seconds + _WARM_SECONDS
    programs.run("Paced", rate=options.rate, seconds=seconds, samples=file, **arguments)
    found = sorted(read_samples(file))
    file.unlink()
    begin = found[0][0] + _WARM_SECONDS * 1_000_000
    return [sample for sample in found if sample[0] >= begin]


def read_samples(file: Path) -> list[Sample]:
    """What `Paced` has written: samples in the order of arrival."""
    with file.open() as lines:
        pairs = (line.split(",") for line in lines)
        return [(int(sent), int(took)) for sent, took in pairs]


def _near(moments: list[int], moment: int) -> bool:
    after = bisect_left(moments, moment - _AROUND_MICROS)
    return after < len(moments) and moments[after] <= moment + _AROUND_MICROS


def quantiles(samples: list[Sample]) -> dict[str, float]:
    """Milliseconds; each is the smallest value that the given share of messages did not exceed."""
    took = sorted(each for _, each in samples)
    return {name: took[math.ceil(share * len(took)) - 1] / 1000 for name, share in QUANTILES.items()}


def _line(run: dict[str, Any]) -> str:
    figures = " ".join(f"{name} {value:.2f}" for name, value in run["milliseconds"].items())
    return f"{run['contestant']}: {figures} ms, {run['boundaries']} boundaries, {run['messages']} messages"


def _report(runs: list[dict[str, Any]]) -> Report:
    rows = []
    checks = []
    names = list(dict.fromkeys(run["contestant"] for run in runs))

    def middle(name: str, kind: str, quantile: str) -> float:
        return float(median(run[kind][quantile] for run in runs if run["contestant"] == name))

    for name in names:
        kinds = {"milliseconds": name}
        if name.startswith("bridge"):
            kinds["milliseconds_without_boundaries"] = f"{name}, without boundaries"
        for kind, label in kinds.items():
            rows.append([label, *(f"{middle(name, kind, quantile):.2f}" for quantile in QUANTILES)])
    for name in names:
        peer = next((each for each in names if each == "kafka streams"), None)
        if peer is None or not name.startswith("bridge"):
            continue
        for quantile, target in (("p50", TARGET_MEDIAN), ("p99", TARGET_P99)):
            ratio = middle(name, "milliseconds", quantile) / middle(peer, "milliseconds", quantile)
            checks.append(Check(f"latency, {name}: {quantile} to the peer's", ratio, target))
        slowest = middle(name, "milliseconds", "p99.9")
        checks.append(Check(f"latency, {name}: p99.9, ms", slowest, TARGET_MILLISECONDS))
    title = "Latency, end to end, milliseconds; median of the rounds"
    return Report("latency", [table(title, ["", *QUANTILES], rows)], checks, runs)
