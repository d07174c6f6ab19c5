"""Passes of the engines through the workloads, one at a time, and the comparison of their results with plain Python's.

As of Nexmark, a tenth of the input warms a contestant up; then all the rest becomes visible at once, and the contestant
is measured until its last result is visible.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, TopicPartition

from bench.broker import PARTITIONS, committed_records
from bench.feed import Feed
from bench.python_engines.contestants import PythonEngine, PythonEngineContestant
from bench.python_engines.workloads import WORKLOADS
from bench.report import Check, Report, table
from bench.stream_contestants import StreamPlace

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options
    from bench.processes import ProcessTree
    from bench.python_engines.workloads import Row, Workload

__all__ = ["measure"]

_STILL_SECONDS = 20.0
"""Time longer than that for which no contestant publishes nothing while it works: commits take up to ten seconds."""
_PATIENCE_SECONDS = 900.0
_SAMPLE_SECONDS = 0.1
_LEAST = {"words": 5.0, "windows": 5.0, "function": 1.0}
"""Least number of records in a second of CPU, to that of each other engine: native nodes, and a Python function."""


@dataclass(frozen=True, slots=True)
class PythonEnginePass:
    """Pass of one contestant through the input of one workload."""

    workload: str
    engine: str
    rate: float
    """Records of the input a second, without those of the warm-up."""
    per_cpu_second: float
    """Records of the input in a second of CPU of the process tree."""
    published: int


def measure(broker: Broker, options: Options) -> Report:
    """Has every engine process the input of every workload."""
    passes: list[PythonEnginePass] = []
    wrong: list[str] = []
    for name in options.workloads:
        workload, count = WORKLOADS[name], options.python_records
        expected = workload.expected(workload.records(count, count // 10))
        for number in range(options.rounds):
            for engine in options.engines:
                contestant = PythonEngineContestant(engine, name)
                try:
                    passes.append(_pass(broker, contestant, expected, options))
                except RuntimeError as error:
                    wrong.append(f"{name}, {engine}: {error}")
                    print(wrong[-1], flush=True)
                else:
                    print(f"round {number + 1}, {_line(passes[-1])}", flush=True)
    if wrong:
        raise RuntimeError("; ".join(wrong))
    return _report(passes, options)


def _pass(
    broker: Broker, contestant: PythonEngineContestant, expected: Counter[Row], options: Options
) -> PythonEnginePass:
    place = StreamPlace.apart(broker.bootstrap, contestant.workload, options.folder, "python_engines.topologies")
    broker.create(place.events, timestamps="CreateTime")
    broker.create(place.output)
    asking = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"bench-{place.run}", "log_level": 0})
    workload, count = WORKLOADS[contestant.workload], options.python_records
    try:
        feed = Feed(broker.bootstrap, place.events, workload.records(count, count // 10), count // 10)
        with contestant.running(place) as process:
            _await_still(asking, place.output, process, 0)
            seen, begun = _published(asking, place.output), time.time()
            feed.release()
            last = _await_still(asking, place.output, process, seen)
        records = committed_records(broker.bootstrap, place.output)
        _compare(workload, [value for _, value in records if value], expected)
        left, cpu = count - feed.warm_up, process.cpu_seconds(begun, last)
        return PythonEnginePass(
            contestant.workload, contestant.engine.value, left / (last - begun), left / cpu, len(records)
        )
    finally:
        asking.close()
        broker.delete(place.output, place.events)
        place.clean()


def _published(asking: Consumer, output: str) -> int:
    """End of what readers of committed records can see."""
    partitions = (TopicPartition(output, each) for each in range(PARTITIONS))
    return sum(asking.get_watermark_offsets(each, timeout=30.0)[1] for each in partitions)


def _await_still(asking: Consumer, output: str, process: ProcessTree, before: int) -> float:
    """Time at which the last result became visible, once there are more than `before` and then no more come.

    RuntimeError if the program ends or takes too long.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    seen, since, last = before, time.monotonic(), time.time()
    while seen == before or time.monotonic() - since < _STILL_SECONDS:
        process.check()
        if time.monotonic() > deadline:
            msg = f"{seen - before:,} results after {_PATIENCE_SECONDS:.0f} s, see {process.log}"
            raise RuntimeError(msg)
        if (found := _published(asking, output)) != seen:
            seen, since, last = found, time.monotonic(), time.time()
        time.sleep(_SAMPLE_SECONDS)
    return last


def _compare(workload: Workload, values: list[bytes], expected: Counter[Row]) -> None:
    """RuntimeError unless the results are those of plain Python."""
    found = workload.results(map(json.loads, values))
    if found != expected:
        missing, more = expected - found, found - expected
        examples = [f"{text} {next(iter(rows.items()))}" for text, rows in (("lacks", missing), ("has", more)) if rows]
        msg = f"{len(found):,} results, plain Python: {len(expected):,}: it {', it '.join(examples)}"
        raise RuntimeError(msg)


def _line(each: PythonEnginePass) -> str:
    return (
        f"{each.workload}, {each.engine}: {each.rate:,.0f} records/s, {each.per_cpu_second:,.0f} in a CPU-second, "
        f"{each.published:,} records published"
    )


def _report(passes: list[PythonEnginePass], options: Options) -> Report:
    rows, checks = [], []
    for workload in options.workloads:
        own = {
            engine: [each for each in passes if (each.workload, each.engine) == (workload, engine)]
            for engine in options.engines
        }
        costs = {engine: median(each.per_cpu_second for each in found) for engine, found in own.items()}
        rows.append(
            [workload, *(f"{median(each.rate for each in own[name]):,.0f} / {costs[name]:,.0f}" for name in own)]
        )
        if PythonEngine.ENGINE in costs:
            checks += [
                Check(
                    f"python-engines, {workload}: records per CPU-s to {engine}",
                    costs[PythonEngine.ENGINE] / cost,
                    _LEAST[workload],
                    at_least=True,
                )
                for engine, cost in costs.items()
                if engine is not PythonEngine.ENGINE
            ]
    title = f"{options.python_records:,} records; records/s / records in a CPU-second; all results equal"
    return Report(
        "python-engines", [table(title, ["", *options.engines], rows)], checks, [asdict(each) for each in passes]
    )
