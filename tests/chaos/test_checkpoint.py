"""A router does not guess: a checkpoint that is damaged, cut short or has parts missing is refused."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.embedded import EmbeddedKafka, free_ports
from engine.message import Message
from tests.integration.bridge_process import Bridge, descendants, run_to_its_end, wait
from tests.integration.connectors.running import bodies
from tests.processes import gone
from tests.topic_records import ordered_producer

CONFIGURATION = """\
bridge.id=damaged
embedded=off
kafka.bootstrap.servers={bootstrap}
embedded.data={folder}/var
http.address=127.0.0.1:{http}
journal.topic={name}.journal
journal.partitions=2
router.mode=batch
router.checkpoint={folder}/checkpoint
routing.create-topics=true
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:9
source.jms.destinations=queue:orders
routes.all.in.include=TRUE
routes.all.out.topic={name}.routed
"""


def configure(folder: Path, bootstrap: str, name: str) -> Path:
    file = folder / "jms-bridge.properties"
    (http,) = free_ports(1)
    file.write_text(CONFIGURATION.format(folder=folder, bootstrap=bootstrap, http=http, name=name))
    return file


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory, kafka: EmbeddedKafka) -> Iterator[Path]:
    """What a router has left that was killed after several commits."""
    folder = tmp_path_factory.mktemp("crashed")
    bridge = Bridge(configure(folder, kafka.bootstrap, folder.name))
    producer = ordered_producer(kafka.bootstrap)
    record = Message(b"hello", headers={"JMSMessageID": "ID:1", "JMSDestination": "queue:orders"}).to_record()

    def several_commits() -> bool:
        producer.produce(f"{folder.name}.journal", record.value, record.key, headers=list(record.headers))
        assert producer.flush(30) == 0
        return len(list(folder.glob("checkpoint/1/spark/commits/[0-9]*"))) > 2

    bridge.start("--only", "router")
    try:
        bridge.wait_ready()
        wait(several_commits, lambda: bridge.output)
        assert bridge.process
        started = descendants(bridge.process.pid)
        # All at once: a router that only its supervisor has left would stop in good order, and need no checkpoint.
        for pid in (bridge.process.pid, *started):
            os.kill(pid, signal.SIGKILL)
        bridge.process.wait()
        wait(lambda: all(map(gone, started)))
        assert "router stopped" not in bridge.output
        (folder / "checkpoint").rename(folder / "left")
        yield folder
    finally:
        bridge.end()


@pytest.fixture
def checkpoint(crashed: Path) -> Iterator[Path]:
    """The folder itself, which the router has noted in Kafka: a copy elsewhere would not be missed."""
    folder = crashed / "checkpoint"
    shutil.copytree(crashed / "left", folder)
    yield folder
    shutil.rmtree(folder)


def newest(checkpoint: Path, log: str) -> Path:
    return max(checkpoint.glob(f"1/spark/{log}/[0-9]*"), key=lambda path: int(path.name))


def cut_the_start_short(checkpoint: Path) -> None:
    start = checkpoint / "1" / "start.json"
    start.write_bytes(start.read_bytes()[:-20])


def flip_a_bit_of_the_offsets(checkpoint: Path) -> None:
    offsets = newest(checkpoint, "offsets")
    content = bytearray(offsets.read_bytes())
    content[content.rindex(b":")] ^= 1
    offsets.write_bytes(content)


def empty_the_last_commit(checkpoint: Path) -> None:
    newest(checkpoint, "commits").write_bytes(b"")


def remove_the_commits(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "1" / "spark" / "commits")


def remove_the_generation(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "1")


@pytest.mark.parametrize(
    "damage",
    [
        cut_the_start_short,
        flip_a_bit_of_the_offsets,
        empty_the_last_commit,
        remove_the_commits,
        remove_the_generation,
    ],
)
@pytest.mark.kills
def test_a_damaged_checkpoint_is_refused_by_name_and_left_alone(
    damage: Callable[[Path], None], crashed: Path, checkpoint: Path, kafka: EmbeddedKafka
) -> None:
    damage(checkpoint)
    before, logged = contents(checkpoint), (crashed / "var" / "log" / "spark.log").stat()
    published = len(bodies(kafka.bootstrap, f"{crashed.name}.routed"))
    code, _, err = run_to_its_end(crashed / "jms-bridge.properties", "--only", "router")
    assert code == 4, err
    assert str(checkpoint) in err
    # Two ways out.
    assert re.search("Either restore .*, or (set router.checkpoint to another folder|remove )", err), err
    assert "Traceback" not in err
    assert contents(checkpoint) == before
    # Spark was not started for it.
    assert (crashed / "var" / "log" / "spark.log").stat() == logged
    assert len(bodies(kafka.bootstrap, f"{crashed.name}.routed")) == published


def contents(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(folder): path.read_bytes() for path in files}
