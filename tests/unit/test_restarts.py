"""When a part that has died is started again, without processes."""

from __future__ import annotations

import math
import signal
from typing import Any

from prometheus_client import CollectorRegistry

from engine.supervision.parts import Part, Stage
from engine.supervision.pauses import Pauses
from engine.supervision.process_group import ProcessSupervisor
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, Status, StatusBoard


class _Mortal:
    """A child that dies when its test says so."""

    def __init__(self, part: Part) -> None:
        self.part, self.name = part, part.name
        self.running, self.released, self.is_first = False, False, True
        self.starts = 0
        self.code: int | None = None

    def start(self) -> None:
        self.starts += 1
        self.running, self.code = True, None

    def release(self) -> None:
        self.released = True

    def may_work(self, until: float) -> None:
        pass

    def die(self) -> None:
        self.code, self.released = -signal.SIGKILL, False

    def ended(self) -> int | None:
        code, self.code = self.code, None
        self.running = self.running and code is None
        return code


def _supervised(stage: Stage) -> tuple[_Mortal, StatusBoard, ProcessSupervisor]:
    child = _Mortal(Part("part", "part", stage))
    board, metrics = StatusBoard(["part"]), BridgeMetrics(CollectorRegistry(), ["part"], "", "")
    standing_in: Any = child
    return child, board, ProcessSupervisor(standing_in, board, metrics, Pauses())


def _dies(child: _Mortal, board: StatusBoard, supervisor: ProcessSupervisor, *, ready: bool) -> str:
    """Detail of the part after a death of its process."""
    board.put(Status("part", State.READY if ready else State.STARTING))
    supervisor.tend(math.inf)
    child.die()
    supervisor.tend(math.inf)
    return board.get("part").detail


def test_a_part_that_was_ready_is_started_at_once_the_first_time() -> None:
    child, board, supervisor = _supervised(Stage.ROUTER)
    supervisor.tend(math.inf)
    assert _dies(child, board, supervisor, ready=True) == "killed by signal 9; starting again at once"
    supervisor.tend(math.inf)
    assert child.starts == 2
    assert _dies(child, board, supervisor, ready=True) == "killed by signal 9; starting again in 2 s"
    supervisor.tend(math.inf)
    assert child.starts == 2


def test_a_part_that_was_never_ready_waits() -> None:
    child, board, supervisor = _supervised(Stage.ROUTER)
    supervisor.tend(math.inf)
    assert _dies(child, board, supervisor, ready=False) == "killed by signal 9; starting again in 1 s"


def test_a_topology_waits_since_one_record_may_end_it_each_time() -> None:
    child, board, supervisor = _supervised(Stage.TOPOLOGY)
    supervisor.tend(math.inf)
    assert _dies(child, board, supervisor, ready=True) == "killed by signal 9; starting again in 1 s"
