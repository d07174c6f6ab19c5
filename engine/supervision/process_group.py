"""The parts of a running bridge: those that are kept running, and those that were asked to end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from engine.supervision.parts import Stage
from engine.supervision.process_supervisor import ProcessSupervisor
from engine.telemetry.status import State, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.supervision.child import Child
    from engine.telemetry.meters import BridgeMetrics
    from engine.telemetry.status import StatusBoard

__all__ = ["PATIENCE_SECONDS", "ProcessGroup"]

PATIENCE_SECONDS = {Stage.SOURCE: 15.0, Stage.ROUTER: 30.0, Stage.SINK: 20.0, Stage.BROKER: 25.0}
"""Time that the parts of each stage may take to stop before they are killed."""


class ProcessGroup:
    """The parts of a bridge with their keepers. For one thread; no call waits."""

    def __init__(self, children: Iterable[Child], board: StatusBoard, metrics: BridgeMetrics) -> None:
        self._board = board
        self._metrics = metrics
        self.keepers = [ProcessSupervisor(child, board, metrics) for child in children]
        """Keepers of the parts that are to run, in the order of their start."""
        self._leaving: dict[ProcessSupervisor, float] = {}

    def find(self, name: str) -> ProcessSupervisor | None:
        """Returns the keeper of the part with this name; None if no such part is kept running."""
        return next((keeper for keeper in self.keepers if keeper.child.name == name), None)

    def leaders(self) -> dict[str, int]:
        """The process id of each running part, by the part's name. Safe from any thread."""
        children = [keeper.child for keeper in (*self.keepers, *tuple(self._leaving))]
        return {child.name: pid for child in children if (pid := child.pid) is not None}

    @property
    def leaving(self) -> list[str]:
        """The names of the parts that were asked to end and have not ended yet."""
        return [keeper.child.name for keeper in self._leaving]

    def join(self, child: Child) -> None:
        """Adds a part, which is started at the supervisor's next tick."""
        self._board.put(Status(child.name, State.STARTING))
        self._metrics.joined(child.name)
        self.keepers.append(ProcessSupervisor(child, self._board, self._metrics))

    def dismiss(self, names: Iterable[str]) -> None:
        """Asks parts to finish the work that they have begun and end; they are not started again."""
        wanted = set(names)
        for keeper in [keeper for keeper in self.keepers if keeper.child.name in wanted]:
            self.keepers.remove(keeper)
            self._leaving[keeper] = time.monotonic() + PATIENCE_SECONDS[keeper.child.part.stage]
            keeper.finish()

    def see_off(self, until: Callable[[Child], float], *, at_once: bool = False) -> list[str]:
        """Keeps leases of ending parts alive, kills those that are late, and returns the names of those that ended.

        `until` gives the `time.monotonic` time until which a part may work; `at_once` kills all of them.
        """
        gone = []
        for keeper, deadline in list(self._leaving.items()):
            child = keeper.child
            if not child.running or child.ended() is not None:
                del self._leaving[keeper]
                gone.append(child.name)
            elif at_once or time.monotonic() > min(deadline, until(child)):
                child.kill()
            else:
                keeper.may_work(until(child))
        return gone

    def forget(self, names: Iterable[str]) -> None:
        """Removes parts that have ended from the status board and the metrics."""
        for name in names:
            self._board.forget(name)
            self._metrics.left(name)
