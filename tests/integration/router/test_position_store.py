"""Notes of a router with thousands of partitions, topics and routes, in a topic that takes small records only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from engine.embedded import EmbeddedKafka
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.topics import BridgeTopics
from engine.router.generation import Committed, Generation, Start
from engine.router.position_store import PositionStore
from routes.config import loads
from routes.model import Config
from tests.conftest import TopicFactory
from tests.topic_records import ordered_producer

FAR = 10**12
POSITIONS = {partition: FAR + partition for partition in range(10_000)}
OUTPUTS = {f"department-{number}.orders": {each: FAR + each for each in range(10)} for number in range(1_000)}
ROUTES = "".join(f"routes.r{number}.in.include=msg.address = 'queue-{number}'\n" for number in range(10_000))
LARGE = Start("j", "id", POSITIONS, OUTPUTS, "b", ROUTES, "run")
CONFIGURATION = """\
bridge.id={name}
kafka.bootstrap.servers={bootstrap}
journal.topic={name}
source.s.type=stomp
source.s.destinations=queue:a
routes.r.in.include=TRUE
routes.r.out.topic=t
"""
SMALL = replace(LARGE, positions={0: 7}, outputs={}, routes="", run="next")


@pytest.fixture
def config(kafka: EmbeddedKafka, topic: TopicFactory) -> Config:
    name = topic("bridge")
    made = loads(CONFIGURATION.format(name=name, bootstrap=kafka.bootstrap))
    # The smallest limit of records that a journal, and with it the state topic, can have.
    made = replace(made, journal=replace(made.journal, max_message_bytes=64 * 1024))
    BridgeTopics(made).ensure_state_topic()
    return made


@pytest.fixture
def store(config: Config) -> PositionStore:
    opened = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)
    opened.open()
    return opened


def note(store: PositionStore, start: Start, decided: int, folder: Path) -> None:
    store.begin(Generation(folder / "1", start))
    store.note(Committed(start.positions, 1), {0: decided})
    store.write(30)


def test_notes_may_be_larger_than_a_record_of_kafka(store: PositionStore, tmp_path: Path) -> None:
    note(store, LARGE, 8, tmp_path)
    found = store.read()
    assert found is not None
    assert found.progress.start == LARGE
    assert found.progress.committed == Committed(POSITIONS, 1)
    assert found.progress.stopped == {0: 8}


def test_a_small_note_replaces_a_large_one(config: Config, store: PositionStore, tmp_path: Path) -> None:
    note(store, LARGE, 8, tmp_path)
    note(store, SMALL, 9, tmp_path)
    found = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal).read()
    assert found is not None
    assert found.progress.start == SMALL
    assert found.progress.stopped == {0: 9}


def test_a_part_that_another_program_has_removed_is_missed(
    config: Config, store: PositionStore, tmp_path: Path
) -> None:
    note(store, LARGE, 8, tmp_path)
    producer = ordered_producer(config.bootstrap_servers)
    producer.produce(config.journal.state_topic, None, f"{config.bridge_id} {config.journal.topic} start 3")
    assert producer.flush(30) == 0
    with pytest.raises(HardFailureError, match="cannot be read: its part 3 is missing"):
        store.read()


def test_a_small_note_is_one_record_that_earlier_versions_read(
    config: Config, store: PositionStore, tmp_path: Path
) -> None:
    note(store, SMALL, 9, tmp_path)
    consumer = Consumer({"bootstrap.servers": config.bootstrap_servers, "group.id": "test"})
    consumer.assign([TopicPartition(config.journal.state_topic, 0, 0)])
    records = [consumer.poll(30) for _ in range(3)]
    consumer.close()
    name = f"{config.bridge_id} {config.journal.topic}"
    assert [(record and record.key(), record and record.headers()) for record in records] == [
        (f"{name} start".encode(), None),
        (f"{name} kept 0".encode(), None),
        (f"{name} place".encode(), None),
    ]
