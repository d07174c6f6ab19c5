"""Latency of topologies beside the same ones in Kafka Streams, from an input's producer to the output's consumer.

`peer/…/Paced.java` sends and receives, with one clock. Each contestant first processes loaded records, then ten seconds
of the paced ones are left out. Where outputs are transactions, the consumer reads what is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import programs
from bench.latency import QUANTILES, paced_samples, quantiles
from bench.report import Check, Report, table
from bench.stream_contestants import StreamContestant, StreamPlace

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.options import Options

__all__ = ["measure"]

TARGET_MEDIAN = 3.0
"""Greatest median, to that of Kafka Streams with the same guarantee."""
_TOPOLOGIES = ("total", "count")
_WARM_RECORDS = 320_000
_KEYS = 500
_PATIENCE_SECONDS = 180.0


def measure(broker: Broker, options: Options) -> Report:
    """Runs each contestant once with each topology."""
    modes = [*([""] if options.peer else []), *(mode for mode in options.modes if mode == "realtime")]
    runs = []
    for topology in _TOPOLOGIES:
        for is_exact in (False, True):
            for mode in modes:
                runs.append(_run(broker, topology, StreamContestant(mode, is_exact=is_exact), options))
                print(f"{topology}, {runs[-1]['contestant']}: {_figures(runs[-1])}", flush=True)
    return _report(runs)


def _run(broker: Broker, topology: str, contestant: StreamContestant, options: Options) -> dict[str, Any]:
    place = StreamPlace.apart(broker.bootstrap, topology, options.folder)
    broker.create(place.events, timestamps="CreateTime")
    broker.create(place.output)
    loaded = {"records": _WARM_RECORDS, "keys": _KEYS, "updates": 0}
    programs.run("LoadStreams", bootstrap=broker.bootstrap, prefix=place.prefix, **loaded)
    with contestant.running(place, linger_ms=0) as process:
        # Transactions write records of their own, so that there are more than those of the topology.
        broker.await_least([place.output], _WARM_RECORDS, process, _PATIENCE_SECONDS)
        samples = paced_samples(
            options.folder / f"{place.run}.csv",
            options,
            bootstrap=broker.bootstrap,
            journal=place.events,
            outputs=place.output,
            keys=_KEYS,
            isolation="read_committed" if contestant.is_exact else "read_uncommitted",
        )
    broker.delete(place.events, place.output)
    place.clean()
    return {
        "topology": topology,
        "contestant": contestant.name,
        "mode": contestant.mode,
        "is_exact": contestant.is_exact,
        "milliseconds": quantiles(samples),
    }


def _figures(run: dict[str, Any]) -> str:
    return " ".join(f"{name} {value:.2f}" for name, value in run["milliseconds"].items()) + " ms"


def _report(runs: list[dict[str, Any]]) -> Report:
    rows = [
        [f"{run['topology']}, {run['contestant']}", *(f"{run['milliseconds'][name]:.2f}" for name in QUANTILES)]
        for run in runs
    ]
    medians = {(run["topology"], run["is_exact"], run["mode"]): run["milliseconds"]["p50"] for run in runs}
    checks = [
        Check(
            f"stream latency, {run['topology']}, {run['contestant']}: median to the peer's",
            run["milliseconds"]["p50"] / medians[run["topology"], run["is_exact"], ""],
            TARGET_MEDIAN,
        )
        for run in runs
        if run["mode"] and (run["topology"], run["is_exact"], "") in medians
    ]
    title = "Latency of topologies, end to end, milliseconds"
    return Report("stream-latency", [table(title, ["", *QUANTILES], rows)], checks, runs)
