"""What a supervisor does about who leads, with real processes."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest

from engine.errors import UnreachableError
from engine.supervision.child import Child
from engine.supervision.parts import Part, Stage
from engine.supervision.process_group import ProcessGroup
from engine.supervision.supervisor import Supervisor
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, StatusBoard
from tests.processes import gone
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from routes.errors import BridgeError

SCRIPT = Path(__file__).with_name("parts_for_tests.py")
SECONDS = 20


class Decided:
    """An election whose outcome the test decides."""

    def __init__(self) -> None:
        self.until = 0.0
        self.why_not = "another bridge leads"
        self.failure: BridgeError | None = None
        self.resigned_with: list[str] | None = None
        self.working: Callable[[], list[str]] = list

    @property
    def leads(self) -> bool:
        return time.monotonic() < self.until

    @property
    def has_leader(self) -> bool:
        return self.leads

    @property
    def stands_by(self) -> bool:
        return not self.leads

    def start(self) -> None: ...

    def resign(self) -> None:
        self.resigned_with = self.working()


class Bridge:
    """A supervisor over a Kafka, a router and a source, which are stand-ins."""

    def __init__(self, folder: Path, source: str = "steady") -> None:
        self.folder = folder
        self.election = Decided()
        names = ["kafka", "router", "orders"]
        self.board = StatusBoard(names)
        self.registry = CollectorRegistry()
        self.told: list[str] = []
        self.children = [
            self.child("kafka", Stage.BROKER, "steady"),
            self.child("router", Stage.ROUTER, "steady"),
            self.child("orders", Stage.SOURCE, source),
        ]
        self.election.working = lambda: [child.name for child in self.children if child.running]
        metrics = BridgeMetrics(self.registry, names, "1", "4")
        group = ProcessGroup(self.children, self.board, metrics)
        self.supervisor = Supervisor(group, self.board, metrics, self, self.election)  # type: ignore[arg-type]
        self.outcome: object = None
        self.thread = Thread(target=self.run)

    def child(self, name: str, stage: Stage, behaviour: str) -> Child:
        needs = () if stage is Stage.BROKER else ("kafka",)
        command = [sys.executable, str(SCRIPT), behaviour, str(self.folder / name)]
        return Child(Part(name, name, stage, needs=needs), command, self.board, None)

    def run(self) -> None:
        try:
            self.outcome = self.supervisor.run()
        except Exception as error:
            self.outcome = error

    def lead(self, seconds: float = 60) -> None:
        self.election.until = time.monotonic() + seconds

    def state(self, name: str) -> State:
        return self.board.get(name).state

    def pid(self, name: str, what: str) -> int:
        lines = [line for line in self.events() if line.startswith(f"{name} {what} ")]
        return int(lines[-1].rpartition(" ")[2])

    def events(self) -> list[str]:
        file = self.folder / "events"
        return file.read_text().splitlines() if file.exists() else []

    def happened(self, what: str) -> int:
        return sum(event.startswith(f"{what} ") for event in self.events())

    # What a progress does.
    def begin(self) -> None: ...
    def show(self, statuses: object) -> None: ...
    def stopping(self) -> None: ...
    def end(self) -> None: ...
    def standing(self, why: str) -> None:
        if [why] != self.told[-1:]:
            self.told.append(why)


@contextmanager
def bridge(folder: Path, source: str = "steady") -> Iterator[Bridge]:
    running = Bridge(folder, source)
    running.thread.start()
    try:
        yield running
    finally:
        running.supervisor.stop()
        running.thread.join(SECONDS)
        assert not running.thread.is_alive()


def test_parts_are_prepared_but_do_not_work_before_the_bridge_leads(tmp_path: Path) -> None:
    with bridge(tmp_path) as running:
        until(lambda: running.happened("router prepares") == 1 and running.state("kafka") is State.READY)
        time.sleep(0.5)
        assert running.happened("router works") == 0
        assert b"jmsbridge_leader 0.0" in generate_latest(running.registry)
        assert b"jmsbridge_has_leader 0.0" in generate_latest(running.registry)
        running.lead()
        until(lambda: running.state("router") is State.READY and running.state("orders") is State.READY)
        until(lambda: b"jmsbridge_leader 1.0" in generate_latest(running.registry))
        assert b"jmsbridge_has_leader 1.0" in generate_latest(running.registry)
    assert running.told == ["another bridge leads", ""]
    assert running.outcome == 0


def test_parts_of_a_bridge_that_does_not_lead_any_more_are_killed_and_stand_by(tmp_path: Path) -> None:
    with bridge(tmp_path, source="deaf") as running:
        running.lead()
        until(lambda: running.state("router") is State.READY and running.state("orders") is State.READY)
        pids = [running.pid(name, "works") for name in ("router", "orders")]
        kafka = running.pid("kafka", "works")
        running.election.until = 0.0
        until(lambda: all(gone(pid) for pid in pids))
        until(lambda: running.happened("router prepares") == 2 and running.happened("orders prepares") == 2)
        assert not gone(kafka)
        assert running.happened("router stops") == running.happened("router works") - 1 == 0
        assert b'restarts_total{component="router"} 0.0' in generate_latest(running.registry)
        running.lead()
        until(lambda: running.happened("router works") == 2)
        running.supervisor.stop()
        running.supervisor.stop()


@contextmanager
def part(folder: Path, seconds: float) -> Iterator[int]:
    """A part that is told until when it may work, and nothing after that; its process."""
    board = StatusBoard(["router"])
    command = [sys.executable, str(SCRIPT), "deaf", str(folder / "router")]
    child = Child(Part("router", "router", Stage.ROUTER), command, board, None)
    child.start()
    try:
        child.may_work(time.monotonic() + seconds)
        child.release()
        until(lambda: board.get("router").state is State.READY)
        yield int((folder / "events").read_text().split()[-1])
    finally:
        child.kill()
        until(lambda: child.ended() is not None)


def test_a_part_ends_by_itself_when_its_time_is_over_and_nobody_says_so(tmp_path: Path) -> None:
    began = time.monotonic()
    with part(tmp_path, 4) as pid:
        assert not gone(pid)
        until(lambda: gone(pid))
        assert 4 <= time.monotonic() - began < 6


def test_a_part_that_stood_still_beyond_its_time_does_not_go_on(tmp_path: Path) -> None:
    with part(tmp_path, 4) as pid:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(5)
        assert not gone(pid)
        os.kill(pid, signal.SIGCONT)
        began = time.monotonic()
        until(lambda: gone(pid))
        assert time.monotonic() - began < 3


def test_the_lead_is_given_away_when_nothing_works_any_more(tmp_path: Path) -> None:
    with bridge(tmp_path) as running:
        running.lead()
        until(lambda: running.state("router") is State.READY and running.state("orders") is State.READY)
    assert running.election.resigned_with == ["kafka"]


def test_an_election_that_fails_ends_the_bridge(tmp_path: Path) -> None:
    with bridge(tmp_path) as running:
        running.election.failure = UnreachableError("no Kafka")
        running.thread.join(SECONDS)
    assert str(running.outcome) == "no Kafka"
