"""Rate of each source and sink, compared with a bare loop of its client library that moves the same messages.

The loops are in `bare`, what is moved and how arrivals are counted in `cases`. Both sides begin on the same load, in a
process of their own, in each round one after the other. The rate is that of arrivals after the share of the warm-up.
Several workers are measured beside them; what they gain depends on the cores there are.
"""

from __future__ import annotations

import shutil
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from bench import programs
from bench.broker import PARTITIONS
from bench.connectors.case import JOURNAL, PART, Servers
from bench.connectors.cases import CASES
from bench.processes import running
from bench.report import Check, Report, table
from engine.embedded import EmbeddedArtemis, EmbeddedNats, free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.table import Table

    from bench.broker import Broker
    from bench.connectors.case import Case
    from bench.options import Options
    from bench.processes import ProcessTree

__all__ = ["CASES", "measure"]

TARGET_RATIO = 0.8
DROPBOX_TARGET_RATIO = 1.0
_HEAP_MEGABYTES = 1024
_BARE = "bare loop"
_BRIDGE = "bridge"
_SAMPLE_SECONDS = 0.05
_SETTLE_SECONDS = 2.0
_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Pass:
    """Pass of one contestant through the messages of a case."""

    case: str
    contestant: str
    rate: float
    """Messages a second after the warm-up."""
    cpu_per_million: float
    """CPU seconds of the process tree for a million messages after the warm-up."""


def measure(kafka: Broker, options: Options) -> Report:
    """Measures one case after the other, each in rounds."""
    kafka.create(JOURNAL)
    passes = []
    with _servers(kafka, options) as servers:
        for name in options.connectors:
            case = CASES[name](servers, options.source_warm_up + options.source_messages)
            with ExitStack() as stack:
                case.open()
                stack.callback(case.close)
                passes += _rounds(case, options)
    return _report(passes)


def _rounds(case: Case, options: Options) -> list[Pass]:
    workers = {f"{_BRIDGE}, {count} workers": count for count in (options.workers,) if count > 1}
    contestants = {_BARE: 0, _BRIDGE: 1, **workers}
    # The servers are cold in the beginning, which must not count against the first contestant.
    print(f"to warm the servers: {_line(_pass(case, _BARE, 0, options))}", flush=True)
    passes = []
    for _ in range(options.rounds):
        for name, count in contestants.items():
            passes.append(_pass(case, name, count, options))
            print(_line(passes[-1]), flush=True)
    return passes


@contextmanager
def _servers(kafka: Broker, options: Options) -> Iterator[Servers]:
    folder = options.folder / f"servers-{uuid.uuid4().hex[:8]}"
    nats, stomp, amqp = "", "", ""
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if any(name.startswith("nats") for name in options.connectors):
            (port,) = free_ports(1)
            server = EmbeddedNats(folder, port)
            stack.callback(server.stop)
            server.start()
            nats = server.url
        if any(name.startswith(("stomp", "amqp")) for name in options.connectors):
            ports = free_ports(3)
            artemis = EmbeddedArtemis(
                folder, ports[0], ports[1], ports[2], programs.JARS, heap_megabytes=_HEAP_MEGABYTES
            )
            stack.callback(artemis.stop)
            artemis.start()
            stomp, amqp = artemis.stomp_url, artemis.amqp_url
        yield Servers(kafka, nats, stomp, amqp, folder / "dropbox")


def _pass(case: Case, contestant: str, workers: int, options: Options) -> Pass:
    run = f"bench-{uuid.uuid4().hex[:8]}"
    command = _bridge(case, run, workers, options) if workers else _bare(case, run)
    case.begin(run)
    with running(command, options.folder / f"{run}.log", programs.ROOT) as process:
        warm, last = _watch(case, run, process, options.source_warm_up)
        cpu_seconds = process.cpu_seconds(warm, last)
    if left := case.left(run):
        msg = f"{case.name}, {contestant}: {left} messages were not acknowledged, see {process.log}"
        raise RuntimeError(msg)
    case.end(run)
    timed = options.source_messages
    return Pass(case.name, contestant, rate=timed / (last - warm), cpu_per_million=cpu_seconds / timed * 1e6)


def _watch(case: Case, run: str, process: ProcessTree, warm_up: int) -> tuple[float, float]:
    """Times at which `warm_up` messages and all messages had arrived, in seconds since 1970; no others may follow."""
    begun = before = time.time()
    found, warm = 0, 0.0
    while found < case.messages:
        case.feed(found)
        time.sleep(_SAMPLE_SECONDS)
        process.check()
        last, now = found, case.count(run)
        moment = time.time()
        if last < warm_up <= now:
            warm = before + (moment - before) * (warm_up - last) / (now - last)
        found, before = now, moment
        if moment - begun > _PATIENCE_SECONDS:
            msg = f"{case.name}: {found} of {case.messages} messages after {moment - begun:.0f} s, see {process.log}"
            raise RuntimeError(msg)
    time.sleep(_SETTLE_SECONDS)
    if (found := case.count(run)) != case.messages:
        msg = f"{case.name}: {found} messages instead of {case.messages}, see {process.log}"
        raise RuntimeError(msg)
    return warm, before


def _bare(case: Case, run: str) -> list[str]:
    given = {"bootstrap": case.kafka.bootstrap, **case.bare(run)}
    words = [f"{name}={value}" for name, value in given.items()]
    return [sys.executable, "-m", "bench.connectors.bare", case.loop, *words]


def _bridge(case: Case, run: str, workers: int, options: Options) -> list[str]:
    folder = options.folder / run
    folder.mkdir()
    settings = {
        "kafka.bootstrap.servers": case.kafka.bootstrap,
        "embedded": "off",
        "embedded.data": str(folder),
        "journal.partitions": str(PARTITIONS),
        "router.checkpoint": str(folder / "checkpoint"),
        "http.address": f"127.0.0.1:{free_ports(1)[0]}",
        "routes.r.in.include": "TRUE",
        "routes.r.out.topic": f"{run}.out",
        ".workers": str(workers),
        **case.settings(run),
        **options.settings,
    }
    own = f"{case.kind}.{PART}"
    lines = [f"{own}{key}={value}\n" if key.startswith(".") else f"{key}={value}\n" for key, value in settings.items()]
    file = folder / "bridge.properties"
    file.write_text("".join(lines))
    return [sys.executable, "-m", "engine", "run", "--only", f"{case.kind}:{PART}", "--config", str(file)]


def _line(each: Pass) -> str:
    figures = f"{each.rate:,.0f} messages/s, {each.cpu_per_million:.1f} CPU-s per million"
    return f"{each.case}, {each.contestant}: {figures}"


def _report(passes: list[Pass]) -> Report:
    tables, checks = [], []
    for case in dict.fromkeys(each.case for each in passes):
        by_name: dict[str, list[Pass]] = {}
        for each in passes:
            if each.case == case:
                by_name.setdefault(each.contestant, []).append(each)
        ratios = {name: _ratio(by_name[_BARE], own, lambda each: each.rate) for name, own in by_name.items()}
        tables.append(_table(case, by_name, ratios))
        target = DROPBOX_TARGET_RATIO if case.startswith("dropbox") else TARGET_RATIO
        checks.append(Check(f"{case}: rate to the bare loop's", ratios[_BRIDGE], target, at_least=True))
    return Report("connectors", tables, checks, [asdict(each) for each in passes])


def _table(case: str, by_name: dict[str, list[Pass]], ratios: dict[str, float]) -> Table:
    rows = []
    for name, own in by_name.items():
        rates = sorted(each.rate for each in own)
        shown = f"{rates[0]:,.0f} / {median(rates):,.0f} / {rates[-1]:,.0f}"
        cpu = median(each.cpu_per_million for each in own)
        rows.append([name, shown, f"{ratios[name]:.2f}", f"{cpu:.1f}"])
    return table(case, ["", "messages/s min / median / max", "to the bare loop's", "CPU-s per million"], rows)


def _ratio(bare: list[Pass], own: list[Pass], figure: Callable[[Pass], float]) -> float:
    """Median of the ratios within each round."""
    return median(figure(mine) / figure(theirs) for theirs, mine in zip(bare, own, strict=True))
