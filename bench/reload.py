"""Pause of routing when a route changes: the longest time without a routed record, at an even rate."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bench import programs
from bench.contestants import Place
from bench.latency import read_samples
from bench.processes import running
from bench.workload import expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.broker import Broker
    from bench.contestants import Bridge
    from bench.options import Options

__all__ = ["Pause", "reload_pause"]

_LOADED_RECORDS = 16_000
_BEFORE_SECONDS, _AFTER_SECONDS = 15, 30
_PATIENCE_SECONDS = 180.0
_POLL_SECONDS = 0.1
_CHANGE = "routes.orders-emea.in.exclude=region == nowhere\n"
"""New line of the configuration; it changes a route, and the way of no message."""


class Pause(NamedTuple):
    """Longest times between two routed records that follow each other, in seconds."""

    undisturbed: float
    """Before the reload, over half of the time after it."""
    reload: float
    """From the reload on."""

    def __str__(self) -> str:
        return f"{self.reload:.2f} s without a routed record after a reload, {self.undisturbed:.2f} s before it"


def reload_pause(broker: Broker, bridge: Bridge, options: Options) -> Pause:
    """The pause of one reload (SIGHUP) with a changed route, in a router that has routed for some seconds.

    Raises:
        RuntimeError: a message is lost, or the router goes on without a new generation.
    """
    place = Place(broker.bootstrap, "", options.folder)
    place = Place(broker.bootstrap, f"journal.{place.run}", options.folder, place.run)
    broker.create(place.journal, *place.outputs)
    programs.run("Load", bootstrap=broker.bootstrap, topic=place.journal, records=_LOADED_RECORDS)
    samples = place.folder / f"{place.run}.csv"
    with running(bridge.command(place), place.log, programs.ROOT) as process, ThreadPoolExecutor(1) as pool:
        broker.await_count(place.outputs, loaded := sum(expected(_LOADED_RECORDS)), process, _PATIENCE_SECONDS)
        sending = pool.submit(
            programs.run,
            "Paced",
            bootstrap=place.bootstrap,
            journal=place.journal,
            outputs=",".join(place.outputs),
            rate=options.rate,
            seconds=_BEFORE_SECONDS + _AFTER_SECONDS,
            samples=samples,
        )
        while broker.count(place.outputs) <= loaded and not sending.done():
            time.sleep(_POLL_SECONDS)
        time.sleep(_BEFORE_SECONDS)
        before = bridge.generations(place)
        with (place.state / bridge.FILE).open("a") as file:
            file.write(_CHANGE)
        asked = time.time()
        process.hang_up()
        sending.result()
        if bridge.generations(place) <= before:
            msg = f"the router has not begun anew after the reload, see {place.log}"
            raise RuntimeError(msg)
    arrivals = sorted((sent + took) / 1e6 for sent, took in read_samples(samples))
    samples.unlink()
    broker.delete(place.journal, *place.outputs)
    place.clean()
    steady = [each for each in arrivals if arrivals[0] + 1 < each < asked]
    return Pause(_longest(steady), _longest([steady[-1], *(each for each in arrivals if each >= asked)]))


def _longest(moments: Sequence[float]) -> float:
    return max(later - earlier for earlier, later in pairwise(moments))
