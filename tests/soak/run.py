"""One run: an even load, a kill every few minutes, and a look at every process meanwhile."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from tests.chaos.faults import KILLS
from tests.chaos.ledger import SOURCES
from tests.soak.drains import DropboxDrain, QueueDrain, TopicReader
from tests.soak.numbers import Arrivals, RunningLedger
from tests.soak.resources import Resources
from tests.soak.system import SHARES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from tests.chaos.faults import Fault
    from tests.chaos.system import System

__all__ = ["Soak"]

_BEHIND_SECONDS = 600.0
_POLL_SECONDS = 0.5


@dataclass
class Soak:
    """One run."""

    system: System
    ledger: RunningLedger = field(default_factory=RunningLedger)
    arrivals: dict[str, Arrivals] = field(default_factory=lambda: {source: Arrivals() for source in SOURCES})
    kills: list[tuple[str, float | None]] = field(default_factory=list)
    """What, and after how many seconds all that was sent until then had arrived; None: never."""
    sent_per_second: float = 0.0
    arrived_per_second: float = 0.0
    """In the topics."""

    def run(self, chance: Random, seconds: float, rate: int, kill_seconds: float) -> Resources:
        """Returns when everything has arrived, or nothing comes any more."""
        system = self.system
        supervisor = system.bridge
        resources = Resources(
            lambda: supervisor.process.pid if supervisor.process else 0, system.folder / "var/checkpoint"
        )
        reader = TopicReader(system.bridge.bootstrap, {f"chaos.{name}": found for name, found in self.arrivals.items()})
        box, out = system.boxes.queue("in"), system.boxes.queue("out")
        drains = [QueueDrain(system.ports["stomp"], f"out.{name}") for name in ("stomp", "amqp")]
        workers = [reader, *drains, DropboxDrain(box / "processed", out / "target")]
        senders = system.senders(self.ledger, {name: round(rate * share) for name, share in SHARES.items()})
        resources.start()
        for worker in workers:
            worker.start()
        for sender in senders:
            sender.start()
        began = time.monotonic()
        for number, victim in zip(range(1, ceil(seconds / kill_seconds)), _victims(chance), strict=False):
            # One that is still being made good when the next is due does not put that off by more than it takes.
            _sleep_until(began + number * kill_seconds)
            self._kill(victim, time.monotonic() - began)
        _sleep_until(began + seconds)
        for sender in senders:
            sender.stop()
        lasted = time.monotonic() - began
        self.sent_per_second = sum(map(self.ledger.issued, SOURCES)) / lasted
        self._caught_up()
        self.arrived_per_second = reader.count / (time.monotonic() - began)
        for worker in workers:
            worker.stop()
        resources.stop()
        return resources

    def _kill(self, fault: Fault, at: float) -> None:
        fault.inject(self.system)
        seconds = self._caught_up()
        self.kills.append((fault.name, seconds))
        after = "nothing comes any more" if seconds is None else f"everything has arrived after {seconds:.1f} s"
        sent = sum(map(self.ledger.issued, SOURCES))
        print(f"{at / 60:5.1f} min  {sent:>12,} sent  {fault.name:<28}  {after}", flush=True)

    def _caught_up(self) -> float | None:
        """Seconds until the topics have what was sent before this call."""
        began = time.monotonic()
        until = {line: count - 1 for line, count in self.ledger.next.copy().items()}
        while time.monotonic() - began < _BEHIND_SECONDS:
            # The newest of a key may be for a sink: the last for its topic is among the eight before.
            last = {line: count for found in self.arrivals.values() for line, count in found.last.copy().items()}
            if all(last.get(line, -1) >= sequence - 7 for line, sequence in until.items()):
                return time.monotonic() - began
            assert self.system.bridge.running, f"the bridge has ended:\n{self.system.bridge.output[-3000:]}"
            time.sleep(_POLL_SECONDS)
        return None


def _sleep_until(moment: float) -> None:
    """On the clock of `time.monotonic`."""
    time.sleep(max(moment - time.monotonic(), 0))


def _victims(chance: Random) -> Iterator[Fault]:
    """Each process as often as any other, in an order of chance."""
    return itertools.chain.from_iterable(chance.sample(KILLS, len(KILLS)) for _ in itertools.count())
