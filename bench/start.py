"""Time from the start of the process to the first routed message.

The router alone, on a Kafka that runs and a journal with messages in it, and the peer on the same; and the whole
bridge from nothing, embedded brokers included (`bench.whole`).
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from bench import programs
from bench.contestants import Bridge, Peer, Place
from bench.processes import running
from bench.report import Check, Report, table
from bench.whole import seconds_to_first_message
from bench.workload import BRIDGE_ID, expected

if TYPE_CHECKING:
    from bench.broker import Broker
    from bench.contestants import Contestant
    from bench.options import Options

__all__ = ["measure"]

TARGET_SECONDS = 20.0
_WHOLE = "bridge with brokers, JMS to Kafka"
_JOURNAL = "bench.journal"
_RECORDS = 1600
_PATIENCE_SECONDS = 120.0


def measure(broker: Broker, options: Options) -> Report:
    """Everybody in turn, in rounds."""
    broker.create(_JOURNAL)
    programs.run("Load", bootstrap=broker.bootstrap, topic=_JOURNAL, records=_RECORDS)
    contestants: list[Contestant] = [Peer(linger_ms=0)] if options.peer else []
    contestants += [Bridge(mode, options.settings, options.router) for mode in options.modes]
    seconds: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    seconds[_WHOLE] = []
    for _ in range(options.rounds):
        for contestant in contestants:
            seconds[contestant.name].append(_run(broker, contestant, options))
            print(f"{contestant.name}: {seconds[contestant.name][-1]:.1f} s", flush=True)
        seconds[_WHOLE].append(seconds_to_first_message(options))
        print(f"{_WHOLE}: {seconds[_WHOLE][-1]:.1f} s", flush=True)
    rows = [[name, f"{min(found):.1f} / {median(found):.1f} / {max(found):.1f}"] for name, found in seconds.items()]
    checks = [
        Check(f"start, {name}: seconds to the first message", median(found), TARGET_SECONDS)
        for name, found in seconds.items()
        if name.startswith("bridge")
    ]
    shown = table("Start of the process to the first routed message", ["", "s, min / median / max"], rows)
    return Report("start", [shown], checks, seconds)


def _run(broker: Broker, contestant: Contestant, options: Options) -> float:
    place = Place(broker.bootstrap, _JOURNAL, options.folder)
    broker.create(*place.outputs)
    with running(contestant.command(place), place.log, programs.ROOT) as process:
        broker.await_count(place.outputs, sum(expected(_RECORDS)), process, _PATIENCE_SECONDS)
        started = process.started
    found = programs.verify(broker.bootstrap, place.outputs, BRIDGE_ID, 0)
    broker.delete(*place.outputs)
    place.clean()
    return float(found["first_ms"] / 1000 - started)
