"""The command line: which measurement, and how big."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.connectors.cases import CASES
from bench.contestants import Bridge
from bench.nexmark.contestants import NexmarkProgram
from bench.nexmark.results import QUERIES
from bench.stream_contestants import TOPOLOGIES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["MEASUREMENTS", "Options", "parse"]

MEASUREMENTS = (
    "throughput",
    "content",
    "latency",
    "memory",
    "start",
    "recovery",
    "codecs",
    "jms-source",
    "amqp-listener",
    "requests",
    "connectors",
    "routes",
    "streams",
    "scale",
    "intervals",
    "executors",
    "find",
    "find-load",
    "growth",
    "stream-latency",
    "stream-state",
    "nexmark",
)
_MODES = ("realtime", "batch")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    measurements: tuple[str, ...]
    records: int
    warm_up: int
    rounds: int
    rate: int
    latency_seconds: int
    memory_rate: int
    memory_seconds: int
    start_records: int
    """Records of the full journal; 0: none is measured."""
    recovery_records: int
    find_records: int
    scale_records: int
    pictures: Path | None
    """Folder to draw pictures in; None: no pictures."""
    source_messages: int
    source_warm_up: int
    connectors: tuple[str, ...]
    """Names of the sources and sinks to measure."""
    workers: int
    """Number of workers in the additional run; 1: no additional run."""
    requests: int
    request_rate: int
    keys: int
    """Keys of the large state."""
    events: int
    """Nexmark events."""
    queries: tuple[str, ...]
    """Nexmark queries."""
    topologies: tuple[str, ...]
    """Topologies of the measurement `streams`."""
    programs: tuple[NexmarkProgram, ...]
    """Contestants of Nexmark."""
    modes: tuple[str, ...]
    peer: bool
    floor: bool
    settings: dict[str, str]
    """Settings for the bridge's properties file."""
    router: str
    """Way in which the router is started."""
    folder: Path


def parse(arguments: Sequence[str]) -> Options:
    """The options in a command line; exits with help if they make no sense."""
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures the bridge beside a Kafka Streams program that does the same work.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("measurements", nargs="*", default="all", choices=(*MEASUREMENTS, "all"))
    add("--records", type=int, default=5_000_000, help="throughput: records that are timed")
    add("--warm-up", type=int, default=3_000_000, help="throughput: records before these")
    add("--rounds", type=int, default=3, help="all but memory, stream-latency and stream-state: how often each runs")
    add("--rate", type=int, default=1_000, help="latency, stream-latency: messages a second")
    add("--seconds", type=int, default=500, help="latency, stream-latency: how long, after ten seconds of warming")
    add("--memory-rate", type=int, default=20_000, help="memory: messages a second")
    add("--memory-seconds", type=int, default=600, help="memory: how long")
    add("--start-records", type=int, default=5_000_000, help="start: records of the full journal; 0: none")
    add("--recovery-records", type=int, default=10_000_000, help="recovery: records in the outputs")
    add("--find-records", type=int, default=3_000_000, help="find: records in the journal")
    add(
        "--scale-records",
        type=int,
        default=20_000_000,
        help="scale: records of the long backlog; scale, executors: of a case at most",
    )
    add("--source-messages", type=int, default=100_000, help="jms-source, connectors: messages timed")
    add("--source-warm-up", type=int, default=50_000, help="jms-source, connectors: messages before these")
    add("--requests", type=int, default=3_000, help="requests: how many are timed, each way")
    add("--request-rate", type=int, default=200, help="requests: a second")
    add("--keys", type=int, default=5_000_000, help="stream-state: number of keys, and of updates after them")
    add("--events", type=int, default=2_000_000, help="nexmark: events")
    for option, kind, names in (("queries", "nexmark", QUERIES), ("topologies", "streams", TOPOLOGIES)):
        told = f"{kind}: only these, with commas between them"
        add(f"--{option}", type=_some(names), default=",".join(names), help=told)
    add(
        "--contestants",
        type=_programs,
        default="batch,kafka-streams,flink,flink-heap",
        help=f"nexmark: of {', '.join(NexmarkProgram)}",
    )
    add("--only", action="append", choices=CASES, help="connectors: only this one; may be given several times")
    add("--workers", type=int, default=2, help="connectors: how many are measured beside one; 1: none")
    add("--mode", choices=_MODES, help="only this mode of the bridge")
    add("--no-peer", action="store_true", help="the bridge alone")
    add("--floor", action="store_true", help="latency: also a plain consumer on the journal, with no routing at all")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a line for the bridge's properties file")
    add("--router", default=Bridge.COMMAND, metavar="COMMAND", help="another router; gets the properties file's path")
    add("--pictures", type=Path, metavar="FOLDER", help="scale, intervals: also draw the figures, as SVG")
    add("--folder", type=Path, default=Path("var/bench"), help="data of the runs, and results")
    given = parser.parse_args(arguments)
    pairs = [pair.partition("=") for pair in given.set]
    if any(not separator for _, separator, _ in pairs):
        parser.error("--set expects KEY=VALUE")
    return Options(
        measurements=MEASUREMENTS if "all" in given.measurements else tuple(given.measurements),
        records=given.records,
        warm_up=given.warm_up,
        rounds=given.rounds,
        rate=given.rate,
        latency_seconds=given.seconds,
        memory_rate=given.memory_rate,
        memory_seconds=given.memory_seconds,
        start_records=given.start_records,
        recovery_records=given.recovery_records,
        find_records=given.find_records,
        scale_records=given.scale_records,
        pictures=given.pictures,
        source_messages=given.source_messages,
        source_warm_up=given.source_warm_up,
        connectors=tuple(given.only or CASES),
        workers=given.workers,
        requests=given.requests,
        request_rate=given.request_rate,
        keys=given.keys,
        events=given.events,
        queries=given.queries,
        topologies=given.topologies,
        programs=given.contestants,
        modes=(given.mode,) if given.mode else _MODES,
        peer=not given.no_peer,
        floor=given.floor,
        settings={key: value for key, _, value in pairs},
        router=given.router,
        folder=given.folder.resolve(),
    )


def _some(known: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    def read(text: str) -> tuple[str, ...]:
        names = tuple(text.split(","))
        if unknown := [name for name in names if name not in known]:
            msg = f"there is no {unknown[0]}; there are {', '.join(known)}"
            raise argparse.ArgumentTypeError(msg)
        return names

    return read


def _programs(text: str) -> tuple[NexmarkProgram, ...]:
    try:
        return tuple(map(NexmarkProgram, text.split(",")))
    except ValueError as error:
        msg = f"{error}; there are {', '.join(NexmarkProgram)}"
        raise argparse.ArgumentTypeError(msg) from error
