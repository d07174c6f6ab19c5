"""The supervisor with real processes, each a stand-in for a part of the bridge."""

import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from engine.errors import HardFailureError
from engine.supervision import process_group, supervisor
from engine.supervision.child import Child
from engine.supervision.parts import Part, Stage
from engine.supervision.process_group import ProcessGroup
from engine.supervision.supervisor import Supervisor
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, StatusBoard
from routes.errors import BridgeError
from tests.processes import gone
from tests.waiting import until

SCRIPT = Path(__file__).with_name("parts_for_tests.py")
SECONDS = 20


class Bridge:
    """A supervisor over stand-ins, in a thread."""

    def __init__(self, folder: Path, **behaviours: str) -> None:
        self.folder = folder
        self.board = StatusBoard(behaviours)
        self.registry = CollectorRegistry()
        self.lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
        metrics = BridgeMetrics(self.registry, list(behaviours), "1", "4")
        children = [self.child(name, behaviour) for name, behaviour in behaviours.items()]
        self.supervisor = Supervisor(ProcessGroup(children, self.board, metrics), self.board, metrics, Silent())
        self.outcome: int | BaseException | None = None
        self.thread = Thread(target=self.run)

    def child(self, name: str, behaviour: str) -> Child:
        stage = {"kafka": Stage.BROKER, "router": Stage.ROUTER, "totals": Stage.TOPOLOGY}.get(name, Stage.SOURCE)
        needs = () if stage is Stage.BROKER or "kafka" not in self.board_names() else ("kafka",)
        command = [sys.executable, str(SCRIPT), behaviour, str(self.folder / name)]
        return Child(Part(name, name, stage, needs=needs), command, self.board, self.lock)

    def board_names(self) -> list[str]:
        return [status.component for status in self.board.all()]

    def run(self) -> None:
        try:
            self.outcome = self.supervisor.run()
        except BaseException as error:
            self.outcome = error
        finally:
            os.close(self.lock)

    def events(self) -> list[str]:
        file = self.folder / "events"
        return [line.rpartition(" ")[0] for line in file.read_text().splitlines()] if file.exists() else []

    def pid(self, name: str) -> int:
        lines = (self.folder / "events").read_text().splitlines()
        return int([line for line in lines if line.startswith(f"{name} ")][-1].rpartition(" ")[2])

    def wait_ready(self) -> None:
        assert self.board.wait(lambda: all(told.state is State.READY for told in self.board.all()), SECONDS)

    def end(self) -> int | BaseException | None:
        self.supervisor.stop()
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        return self.outcome


class Silent:
    def begin(self) -> None: ...
    def show(self, statuses: object) -> None: ...
    def standing(self, why: str) -> None: ...
    def stopping(self) -> None: ...
    def end(self) -> None: ...


@contextmanager
def bridge(folder: Path, **behaviours: str) -> Iterator[Bridge]:
    running = Bridge(folder, **behaviours)
    running.thread.start()
    try:
        yield running
    finally:
        running.end()


def test_parts_prepare_at_once_but_work_only_when_what_they_need_is_ready(tmp_path: Path) -> None:
    with bridge(tmp_path, kafka="steady", router="steady") as running:
        running.wait_ready()
    events = running.events()
    assert events.index("kafka works") < events.index("router works")
    assert events.index("router prepares") < events.index("router works")
    assert running.outcome == 0


def test_a_part_without_its_broker_keeps_no_other_part_from_its_work(tmp_path: Path) -> None:
    with bridge(tmp_path, kafka="steady", orders="without-its-broker", router="steady", prices="steady") as running:
        for name, state in (("orders", State.DEGRADED), ("router", State.READY), ("prices", State.READY)):
            assert running.board.wait(lambda name=name, state=state: running.board.get(name).state is state, SECONDS)
    assert running.outcome == 0


def test_sources_stop_first_then_the_router_then_the_brokers(tmp_path: Path) -> None:
    with bridge(tmp_path, kafka="steady", router="steady", orders="steady", prices="steady") as running:
        running.wait_ready()
    stops = [event for event in running.events() if event.endswith("stops")]
    assert sorted(stops[:2]) == ["orders stops", "prices stops"]
    assert stops[2:] == ["router stops", "kafka stops"]


def test_a_part_that_is_killed_is_started_again_and_counted(tmp_path: Path) -> None:
    with bridge(tmp_path, router="steady") as running:
        running.wait_ready()
        first = running.pid("router")
        os.kill(first, signal.SIGKILL)
        assert running.board.wait(lambda: running.board.get("router").state is State.DOWN, SECONDS)
        running.wait_ready()
        assert running.pid("router") != first
    assert b'jmsbridge_component_restarts_total{component="router"} 1.0' in generate_latest(running.registry)
    assert running.outcome == 0


def test_what_a_killed_part_started_goes_with_it(tmp_path: Path) -> None:
    with bridge(tmp_path, router="with-a-grandchild") as running:
        running.wait_ready()
        grandchild = int(running.board.get("router").detail)
        os.kill(running.pid("router"), signal.SIGKILL)
        assert running.board.wait(lambda: running.board.get("router").state is State.DOWN, SECONDS)
        until(lambda: gone(grandchild))


def test_the_bridge_error_of_a_part_ends_everything_in_order_with_the_same_words_and_code(tmp_path: Path) -> None:
    with bridge(tmp_path, kafka="steady", orders="steady", router="refuses") as running:
        running.thread.join(SECONDS)
        assert not running.thread.is_alive()
    assert isinstance(running.outcome, HardFailureError)
    assert str(running.outcome) == "topic 'orders' does not exist; create it"
    assert running.events()[-1] == "kafka stops"


def test_a_part_that_never_gets_ready_ends_the_bridge_instead_of_dying_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_HOPELESS", 2)
    with bridge(tmp_path, router="crashes-early") as running:
        running.thread.join(SECONDS)
        assert not running.thread.is_alive()
    assert type(running.outcome) is BridgeError
    assert str(running.outcome) == "router ended 2 times before it was ready; the last time: RuntimeError: no luck"


def test_a_source_that_never_gets_ready_is_started_again_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_LONGEST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_HOPELESS", 2)
    with bridge(tmp_path, router="steady", prices="steady", orders="crashes-early") as running:
        until(lambda: running.events().count("orders works") >= 4)
        for name in ("router", "prices"):
            assert running.board.wait(lambda name=name: running.board.get(name).state is State.READY, SECONDS)
    assert running.events().count("prices works") == 1
    assert running.outcome == 0


@pytest.mark.parametrize("behaviour", ["refuses", "crashes-early", "fails-later"])
def test_no_topology_ends_the_bridge_whatever_it_ends_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_LONGEST_TOPOLOGY_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_HOPELESS", 2)
    why = "topic 'orders' does not exist; create it" if behaviour == "refuses" else "RuntimeError: no luck"
    with bridge(tmp_path, router="steady", prices="steady", totals=behaviour) as running:
        until(lambda: running.events().count("totals works") >= 4)
        assert running.board.wait(
            lambda: running.board.get("totals").detail == f"{why}; starting again in 0.01 s", SECONDS
        )
        for name in ("router", "prices"):
            assert running.board.wait(lambda name=name: running.board.get(name).state is State.READY, SECONDS)
    assert [running.events().count(f"{name} works") for name in ("router", "prices")] == [1, 1]
    assert running.outcome == 0


def test_only_the_first_process_of_a_source_may_end_the_bridge_by_what_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    with bridge(tmp_path, orders="degraded") as running:
        assert running.board.wait(lambda: running.board.get("orders").detail == "first", SECONDS)
        os.kill(running.pid("orders"), signal.SIGKILL)
        assert running.board.wait(lambda: running.board.get("orders").detail == "at work", SECONDS)
    assert running.outcome == 0


def test_no_source_of_a_bridge_that_takes_over_may_end_it_by_what_it_is_refused(tmp_path: Path) -> None:
    class TakingOver:
        until, stands_by, has_leader, failure, why_not = 0.0, True, True, None, ""

        @property
        def leads(self) -> bool:
            return self.until > 0

        def start(self) -> None: ...
        def resign(self) -> None: ...

    running, election = Bridge(tmp_path, orders="degraded"), TakingOver()
    running.supervisor._election = election  # type: ignore[assignment]
    running.thread.start()
    try:
        until(lambda: "orders prepares" in running.events())
        election.until, election.stands_by = math.inf, False
        assert running.board.wait(lambda: running.board.get("orders").detail == "at work", SECONDS)
    finally:
        running.end()


def test_what_the_machine_lacks_ends_no_bridge_that_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    with bridge(tmp_path, orders="never-ready", prices="steady") as running:
        assert running.board.wait(lambda: running.board.get("orders").detail == "Connection refused", SECONDS)
        os.kill(running.pid("orders"), signal.SIGKILL)
        lacking = "tls.ca: no such file; starting again in"
        assert running.board.wait(lambda: running.board.get("orders").detail.startswith(lacking), SECONDS)
    assert running.outcome == 0


def test_a_part_that_cannot_be_started_is_tried_again_after_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.2)
    program, hidden = tmp_path / "program", tmp_path / "hidden"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with bridge(tmp_path, router="steady") as running:
        running.wait_ready()
        program.rename(hidden)
        os.kill(running.pid("router"), signal.SIGKILL)
        told = "it cannot be started: No such file or directory; starting again in 0.4 s"
        assert running.board.wait(lambda: running.board.get("router").detail == told, SECONDS)
        hidden.rename(program)
        running.wait_ready()
    assert running.outcome == 0


def test_a_part_that_was_ready_waits_a_short_time_however_often_it_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.1)
    monkeypatch.setattr(process_group, "_READY_PAUSE_SECONDS", 0.2)
    with bridge(tmp_path, router="fails-later") as running:
        told = "RuntimeError: no luck; starting again in 0.2 s"
        # The first time it is started again at once.
        for _ in range(3):
            assert running.board.wait(lambda: running.board.get("router").detail == told, SECONDS)
            running.wait_ready()
    assert running.outcome == 0


def test_what_could_not_be_started_holds_no_descriptors(tmp_path: Path) -> None:
    part = Part("router", "router", Stage.ROUTER)
    child = Child(part, [str(tmp_path / "nothing")], StatusBoard(["router"]), None)
    before = len(list(Path("/dev/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        child.start()
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert not child.running


def test_a_second_stop_does_not_wait_for_a_part_that_does_not_listen(tmp_path: Path) -> None:
    with bridge(tmp_path, orders="deaf") as running:
        running.wait_ready()
        pid = running.pid("orders")
        running.supervisor.stop()
        running.supervisor.stop()
        running.thread.join(5)
        assert not running.thread.is_alive()
    assert running.outcome == 130
    assert gone(pid)


def test_a_part_that_does_not_stop_in_time_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(process_group.LONGEST_STOP_SECONDS, Stage.SOURCE, 0.3)
    with bridge(tmp_path, orders="deaf") as running:
        running.wait_ready()
        pid = running.pid("orders")
    assert running.outcome == 0
    assert gone(pid)


def test_figures_of_a_part_reach_the_board_within_seconds(tmp_path: Path) -> None:
    with bridge(tmp_path, orders="steady") as running:
        line = 'jmsbridge_source_received_messages_total{source="orders"} 7.0'
        assert running.board.wait(lambda: line in running.board.get("orders").metrics, SECONDS)


def test_parts_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]);"
        "from test_supervisor import Bridge; Bridge(Path(sys.argv[2]), kafka='steady', router='steady').run()"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path)])
    try:
        until(lambda: (tmp_path / "events").exists() and "router works" in (tmp_path / "events").read_text())
    finally:
        owner.kill()
        owner.wait()
    pids = {int(line.rpartition(" ")[2]) for line in (tmp_path / "events").read_text().splitlines()}
    assert len(pids) == 2
    until(lambda: all(gone(pid) for pid in pids))
    assert {"kafka stops", "router stops"} <= {
        line.rpartition(" ")[0] for line in (tmp_path / "events").read_text().splitlines()
    }


def test_a_hang_up_stops_the_bridge_when_its_terminal_has_gone_and_reloads_it_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    heard = Event()

    class Told:
        def stop(self) -> None:
            told.append("stop")
            heard.set()

        def reload(self) -> None:
            told.append("reload")
            heard.set()

    user, terminal = os.openpty()
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "__stdin__", stdin)
        with supervisor._signals(Told()):  # type: ignore[arg-type]
            for _ in range(2):
                heard.clear()
                os.kill(os.getpid(), signal.SIGHUP)
                assert heard.wait(SECONDS)
                if told == ["reload"]:
                    os.close(user)
    assert told == ["reload", "stop"]


def test_parts_that_were_begun_are_gone_if_the_supervisor_never_runs(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path, router="steady", source="steady")
    group = bridge.supervisor._group

    with group.begun():
        pids = list(group.leaders().values())

    os.close(bridge.lock)
    assert len(pids) == 2
    assert all(map(gone, pids))
