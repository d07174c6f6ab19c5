"""`jms-bridge backup` and `restore` on a real Kafka: what is lost comes back, and what is there stays."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from engine.kafka.clients import KafkaClients
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.topics import exists
from engine.router.generation import Generations, Start
from engine.router.position_store import PositionStore
from routes.config import load
from tests.commands import finished
from tests.topic_records import ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory

CONFIGURATION = """\
bridge.id=b-{journal}
kafka.bootstrap.servers={kafka}
journal.topic={journal}
journal.state-topic={state}
router.checkpoint={folder}/checkpoint
sink.s.type=nats
sink.s.url=nats://127.0.0.1:4222
sink.s.topic={sink}
source.k.type=kafka
source.k.destinations={read}
routes.r.in.include=true
routes.r.out.topic=nats:out
"""


@pytest.fixture
def file(tmp_path: Path, kafka: EmbeddedKafka, topic: TopicFactory) -> Path:
    """The properties file of a bridge that is stopped: with a checkpoint, a note, and positions of sink and source."""
    names = {name: topic(name) for name in ("journal", "sink", "read")}
    state = topic("state", config={"cleanup.policy": "compact"})
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, folder=tmp_path, state=state, **names))
    config = load(file)
    writer = ordered_producer(kafka.bootstrap)
    for name in ("sink", "read"):
        for _ in range(7):
            writer.produce(names[name], b"x")
    writer.flush()
    commit(config, group(config, "sink"), names["sink"], 5)
    commit(config, group(config, "source"), names["read"], 4)
    start = Start(names["journal"], journal_id(config), {0: 0}, {}, config.bridge_id, "", run="r", sequence=1)
    generation = Generations(tmp_path / "checkpoint").create(start)
    store = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)
    store.open()
    store.begin(generation)
    return file


def group(config: Config, kind: str) -> str:
    return f"{config.bridge_id}.{kind}.{'s' if kind == 'sink' else 'k'}"


def journal_id(config: Config) -> str:
    return KafkaOffsets(KafkaClients(config.kafka_access)).identity(config.journal.topic)


def commit(config: Config, group: str, topic: str, offset: int) -> None:
    with closing(KafkaClients(config.kafka_access).consumer(group)) as member:
        member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)


def committed(config: Config, kind: str) -> dict[int, int]:
    topic = config.sinks[0].topic if kind == "sink" else config.sources[0].destinations[0]
    return KafkaOffsets(KafkaClients(config.kafka_access)).committed(group(config, kind), topic, [0])


def noted_run(config: Config) -> str | None:
    entry = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal).read()
    return None if entry is None else entry.progress.start.run


def lose(config: Config) -> None:
    """Deletes the notes, the positions and the checkpoint."""
    client = AdminClient({"bootstrap.servers": config.kafka_access.servers, "log_level": 0})
    client.delete_topics([config.journal.state_topic])[config.journal.state_topic].result(30)
    for future in client.delete_consumer_groups([group(config, "sink"), group(config, "source")]).values():
        future.result(30)
    checkpoint = config.router.checkpoint
    assert isinstance(checkpoint, Path)
    shutil.rmtree(checkpoint)


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    capsys.readouterr()
    return finished(capsys, *arguments)


def test_what_is_lost_comes_back(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, saved = load(file), file.with_name("bridge.tar.gz")
    checkpoint = file.with_name("checkpoint")
    before = {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()}
    assert before
    code, out, _ = run(capsys, "backup", saved, "-c", file)
    assert code == 0
    assert f"{len(before)} files of the checkpoint, 2 records of the state topic, positions of 2 partitions" in out
    assert run(capsys, "restore", saved, "-c", file)[:2] == (0, "nothing is missing\n")

    lose(config)
    until(
        lambda: (
            noted_run(config) is None if exists(KafkaClients(config.kafka_access), config.journal.state_topic) else True
        )
    )
    code, out, _ = run(capsys, "restore", saved, "-c", file, "--dry-run")
    assert code == 0
    assert not checkpoint.exists()
    assert run(capsys, "restore", saved, "-c", file, "--yes")[:2] == (0, out)
    assert {path: path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()} == before
    assert noted_run(config) == "r"
    assert committed(config, "sink") == {0: 5}
    assert committed(config, "source") == {0: 4}
    assert run(capsys, "restore", saved, "-c", file)[:2] == (0, "nothing is missing\n")


def test_what_is_there_stays(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, saved = load(file), file.with_name("bridge.tar.gz")
    assert run(capsys, "backup", saved, "-c", file)[0] == 0
    commit(config, group(config, "sink"), config.sinks[0].topic, 6)
    checkpoint = file.with_name("checkpoint")
    (checkpoint / "begun").write_text("newer")
    code, _, told = run(capsys, "restore", saved, "-c", file, "--replace", "--yes")
    assert (code, "restored" in told) == (0, True)
    (former,) = file.parent.glob("checkpoint.before-restore-*")
    assert (former / "begun").read_text() == "newer"
    assert (checkpoint / "begun").read_text() != "newer"
    assert committed(config, "sink") == {0: 6}


def test_a_bridge_that_runs_is_left_alone(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, saved = load(file), file.with_name("bridge.tar.gz")
    assert run(capsys, "backup", saved, "-c", file)[0] == 0
    leading, stop = f"{config.bridge_id}.leader", Event()

    def lead() -> None:
        number = 0
        while not stop.wait(0.3):
            number += 1
            commit(config, leading, config.journal.state_topic, number)

    leader = Thread(target=lead)
    leader.start()
    try:
        until(
            lambda: KafkaOffsets(KafkaClients(config.kafka_access)).committed(leading, config.journal.state_topic, [0])
        )
        code, _, told = run(capsys, "restore", saved, "-c", file, "--yes")
    finally:
        stop.set()
        leader.join()
    assert (code, f"bridge.id={config.bridge_id} runs" in told) == (64, True)


def test_a_backup_of_another_bridge_or_journal_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, saved = load(file), file.with_name("bridge.tar.gz")
    assert run(capsys, "backup", saved, "-c", file)[0] == 0
    other = file.with_name("other.properties")
    other.write_text(file.read_text().replace(f"bridge.id={config.bridge_id}", "bridge.id=b2"))
    code, _, told = run(capsys, "restore", saved, "-c", other)
    assert (code, f"bridge.id={config.bridge_id}, and the properties file has bridge.id=b2" in told) == (64, True)

    client = AdminClient({"bootstrap.servers": config.kafka_access.servers, "log_level": 0})
    client.delete_topics([config.journal.topic])[config.journal.topic].result(30)
    code, _, told = run(capsys, "restore", saved, "-c", file)
    assert (code, "does not exist since the backup was made" in told) == (4, True)


def test_a_bridge_with_a_kafka_of_its_own_is_told_what_to_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(
        f"bridge.id=b\nembedded.data={tmp_path}/var\nroutes.r.in.include=region = 'emea'\nroutes.r.out.topic=t\n"
    )
    code, _, told = run(capsys, "backup", tmp_path / "b.tar.gz", "-c", file)
    assert (code, f"whose files are all in {tmp_path}/var" in told) == (64, True)
