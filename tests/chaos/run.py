"""One run: a bridge under load, faults by plan, the end of the load, and the verdict."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.ledger import KAFKA, SOURCES, Ledger
from tests.chaos.pulse import Pulse
from tests.chaos.verdict import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.chaos.faults import Fault
    from tests.chaos.plan import Step
    from tests.chaos.system import System
    from tests.chaos.verdict import Arrival, Verdict

__all__ = ["PER_SECOND", "Outcome", "run"]

PER_SECOND = 60
"""Messages to each source."""

_RECOVERY_SECONDS = 900.0
"""Seconds are enough on a machine of its own; this one may have others' work to do."""
_POLL_SECONDS = 0.2
_WARM_SECONDS = 3.0
_QUIET_SECONDS = 10.0
_SETTLE_SECONDS = 900.0


@dataclass(slots=True)
class Outcome:
    """What a run was and what it found."""

    mode: str
    seed: int
    verdict: Verdict
    recoveries: Mapping[str, Sequence[float | None]]
    """Seconds from a fault, or its end, to the next new message, by the fault's name; None: nothing came."""
    kills: int
    seconds: float
    """With faults."""

    @property
    def stuck(self) -> list[str]:
        """Faults after which nothing came any more."""
        return [name for name, found in self.recoveries.items() if None in found]


@dataclass(slots=True)
class _Happened:
    """A fault that is over."""

    fault: Fault
    at: float
    """When it happened, or was mended if it lasted, on the clock of `time.monotonic`."""
    done: float
    """When nothing of before was left."""


@dataclass(slots=True)
class _Run:
    system: System
    tell: Callable[[str], None]
    ledger: Ledger = field(default_factory=Ledger)
    happened: list[_Happened] = field(default_factory=list)

    def go(self, steps: Sequence[Step], per_second: int) -> Pulse:
        senders = self.system.senders(self.ledger, dict.fromkeys(SOURCES, per_second))
        pulse = Pulse(self.system.outputs)
        pulse.start()
        try:
            for sender in senders:
                sender.start()
            time.sleep(_WARM_SECONDS)
            for number, step in enumerate(steps, 1):
                self._do(step, f"{number:>3} of {len(steps)}", pulse)
            for sender in senders:
                sender.stop()
            self._settle(pulse)
        finally:
            pulse.stop()
        return pulse

    def _do(self, step: Step, number: str, pulse: Pulse) -> None:
        fault = step.fault
        self._still_runs()
        began = time.monotonic()
        fault.inject(self.system)
        if fault.seconds:
            time.sleep(fault.seconds)
        fault.mend(self.system)
        done = time.monotonic()
        happened = _Happened(fault, done if fault.seconds else began, done)
        self.happened.append(happened)
        if step.is_patient:
            seconds = self._wait_recovered(happened, pulse)
            said = "nothing comes any more" if seconds is None else f"recovered in {seconds:.1f} s"
        else:
            said = "not waited for"
        self.tell(f"{number}  {fault.name:<30}  {said}")
        time.sleep(step.pause_seconds)

    def _wait_recovered(self, happened: _Happened, pulse: Pulse) -> float | None:
        deadline = happened.at + _RECOVERY_SECONDS
        while (seconds := pulse.recovered(happened.fault.witness, happened.at, happened.done)) is None:
            self._still_runs()
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
        return seconds

    def _settle(self, pulse: Pulse) -> None:
        """Waits until everything has arrived, or nothing has for long."""
        self.tell("no more messages are sent; waiting for those on their way")
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            self._still_runs()
            if pulse.still_seconds() > _QUIET_SECONDS and self.system.bridge.get("/ready")[0] == 200:
                if not (waiting := self.system.waiting()):
                    return
                self.tell(f"{waiting} messages still wait somewhere")
            time.sleep(_POLL_SECONDS * 5)
        self.tell("going on without them")

    def _still_runs(self) -> None:
        assert self.system.bridge.running, f"the bridge has ended:\n{self.system.bridge.output[-3000:]}"

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        """By destination."""
        found: dict[str, list[Arrival]] = defaultdict(list)
        for name, output in self.system.outputs.items():
            destination = KAFKA if name.startswith(f"{KAFKA}.") else name
            found[destination] += output.arrivals()
        return found


def run(
    system: System, seed: int, steps: Sequence[Step], tell: Callable[[str], None], per_second: int = PER_SECOND
) -> Outcome:
    """Torments a bridge that is not started yet, and leaves it running; AssertionError when it gives up."""
    system.start()
    tell(f"{system.mode}: the bridge is ready; seed {seed}, {len(steps)} faults, {5 * per_second} messages/s")
    this = _Run(system, tell)
    began = time.monotonic()
    pulse = this.go(steps, per_second)
    seconds = time.monotonic() - began
    verdict = judge(this.ledger.sent, system.journal.arrivals(), this.arrived())
    recoveries: dict[str, list[float | None]] = defaultdict(list)
    for each in this.happened:
        recoveries[each.fault.name].append(pulse.recovered(each.fault.witness, each.at, each.done))
    kills = sum(each.fault.name.startswith("kill ") for each in this.happened)
    return Outcome(system.mode, seed, verdict, recoveries, kills, seconds)
