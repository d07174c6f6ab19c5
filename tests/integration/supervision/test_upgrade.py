"""Two versions of the bridge on one journal, an earlier one and this: each goes on where the other was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from engine.embedded import free_ports
from tests.integration.bridge_process import ROOT, Bridge, descendants, read, run_to_its_end, wait
from tests.router_load import CONFIGURATION, Load, faults_of
from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

EARLIER = "497555b5222e7c0975aa0818ba672915c905ad89"
"""Commit of 2026-11-26, before seals (decision 32): its records, checkpoint and notes have none, and no sequence."""
RATE = 50
MORE = 100
"""Number of messages that are routed between two changes."""

pytestmark = pytest.mark.kills


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the earlier version, with its own Java classes and the pinned jars of this one."""
    git, javac = (shutil.which(name) for name in ("git", "javac"))
    if not git or not javac:
        pytest.skip("git and javac make the earlier version: one of them is missing")
    known = [git, "-C", str(ROOT), "cat-file", "-e", f"{EARLIER}^{{commit}}"]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        pytest.skip(f"this clone has no commit {EARLIER[:8]}: git fetch --unshallow brings it")
    folder = tmp_path_factory.mktemp("earlier")
    archive = [git, "-C", str(ROOT), "archive", EARLIER, "engine", "routes", "jvm/spark"]
    with subprocess.Popen(archive, stdout=subprocess.PIPE) as packed:
        subprocess.run(["tar", "-x", "-C", folder], stdin=packed.stdout, check=True)  # noqa: S607
    assert packed.returncode == 0
    (folder / ".jars").mkdir()
    for each in (ROOT / ".jars").iterdir():
        if each.name not in ("spark", "class-data"):
            (folder / ".jars" / each.name).symlink_to(each)
    shutil.copytree(ROOT / ".jars/spark", folder / ".jars/spark", ignore=shutil.ignore_patterns("jms-bridge-*"))
    compile_classes(javac, folder)
    return folder


def compile_classes(javac: str, folder: Path) -> None:
    """Makes the earlier version's jar of `jvm/spark`, against the jars of this one."""
    sources, classes = folder / "jvm/spark/src/main/java", folder / "classes"
    path = f"{Path(pyspark.__file__).parent}/jars/*:{folder}/.jars/spark/*"
    options = ["-nowarn", "-proc:none", "-encoding", "UTF-8", "--release", "17", "-cp", path, "-d", classes]
    done = subprocess.run([javac, *options, *sources.rglob("*.java")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    jar = Path(javac).with_name("jar")
    subprocess.run([jar, "-cf", folder / ".jars/spark/jms-bridge-spark.jar", "-C", classes, "."], check=True)


class Site:
    """A journal under load, and a checkpoint folder for each of two machines that either version can run on."""

    def __init__(self, folder: Path, kafka: EmbeddedKafka, name: str, earlier: Path) -> None:
        self.bootstrap, self.routed, self.journal = kafka.bootstrap, f"{name}.routed", f"{name}.journal"
        self._folder, self._earlier = folder, earlier
        self._bridges: list[Bridge] = []

    def start(self, machine: str, *, is_earlier: bool) -> Bridge:
        """Starts a router of either version with the checkpoint of a machine."""
        folder, (http,) = self._folder / machine, free_ports(1)
        folder.mkdir(exist_ok=True)
        file = folder / f"{len(self._bridges)}.properties"
        names = {"journal": self.journal, "routed": self.routed, "mode": "batch", "interval": "500ms"}
        text = CONFIGURATION.format(bootstrap=self.bootstrap, folder=folder, http=http, **names)
        file.write_text(f"{text}router.checkpoint={self.checkpoint(machine)}\nrouting.create-topics=true\n")
        launcher = ("env", "-C", str(self._earlier)) if is_earlier else ()
        bridge = Bridge(file, launcher)
        self._bridges.append(bridge)
        bridge.start("--only", "router")
        return bridge

    def checkpoint(self, machine: str) -> Path:
        """The checkpoint folder of a machine."""
        return self._folder / machine / "checkpoint"

    @contextmanager
    def load(self) -> Iterator[None]:
        """Messages at an even rate while in here; at the end each has been routed, once and in order."""
        messages = Load(self.bootstrap, self.journal, RATE)
        try:
            yield
        finally:
            count = messages.stop()
        assert faults_of(self.bootstrap, self.routed, count, 120) == []

    def start_standby(self, machine: str, *, is_earlier: bool) -> Bridge:
        """Starts a router beside one that leads, and waits until it stands by."""
        bridge = self.start(machine, is_earlier=is_earlier)

        def stands_by() -> bool:
            assert bridge.running, bridge.output
            return bridge.get("/ready?standby=ok")[0] == 200

        wait(stands_by, lambda: bridge.output)
        assert "another bridge leads" in bridge.output
        return bridge

    def wait_routed(self) -> None:
        """Waits until the router that leads now has routed further messages."""
        wanted = len(read(self.bootstrap, self.routed)) + MORE
        wait(
            lambda: len(read(self.bootstrap, self.routed)) >= wanted,
            lambda: "\n".join(bridge.output[-3000:] for bridge in self._bridges[-2:]),
        )

    def end(self) -> None:
        for bridge in self._bridges:
            bridge.end()


def stop(bridge: Bridge) -> None:
    """SIGTERM, as systemd and Kubernetes send it."""
    assert bridge.process
    bridge.process.send_signal(signal.SIGTERM)
    assert bridge.process.wait(patience(120)) == 0, bridge.output


def kill(bridge: Bridge) -> None:
    assert bridge.process
    pids = {bridge.process.pid, *descendants(bridge.process.pid)}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    bridge.process.wait()


@pytest.fixture
def site(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, earlier: Path) -> Iterator[Site]:
    made = Site(tmp_path, kafka, topic("upgrade"), earlier)
    yield made
    made.end()


def test_a_standby_of_the_other_version_takes_over_and_back(site: Site) -> None:
    old = site.start("one", is_earlier=True)
    old.wait_ready()
    with site.load():
        site.wait_routed()

        # The upgrade: a standby of this version takes over when the earlier one stops.
        new = site.start_standby("two", is_earlier=False)
        stop(old)
        site.wait_routed()

        # Back, and by a crash: the earlier version goes on from the notes of this one.
        old = site.start_standby("one", is_earlier=True)
        kill(new)
        site.wait_routed()
    stop(old)


def test_each_version_goes_on_from_the_checkpoint_of_the_other_and_refuses_one_of_a_newer_form(site: Site) -> None:
    old = site.start("one", is_earlier=True)
    old.wait_ready()
    with site.load():
        site.wait_routed()
        kill(old)
        new = site.start("one", is_earlier=False)
        site.wait_routed()

        # The rollback of a version that stopped in order.
        stop(new)
        old = site.start("one", is_earlier=True)
        site.wait_routed()

        # And forward again, now in order too.
        stop(old)
        new = site.start("one", is_earlier=False)
        site.wait_routed()
    stop(new)

    newest = max((path for path in site.checkpoint("one").iterdir() if path.name.isdecimal()), key=number)
    start = newest / "start.json"
    start.write_text(start.read_text().replace('"version": 1', '"version": 2'))
    code, _, told = run_to_its_end(new.file, "--only", "router")
    assert code == 4
    assert f"a newer version of the bridge wrote {start}, in form 2, and this version reads form 1. Start" in told


def number(generation: Path) -> int:
    return int(generation.name)
