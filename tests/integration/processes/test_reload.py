"""A bridge of stand-ins that takes changed configurations."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from prometheus_client import CollectorRegistry

from engine.errors import HardFailureError, UsageError
from engine.supervision import process_group
from engine.supervision.child import Child
from engine.supervision.parts import Part, Stage
from engine.supervision.pauses import Pauses
from engine.supervision.process_group import ProcessGroup
from engine.supervision.reload import Reload
from engine.supervision.revision import Revision, revision_of
from engine.supervision.supervisor import Supervisor
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, StatusBoard
from routes.config.snapshot import Snapshot
from tests.waiting import until

SCRIPT = Path(__file__).with_name("parts_for_tests.py")
SECONDS = 20
BASE = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:reloadable
routes.a.in.include=msg.address==orders
routes.a.out.topic=a
"""
TWO = "source.t.type=stomp\nsource.t.url=stomp://127.0.0.1:1\nsource.t.destinations=queue:{}\n"


class Elsewhere:
    """An election that another bridge has won."""

    until, leads, has_leader, stands_by, failure, why_not = 0.0, False, True, True, None, "another bridge leads"

    def start(self) -> None: ...
    def resign(self) -> None: ...


class Bridge:
    """Its sources do what their destination is called."""

    def __init__(self, folder: Path, election: Elsewhere | None = None, more: str = "") -> None:
        self.folder = folder
        self.file = folder / "b.properties"
        self.file.write_text(BASE + more)
        snapshot = Snapshot.take(self.file)
        config = snapshot.load()
        first = revision_of(1, snapshot, config, None)
        names = [part.name for part in first.parts]
        self.board, self.registry = StatusBoard(names), CollectorRegistry()
        self.refusal: HardFailureError | None = None
        metrics = BridgeMetrics(self.registry, names, "1", "4")
        children = [self.make(part, first) for part in first.parts]
        self.group = ProcessGroup(children, self.board, metrics, Pauses(folder / "paused.json"))
        self.reload = Reload(first, None, self.group, self.board, metrics, self.make, self.prepare)
        self.supervisor = Supervisor(self.group, self.board, metrics, self, election, self.reload)  # type: ignore[arg-type]
        self.outcome: object = None
        self.thread = Thread(target=self.run)

    def make(self, part: Part, revision: Revision) -> Child:
        destinations = {f"source:{source.name}": source.destinations[0] for source in revision.config.sources}
        behaviour = destinations.get(part.name, ":reloadable").partition(":")[2]
        behaviour = "topology" if part.stage is Stage.TOPOLOGY else behaviour
        command = [sys.executable, str(SCRIPT), behaviour, str(self.folder / part.name)]
        return Child(part, command, self.board, None, revision)

    def prepare(self, _: Revision) -> None:
        if self.refusal:
            raise self.refusal

    def run(self) -> None:
        try:
            self.outcome = self.supervisor.run()
        except BaseException as error:
            self.outcome = error

    def begin(self) -> None: ...
    def show(self, statuses: object) -> None: ...
    def standing(self, why: str) -> None: ...
    def stopping(self) -> None: ...
    def end(self) -> None: ...

    def ask(self, text: str) -> None:
        self.file.write_text(text)
        self.supervisor.reload()

    def wait_told(self, said: str) -> None:
        until(lambda: said in str(self.reload.state))

    def wait_taken(self) -> None:
        """What is in the file is in force, and all parts are ready."""
        until(lambda: self.reload.state["hash"] == Snapshot.take(self.file).hash)
        until(lambda: all(told.state is State.READY for told in self.board.all()))

    def details(self) -> dict[str, str]:
        return {status.component: status.detail for status in self.board.all()}

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Bridge]:
    running = Bridge(tmp_path)
    running.thread.start()
    until(lambda: all(told.state is State.READY for told in running.board.all()))
    yield running
    running.supervisor.stop()
    running.thread.join(SECONDS)
    assert not running.thread.is_alive()


def test_the_router_takes_new_routes_in_its_process_and_others_are_left_alone(bridge: Bridge) -> None:
    before = bridge.details()
    bridge.ask(BASE.replace("topic=a", "topic=b"))
    until(lambda: bridge.details()["router"] != before["router"])
    after = bridge.details()
    assert before["router"].split() == [after["router"].split()[0], "a"]
    assert after["router"].split()[1] == "b"
    assert after["source:s"] == before["source:s"]
    bridge.wait_taken()
    assert bridge.reload.state["reload"]["success"] is True


def test_a_paused_part_ends_in_order_and_stays_so_until_it_is_resumed(bridge: Bridge) -> None:
    before = bridge.details()
    assert bridge.reload.pause("source:s", "ann@host") == ["source:s"]
    until(lambda: bridge.board.get("source:s").state is State.PAUSED)
    assert bridge.details()["source:s"].startswith("paused by ann@host at 20")
    assert bridge.metric("jmsbridge_component_paused", component="source:s") == 1
    assert bridge.metric("jmsbridge_component_up", component="source:s") == 0
    assert "source:s stops" in (bridge.folder / "events").read_text()
    assert Pauses(bridge.folder / "paused.json").find("source:s") is not None
    with pytest.raises(UsageError, match="`jms-bridge resume source:s` starts it"):
        bridge.reload.restart("source:s")
    assert bridge.reload.resume("source:s", "bob@host") == ["source:s"]
    until(lambda: bridge.board.get("source:s").state is State.READY)
    after = bridge.details()
    assert after["source:s"] != before["source:s"]
    assert after["router"] == before["router"]
    assert bridge.metric("jmsbridge_component_paused", component="source:s") == 0
    assert bridge.metric("jmsbridge_component_restarts_total", component="source:s") == 0
    with pytest.raises(UsageError, match="source:s is not paused"):
        bridge.reload.resume("source:s", "bob@host")
    assert Pauses(bridge.folder / "paused.json").find("source:s") is None


def test_a_paused_route_takes_nothing_else_from_the_file_and_leaves_its_last_reload_as_it_was(bridge: Bridge) -> None:
    bridge.ask(BASE.replace("routes.a.in", "routes.a.inn"))
    bridge.wait_told("unknown key")
    before = bridge.reload.state
    sources = bridge.details()["source:s"]
    assert bridge.reload.pause("route:a", "ann@host") == ["route:a"]
    until(lambda: bridge.reload.state["paused"] and bridge.reload.state["proven"])
    told = bridge.reload.state
    assert str(told["paused"]["a"]).startswith("paused by ann@host at 2")
    assert (told["hash"], told["reload"]["success"], told["reload"]["why"]) == (
        before["hash"],
        False,
        before["reload"]["why"],
    )
    assert bridge.details()["source:s"] == sources
    assert bridge.metric("jmsbridge_component_paused", component="route:a") == 1
    # A reload of a file without the pause keeps it, and tells so.
    bridge.ask(BASE + "routes.b.in.include=TRUE\nroutes.b.out.topic=b\n")
    bridge.wait_taken()
    assert list(bridge.reload.state["paused"]) == ["a"]
    bridge.reload.resume("route:a", "ann@host")
    until(lambda: bridge.reload.state["paused"] == {})
    assert bridge.metric("jmsbridge_component_paused", component="route:a") == 0
    assert [route.paused for route in bridge.reload.current.config.routes] == [False, False]


def test_a_route_whose_pause_was_refused_is_paused_later(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.supervision.reload._AGAIN_SECONDS", 0.5)
    bridge.refusal = HardFailureError("Kafka says no")
    bridge.reload.pause("route:a", "ann@host")
    bridge.wait_told("Kafka says no")
    assert bridge.reload.state["paused"] == {}
    bridge.refusal = None
    until(lambda: list(bridge.reload.state["paused"]) == ["a"])


@pytest.mark.parametrize(
    ("change", "name", "why"),
    [
        ("pause", "route:b", "there is no route 'b' that can be paused; there are a"),
        ("resume", "route:a", "route:a is not paused"),
        ("resume", "route:b", "there is no route 'b'"),
        ("restart", "route:a", "'route:a' is not a part"),
    ],
)
def test_changes_of_routes_that_cannot_be_are_refused(bridge: Bridge, change: str, name: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        getattr(bridge.reload, change)(*([name] if change == "restart" else [name, "ann@host"]))


def test_a_part_that_is_resumed_while_it_ends_starts_again(bridge: Bridge) -> None:
    before = bridge.details()["source:s"]
    bridge.reload.pause("source:s", "ann@host")
    until(lambda: "source:s stops" in (bridge.folder / "events").read_text())
    bridge.reload.resume("source:s", "ann@host")
    until(lambda: bridge.board.get("source:s").state is State.READY and bridge.details()["source:s"] != before)
    assert bridge.metric("jmsbridge_component_restarts_total", component="source:s") == 0


@pytest.mark.parametrize("paused", ["router", "source:s"])
def test_a_reload_is_proven_with_a_paused_part_which_starts_with_the_new_configuration(
    bridge: Bridge, paused: str
) -> None:
    bridge.reload.pause(paused, "ann@host")
    until(lambda: bridge.board.get(paused).state is State.PAUSED)
    bridge.ask(BASE.replace("topic=a", "topic=b") + "source.s.username=me\nsource.s.password=x\n")
    until(lambda: bridge.reload.state["hash"] == Snapshot.take(bridge.file).hash and bridge.reload.state["proven"])
    assert bridge.board.get(paused).state is State.PAUSED
    bridge.reload.resume(paused, "ann@host")
    bridge.wait_taken()
    assert bridge.details()["router"].split()[1] == "b"


def test_parts_paused_before_the_bridge_starts_are_not_started(tmp_path: Path) -> None:
    Pauses(tmp_path / "paused.json").add(["source:s"], "ann@host")
    running = Bridge(tmp_path)
    running.thread.start()
    try:
        until(lambda: running.board.get("router").state is State.READY)
        assert running.board.get("source:s").state is State.PAUSED
        assert "source:s" not in (tmp_path / "events").read_text()
    finally:
        running.supervisor.stop()
        running.thread.join(SECONDS)


def test_a_source_that_changes_begins_anew_alone_and_one_that_is_new_joins(bridge: Bridge) -> None:
    before = bridge.details()
    bridge.ask(f"{BASE}source.s.username=me\nsource.s.password=x\n{TWO.format('reloadable')}")
    bridge.wait_taken()
    after = bridge.details()
    assert after["router"] == before["router"]
    assert after["source:s"] != before["source:s"]
    until(lambda: bridge.metric("jmsbridge_component_up", component="source:t") == 1)
    bridge.ask(BASE)
    bridge.wait_taken()
    until(lambda: list(bridge.details()) == ["router", "source:s"])
    until(lambda: bridge.metric("jmsbridge_component_up", component="source:t") is None)


def test_faults_are_refused_as_a_whole_and_told_with_their_places(bridge: Bridge) -> None:
    before, in_force = bridge.details(), bridge.reload.state["hash"]
    bridge.ask(BASE.replace("out.topic", "out.topik"))
    bridge.wait_told("b.properties:7:1: error: unknown key 'routes.a.out.topik'")
    assert bridge.reload.state["hash"] == in_force
    assert bridge.reload.state["bridge"] == "b1"
    assert bridge.metric("jmsbridge_config_last_reload_success") == 0
    assert bridge.metric("jmsbridge_config_info", config_hash=in_force) == 1
    bridge.refusal = HardFailureError("topic 'b' does not exist; create it")
    bridge.ask(BASE.replace("topic=a", "topic=b"))
    bridge.wait_told("topic 'b' does not exist")
    assert bridge.details() == before
    bridge.refusal = None
    bridge.ask(BASE)
    until(lambda: bridge.metric("jmsbridge_config_last_reload_success") == 1)


def test_a_part_that_dies_while_the_file_is_half_written_starts_with_what_is_in_force(bridge: Bridge) -> None:
    bridge.file.write_text("brid")
    pid = bridge.details()["source:s"].split()[0]
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: bridge.board.get("source:s").state is State.READY and bridge.details()["source:s"].split()[0] != pid)
    assert bridge.details()["source:s"].split()[1] == "a"


@pytest.mark.parametrize("behaviour", ["refuses"])
def test_a_new_part_that_cannot_work_brings_the_old_configuration_back(bridge: Bridge, behaviour: str) -> None:
    in_force = bridge.reload.state["hash"]
    bridge.ask(BASE.replace("topic=a", "topic=b") + TWO.format(behaviour))
    bridge.wait_told("was given up: source:t: topic 'orders' does not exist; create it")
    until(lambda: list(bridge.details()) == ["router", "source:s"])
    until(lambda: bridge.details()["router"].split()[1] == "a")
    assert bridge.reload.state["hash"] == in_force
    assert bridge.reload.state["reload"]["success"] is False
    assert bridge.thread.is_alive()
    bridge.ask(BASE + TWO.format("reloadable"))
    bridge.wait_taken()


def test_a_new_source_that_dies_again_and_again_brings_the_old_configuration_back(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(process_group, "_HOPELESS", 2)
    bridge.ask(BASE + TWO.format("crashes-early"))
    bridge.wait_told("was given up: source:t: source:t ended 2 times before it was ready; the last time: ")
    until(lambda: list(bridge.details()) == ["router", "source:s"])
    assert bridge.thread.is_alive()


def test_a_watched_file_is_read_when_it_has_changed_and_rests(bridge: Bridge) -> None:
    bridge.file.write_text(BASE.replace("topic=a", "topic=b"))
    time.sleep(2.5)
    assert bridge.details()["router"].split()[1] == "a"
    bridge.ask(f"{BASE}reload.watch=true\n")
    bridge.wait_taken()
    other = bridge.folder / "other"
    other.write_text(BASE.replace("topic=a", "topic=b"))
    other.replace(bridge.file)
    until(lambda: bridge.details()["router"].split()[1] == "b")


def test_a_bridge_that_stands_by_takes_over_with_what_it_was_given_last(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path, Elsewhere())
    bridge.thread.start()
    try:
        until(lambda: all(detail.endswith(" a") for detail in bridge.details().values()))
        bridge.ask(BASE.replace("topic=a", "topic=b") + TWO.format("reloadable"))
        until(lambda: bridge.reload.state["hash"] == Snapshot.take(bridge.file).hash)
        until(
            lambda: (
                {name: detail.split()[1] for name, detail in bridge.details().items() if detail}
                == {"router": "b", "source:s": "a", "source:t": "b"}
            )
        )
        assert bridge.metric("jmsbridge_component_restarts_total", component="router") == 0
    finally:
        bridge.supervisor.stop()
        bridge.thread.join(SECONDS)
    assert bridge.outcome == 0


def test_a_bridge_that_is_stopped_in_the_middle_ends_in_order(bridge: Bridge) -> None:
    bridge.ask(f"{BASE}source.s.username=me\nsource.s.password=x\n{TWO.format('reloadable')}")
    until(lambda: bool(bridge.group.leaving) or "source:t" in bridge.details())
    bridge.supervisor.stop()
    bridge.thread.join(SECONDS)
    assert bridge.outcome == 0


TOPOLOGY = "topologies.t.build=shop_of_reload:build\n"
CODE = (
    "from engine.streams import StreamsBuilder as B\ndef build(b=B('t')): return b.stream('a').to('{}') or b.build()\n"
)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Bridge, Path]]:
    """A bridge with a topology, and the file of that."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "shop_of_reload.py"
    file.write_text(CODE.format("b1"))
    running = Bridge(tmp_path, more=TOPOLOGY)
    running.thread.start()
    until(lambda: all(told.state is State.READY for told in running.board.all()))
    yield running, file
    running.supervisor.stop()
    running.thread.join(SECONDS)
    assert not running.thread.is_alive()


def restarted(bridge: Bridge, part: str, before: str) -> str:
    """The detail of a part that is ready in another process than before."""
    until(
        lambda: bridge.board.get(part).state is State.READY and bridge.details()[part].split()[0] != before.split()[0]
    )
    return bridge.details()[part]


def test_changed_code_alone_begins_its_topology_anew_and_nothing_else(
    shop: tuple[Bridge, Path], capfd: pytest.CaptureFixture[str]
) -> None:
    bridge, file = shop
    before = bridge.details()
    file.write_text(CODE.format("b2"))
    number = bridge.reload.request()
    assert "to('b2')" in restarted(bridge, "topology:t", before["topology:t"])
    until(lambda: bool(bridge.reload.state["proven"]))
    told = bridge.reload.state["reload"]
    assert (told["success"], told["request"], told["changed"]) == (True, number, ["topology:t"])
    assert {**bridge.details(), "topology:t": ""} == {**before, "topology:t": ""}
    said = capfd.readouterr().out
    assert "nothing has changed" not in said
    assert f"source files of topologies on disk are not in force yet files=['{file}']" in said
    bridge.reload.request()
    until(lambda: "nothing has changed" in capfd.readouterr().out)


def test_broken_code_is_refused_and_what_runs_goes_on_also_through_a_crash(shop: tuple[Bridge, Path]) -> None:
    bridge, file = shop
    before = bridge.details()
    file.write_text("def build(:\n")
    bridge.ask(BASE.replace("topic=a", "topic=b") + TOPOLOGY)
    bridge.wait_told(f"the module cannot be imported: {file}:1:11: SyntaxError: invalid syntax")
    assert bridge.reload.state["reload"]["not_in_force"] == [str(file)]
    assert bridge.details() == before
    os.kill(int(before["topology:t"].split()[0]), signal.SIGKILL)
    assert "to('b1')" in restarted(bridge, "topology:t", before["topology:t"])
    for number, name in enumerate(("topology:t", "router")):
        now = bridge.details()[name]
        bridge.reload.restart(name)
        assert restarted(bridge, name, now).split()[1:] == before[name].split()[1:], number
    assert bridge.thread.is_alive()


def test_a_revoked_reload_brings_back_the_code_that_ran_before(shop: tuple[Bridge, Path]) -> None:
    bridge, file = shop
    before = bridge.details()
    file.write_text(CODE.format("b2") + "# refuses\n")
    bridge.ask(BASE.replace("topic=a", "topic=b") + TOPOLOGY)
    bridge.wait_told("was given up: topology:t: the state does not fit")
    assert "to('b1')" in restarted(bridge, "topology:t", before["topology:t"])
    until(lambda: bridge.details()["router"].split()[1] == "a")
    assert bridge.reload.state["reload"]["not_in_force"] == [str(file)]
    assert bridge.details()["source:s"] == before["source:s"]
    assert bridge.thread.is_alive()


def test_a_new_topology_that_is_revoked_never_starts_without_its_settings(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_group, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.chdir(bridge.folder)
    (bridge.folder / "shop_of_reload.py").write_text(CODE.format("b1") + "# refuses\n")
    bridge.ask(BASE.replace("topic=a", "topic=b") + TOPOLOGY)
    until(lambda: "topology:t" in bridge.details())
    # The router takes its former routes when the topology has been started again.
    hold = bridge.folder / "hold"
    hold.touch()

    def starts() -> list[str]:
        told = (bridge.folder / "events").read_text().splitlines()
        return [each for each in told if each.startswith(("topology:t starts", "topology:t is lost"))]

    until(lambda: len(starts()) > 1)
    hold.unlink()
    bridge.wait_told("was given up: topology:t: the state does not fit")
    until(lambda: list(bridge.details()) == ["router", "source:s"])
    assert not [each for each in starts() if "is lost" in each]


def test_a_part_is_restarted_by_its_name_alone(bridge: Bridge) -> None:
    before = bridge.details()
    assert bridge.reload.restart("source:s") == ["source:s"]
    assert restarted(bridge, "source:s", before["source:s"]).split()[1] == "a"
    assert bridge.details()["router"] == before["router"]
    with pytest.raises(
        UsageError, match="'sink:x' is not a part that can be restarted or paused alone; there are router, source:s"
    ):
        bridge.reload.restart("sink:x")
