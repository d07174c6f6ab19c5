"""What a machine can do to a bridge: its disk is full, its clock jumps; and somebody deletes a topic."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from tests.chaos.machine import ClockJump, DiskFull, SmallDisk
from tests.chaos.plan import Step
from tests.chaos.run import run
from tests.chaos.system import System
from tests.integration.bridge_process import Bridge, configuration, wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.chaos.faults import Fault

pytestmark = [
    pytest.mark.skipif(os.environ.get("CHAOS") != "all", reason="takes minutes; switch on with: CHAOS=all"),
    pytest.mark.timeout(1500),
]
needs_disk = pytest.mark.skipif(
    not SmallDisk.is_possible(),
    reason="needs unshare and nsenter, and a kernel that gives users namespaces",
)
needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, `cc`")


def survives(system: System, faults: Sequence[Fault], unordered: str = "") -> None:
    """`unordered` is a destination whose order may suffer."""
    try:
        outcome = run(system, 0, [Step(fault, True, 2.0) for fault in faults], print, per_second=20)
    finally:
        system.end()
    for (_, destination), counts in outcome.verdict.cells.items():
        if destination == unordered:
            counts.reordered_after = 0
    assert outcome.verdict.total.delivered > 500
    assert outcome.verdict.faults() == {}, dict(outcome.verdict.examples)
    assert outcome.stuck == []


@needs_disk
def test_nothing_is_lost_while_the_disk_of_the_checkpoint_is_full(tmp_path: Path, nats_server: Path) -> None:
    with SmallDisk(tmp_path / "small", "2m") as disk:
        more = f"router.checkpoint={tmp_path}/small/checkpoint\nrouter.interval=5s\n"
        system = System(tmp_path, "realtime", more, disk.launcher)
        survives(system, [DiskFull(disk, "fill the disk of the checkpoint")])


@needs_disk
def test_nothing_is_lost_while_the_disk_of_kafka_is_full(tmp_path: Path, nats_server: Path) -> None:
    with SmallDisk(tmp_path / "var" / "kafka", "400m") as disk:
        system = System(tmp_path, "realtime", "", disk.launcher)
        survives(system, [DiskFull(disk, "fill the disk of Kafka")])


@needs_compiler
def test_nothing_is_lost_when_the_clock_jumps(tmp_path: Path, nats_server: Path) -> None:
    file = tmp_path / "clock"
    system = System(tmp_path, "realtime", environment=ClockJump.environment(tmp_path, file))
    # The order in a dropbox is that of the times in its file names.
    survives(system, [ClockJump(file, 3600), ClockJump(file, -3600)], unordered="dropbox")


def test_a_topic_that_is_deleted_stops_the_bridge_and_what_comes_later_is_there_after_a_restart(tmp_path: Path) -> None:
    bridge = Bridge(configuration(tmp_path))
    try:
        bridge.start()
        bridge.wait_ready()
        bridge.send(range(100))
        wait(lambda: len(bridge.records("routed")) == 100, lambda: bridge.output)
        admin = AdminClient({"bootstrap.servers": bridge.bootstrap})
        admin.delete_topics(["routed"])["routed"].result(30)
        bridge.send(range(100, 200))
        wait(lambda: not bridge.running, lambda: bridge.output)
        assert bridge.process is not None
        assert bridge.process.returncode == 4, bridge.output
        assert "'routed'" in bridge.output.splitlines()[-1]
        bridge.start()
        bridge.wait_ready()
        bridge.send(range(200, 300))
        wanted = {str(number) for number in range(100, 300)}
        wait(lambda: wanted <= {key for key, _ in bridge.records("routed")}, lambda: bridge.output)
    finally:
        bridge.end()
