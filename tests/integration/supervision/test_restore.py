"""Restores: the router goes on without loss and duplicates from an older checkpoint, or without its notes in Kafka."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from engine.backup.archive import read as read_backup
from engine.backup.archive import write
from engine.backup.restore import Restore
from engine.backup.save import saved
from engine.embedded import free_ports
from routes.config import load
from tests.integration.bridge_process import Bridge, descendants, read, wait
from tests.router_load import CONFIGURATION, Load, faults_of

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory

RATE = 200

pytestmark = pytest.mark.kills


def test_a_restore_of_an_older_checkpoint_and_the_loss_of_the_notes(
    kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    name, (http,) = topic("restore"), free_ports(1)
    file = tmp_path / "jms-bridge.properties"
    journal, routed = f"{name}.journal", f"{name}.routed"
    names = {"journal": journal, "routed": routed, "mode": "batch", "interval": "500ms"}
    text = CONFIGURATION.format(bootstrap=kafka.bootstrap, folder=tmp_path, http=http, **names)
    file.write_text(f"{text}router.checkpoint={tmp_path}/checkpoint\nrouting.create-topics=true\n")
    bridge, config = Bridge(file), load(file)
    checkpoint, copy = tmp_path / "checkpoint", tmp_path / "copy"
    bridge.start("--only", "router")
    try:
        bridge.wait_ready()
        messages = Load(kafka.bootstrap, config.journal.topic, RATE)

        def await_routed(more: int) -> None:
            wanted = len(read(kafka.bootstrap, routed)) + more
            wait(lambda: len(read(kafka.bootstrap, routed)) >= wanted, lambda: bridge.output)

        await_routed(400)
        # Without the files that Spark is just writing.
        shutil.copytree(checkpoint, copy, ignore=shutil.ignore_patterns(".*", "*.tmp"))
        backup = tmp_path / "bridge.tar.gz"
        write(backup, saved(config, "1"))
        await_routed(400)
        kill(bridge)

        # The checkpoint of the run that was killed, as it was some batches before.
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)
        bridge.start("--only", "router")
        bridge.wait_ready()
        await_routed(200)
        assert bridge.interrupt() == 0

        # The checkpoint of the run before the last, which ended cleanly: the notes are newer.
        shutil.rmtree(checkpoint)
        shutil.copytree(copy, checkpoint)
        bridge.start("--only", "router")
        bridge.wait_ready()
        await_routed(200)
        kill(bridge)

        # No notes, and the checkpoint of the last run.
        client = AdminClient({"bootstrap.servers": kafka.bootstrap})
        (deleted,) = client.delete_topics([config.journal.state_topic]).values()
        deleted.result()
        bridge.start("--only", "router")
        bridge.wait_ready()
        await_routed(200)
        assert bridge.interrupt() == 0

        # No notes and no checkpoint, but a backup that was taken while the bridge ran.
        shutil.rmtree(checkpoint)
        (deleted,) = client.delete_topics([config.journal.state_topic]).values()
        deleted.result()
        Restore.of(config, read_backup(backup)).run()
        bridge.start("--only", "router")
        bridge.wait_ready()
        await_routed(200)
        count = messages.stop()
        assert faults_of(kafka.bootstrap, routed, count, 60) == []
    finally:
        bridge.end()


def kill(bridge: Bridge) -> None:
    """Ends the bridge and its parts without a farewell."""
    assert bridge.process
    left = descendants(bridge.process.pid)
    bridge.process.kill()
    bridge.process.wait()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
