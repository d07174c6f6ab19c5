"""The processes of a running bridge: those that are kept running, and those that were asked to end.

A `ProcessSupervisor` starts one part, releases it, extends its lease, starts it again when it dies, and ends it. A
`ProcessGroup` holds those of a bridge.

A source or sink ends the bridge by a refusal of Kafka, which concerns every part; by a refusal of its own system, or
a lack of its machine, only in its first process and before it was ready. Else it is started again, however often. A
topology never ends the bridge: whatever it ends with, it is started again.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError, SetupError, SoftFailureError, UnreachableError, UsageError
from engine.supervision.parts import Stage
from engine.supervision.pauses import Pauses
from engine.telemetry.status import State, Status
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.supervision.child import Child
    from engine.supervision.pauses import Pause
    from engine.telemetry.meters import BridgeMetrics
    from engine.telemetry.status import StatusBoard

__all__ = ["LONGEST_STOP_SECONDS", "PartFailedError", "ProcessGroup", "ProcessSupervisor"]

_log = structlog.get_logger(__name__)

LONGEST_STOP_SECONDS = {
    Stage.SOURCE: 15.0,
    Stage.ROUTER: 30.0,
    Stage.TOPOLOGY: 45.0,
    Stage.SINK: 20.0,
    Stage.BROKER: 25.0,
}
"""Time that the parts of each stage may take to stop before they are killed."""
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_LONGEST_TOPOLOGY_PAUSE_SECONDS = 120.0
"""Longest pause of a topology, each of whose processes starts Spark."""
_READY_PAUSE_SECONDS = 4.0
"""Longest pause after the death of a part that was ready: its cause, such as a lost host, may be gone soon."""
_KILLED_SECONDS = 0.01
_STEADY_SECONDS = 60.0
"""Time of being ready after which the earlier deaths of a part are forgotten."""
_HOPELESS = 5
"""Number of deaths in a row without being ready after which a restart will not help."""
_KNOWN = {
    error.exit_code: error
    for error in (SetupError, HardFailureError, SoftFailureError, UnreachableError, UsageError, BridgeError)
}
_OF_EVERY_PART = (HardFailureError, SoftFailureError, UnreachableError)
"""Errors of Kafka and of the routes, which no part of the bridge can work with."""


class PartFailedError(BridgeError):
    """A part cannot work as it is configured. It is tried again: the other parts can go on.

    Raised for a source or sink that has died too often before it was ready, and for a topology that its first process
    has refused.
    """


class ProcessSupervisor:
    """Supervisor of one part, which it keeps running until it is told to finish."""

    def __init__(self, child: Child, board: StatusBoard, metrics: BridgeMetrics, pauses: Pauses) -> None:
        self.child = child
        self._pauses = pauses
        self._pause: Pause | None = None
        """Pause for which the process was asked to end."""
        self._board = board
        self._metrics = metrics
        self._start_at: float | None = 0.0
        self._started = False
        self._ready_since: float | None = None
        self._has_been_ready = False
        """True if the present process has been ready, also if it is not any more."""
        self._was_ready = False
        """True if any process of the part has been ready."""
        self._deaths = 0
        self._early_deaths = 0
        self._is_deposed = False
        self._end_by = math.inf

    def tend(self, until: float) -> None:
        """Takes the steps that are due: starts or releases the part, notes its readiness or its end. Never waits.

        The part may work `until` then (`time.monotonic`). A part that works longer is killed, and started again to
        stand by.

        Raises:
            BridgeError: the part ended with an error that no restart helps, or died too often before it was ready.
            PartFailedError: a part that no other part needs did one of these; it is tended further.
        """
        now = time.monotonic()
        if self._is_paused(now, until):
            return
        if self.child.running and self.child.released and now >= until:
            self._is_deposed = True
            self.child.kill()
        if (code := self.child.ended()) is not None:
            self._ended(code, now)
        elif not self.child.running:
            self._start_if_due(now)
        elif not self._is_deposed:
            self._watch(self._board.get(self.child.name), now, until)

    def _is_paused(self, now: float, until: float) -> bool:
        """True while the part is paused or ends for a pause; takes the steps that are due for that."""
        pause, name = self._pauses.find(self.child.name), self.child.name
        if pause is not None and self._pause is None:
            self._pause = pause
            self.finish()
        if self._pause is None:
            return False
        if not self.has_finished(until):
            return True
        if pause is None:
            self._pause, self._start_at, self._started, self._deaths, self._early_deaths = None, now, False, 0, 0
            self.child.is_first = False
            self._metrics.paused(name, is_paused=False)
            self._board.down(name, "resumed")
            return False
        if self._board.get(name).state is not State.PAUSED:
            self._metrics.component(name, up=False)
            self._metrics.paused(name, is_paused=True)
            self._board.paused(name, f"{pause}; `jms-bridge resume {name}` starts it")
        return True

    def finish(self) -> None:
        """Asks the part to end; a part that has not begun its work is killed, since it may be busy getting ready."""
        self._end_by = time.monotonic() + LONGEST_STOP_SECONDS[self.child.part.stage]
        if self.child.released:
            self.child.ask_to_stop()
        else:
            self.child.kill()

    def has_finished(self, until: float) -> bool:
        """True if a part that was told to `finish` has ended; kills it if it is late, or works longer than `until`."""
        if not self.child.running or self.child.ended() is not None:
            return True
        if time.monotonic() > min(self._end_by, until):
            self.child.kill()
        else:
            self.may_work(until)
        return False

    def may_work(self, until: float) -> None:
        """Extends the lease of a part that works; without an election there is none."""
        if self.child.released and until < math.inf:
            self.child.may_work(until)

    def _start_if_due(self, now: float) -> None:
        if self._start_at is None or now < self._start_at:
            return
        if self._started:
            self.child.is_first = False
        self._ready_since, self._has_been_ready = None, False
        try:
            self.child.start()
        except OSError as error:
            # No descriptors, no memory: the machine had enough when the part was ready, and may have it again.
            self._died(f"it cannot be started: {error.strerror or error}", now, is_passing=self._was_ready)
            return
        if self._started and not self._is_deposed:
            self._metrics.restarted(self.child.name)
        self._started = True
        self._is_deposed = False

    def _watch(self, status: Status, now: float, until: float) -> None:
        if (
            not self.child.released
            and now < until
            and all(self._board.get(need).state is State.READY for need in self.child.part.needs)
        ):
            self.child.release()
        self.may_work(until)
        ready = status.state is State.READY
        self._metrics.component(self.child.name, up=ready)
        if not ready:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
            self._has_been_ready = self._was_ready = True
            self._early_deaths = 0
        elif now - self._ready_since > _STEADY_SECONDS:
            self._deaths = 0

    def _ended(self, code: int, now: float) -> None:
        name = self.child.name
        status = self._board.get(name)
        self._metrics.component(name, up=False)
        failure = None if status.exit_code is None else _KNOWN.get(status.exit_code, BridgeError)
        is_passing = self._is_passing(failure)
        if failure is not None and not is_passing and not self._is_topology:
            self._board.down(name, status.error or "")
            raise failure(status.error)
        if self._is_deposed:
            self._start_at = now
            self._board.down(name, "the bridge does not lead any more")
            return
        why = status.error or (f"killed by signal {-code}" if code < 0 else f"ended with exit status {code}")
        self._died(why, now, is_passing=is_passing)
        if failure is not None and not is_passing:
            # A reload that has brought this topology is revoked.
            raise PartFailedError(status.error)

    @property
    def _is_connector(self) -> bool:
        return self.child.part.stage in {Stage.SOURCE, Stage.SINK}

    @property
    def _is_topology(self) -> bool:
        return self.child.part.stage is Stage.TOPOLOGY

    def _is_passing(self, failure: type[BridgeError] | None) -> bool:
        """True for an error that may go away by itself, and for the sake of which no other part has to end."""
        if failure is None:
            return False
        if self._is_topology:
            return self._was_ready or not self.child.is_first
        if self._is_connector:
            return (self._was_ready or not self.child.is_first) and failure not in _OF_EVERY_PART
        # The machine had what it lacks now when the part was ready: a disk is full for a while, not for ever.
        return self._was_ready and failure is SetupError

    def _died(self, why: str, now: float, *, is_passing: bool) -> None:
        """Schedules a restart after a pause; raises as `tend` if restarts have never helped.

        A part that was ready is started at once after its first death: what it was killed by need not come again.
        """
        name = self.child.name
        self._deaths += 1
        longest = _READY_PAUSE_SECONDS if self._has_been_ready else _LONGEST_PAUSE_SECONDS
        if self._is_topology:
            # A record that ends it may do so each time soon after it was ready.
            longest = _LONGEST_TOPOLOGY_PAUSE_SECONDS
        self._early_deaths += not self._has_been_ready and not is_passing
        message = f"{name} ended {self._early_deaths} times before it was ready; the last time: {why}"
        stands_alone = self._is_connector or self._is_topology
        if self._early_deaths >= _HOPELESS and not stands_alone:
            raise BridgeError(message)
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** (self._deaths - 1), longest)
        if self._deaths == 1 and self._has_been_ready and not is_passing and not self._is_topology:
            pause = 0.0
        self._start_at = now + pause
        self._board.down(name, f"{why}; starting again {f'in {pause:g} s' if pause else 'at once'}")
        _log.warning("a part of the bridge died", component=name, why=why, restart_in_seconds=pause)
        if self._early_deaths == _HOPELESS:
            raise PartFailedError(message)


class ProcessGroup:
    """Supervisors of the parts of a bridge. For one thread; no call waits."""

    def __init__(
        self, children: Iterable[Child], board: StatusBoard, metrics: BridgeMetrics, pauses: Pauses | None = None
    ) -> None:
        self._board = board
        self._metrics = metrics
        self.pauses = pauses or Pauses()
        """The parts that an operator has paused."""
        self.members = [ProcessSupervisor(child, board, metrics, self.pauses) for child in children]
        """Supervisors of the parts that are to run, in the order of their start."""
        self._leaving: list[ProcessSupervisor] = []

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Starts all parts, which prepare themselves during the block; kills those that are left at its end."""
        try:
            for member in self.members:
                member.tend(math.inf)
            yield
        finally:
            left = [member.child for member in (*self.members, *self._leaving) if member.child.running]
            for child in left:
                child.kill()
            while any(child.running and child.ended() is None for child in left):
                time.sleep(_KILLED_SECONDS)

    def find(self, name: str) -> ProcessSupervisor | None:
        """Returns the supervisor of the part with this name; None if no such part is kept running."""
        return next((member for member in self.members if member.child.name == name), None)

    def leaders(self) -> dict[str, int]:
        """The process id of each running part, by the part's name. Safe from any thread."""
        children = [member.child for member in (*self.members, *self._leaving)]
        return {child.name: pid for child in children if (pid := child.pid) is not None}

    @property
    def leaving(self) -> list[str]:
        """The names of the parts that were asked to end and have not ended yet."""
        return [member.child.name for member in self._leaving]

    def join(self, child: Child) -> None:
        """Adds a part, which is started at the supervisor's next tick."""
        self._board.put(Status(child.name, State.STARTING))
        self._metrics.joined(child.name)
        self.members.append(ProcessSupervisor(child, self._board, self._metrics, self.pauses))

    def stood_by(self) -> None:
        """Takes note that another bridge was at work, whose systems may have changed since: see `Child.is_first`."""
        for member in self.members:
            member.child.is_first = False

    def dismiss(self, names: Iterable[str]) -> None:
        """Asks parts to finish the work that they have begun and end; they are not started again."""
        wanted = set(names)
        for member in [member for member in self.members if member.child.name in wanted]:
            self.members.remove(member)
            self._leaving.append(member)
            member.finish()

    def see_off(self, until: Callable[[Child], float], *, at_once: bool = False) -> list[str]:
        """Keeps leases of ending parts alive, kills those that are late, and returns the names of those that ended.

        `until` gives the `time.monotonic` time until which a part may work; `at_once` kills all of them.
        """
        gone = [each for each in self._leaving if each.has_finished(-math.inf if at_once else until(each.child))]
        self._leaving = [each for each in self._leaving if each not in gone]
        return [each.child.name for each in gone]

    def forget(self, names: Iterable[str]) -> None:
        """Removes parts that have ended from the status board and the metrics."""
        for name in names:
            self._board.forget(name)
            self._metrics.left(name)
