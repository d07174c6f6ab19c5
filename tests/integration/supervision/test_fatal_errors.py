"""Clients that Kafka has shut out: real fatal errors, how they are told, and what each part does about them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.kafka import source
from engine.connectors.kafka.source import KafkaSource
from engine.dead_letters.store import DeadLetterStore
from engine.dead_letters.watch import DeadLetterWatch
from engine.delivery import sink_topic_reader
from engine.delivery.deduplication.safe_offsets import SafeOffsets
from engine.delivery.sink_topic_reader import SinkTopicReader
from engine.embedded import EmbeddedKafka
from engine.errors import ClientEndedError
from engine.kafka import clients
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import is_fatal
from engine.kafka.journal import JournalError
from engine.kafka.topics import BridgeTopics
from engine.router.generation import Committed
from engine.router.position_store import PositionStore
from routes.config import loads
from routes.model import Config
from tests.conftest import TopicFactory
from tests.topic_records import ordered_producer
from tests.waiting import until

NAMED = {"group.instance.id": "the-only-one"}


@pytest.fixture
def config(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path) -> Config:
    return loads(
        f"bridge.id={tmp_path.name}\nkafka.bootstrap.servers={kafka.bootstrap}\n"
        f"journal.topic={topic('journal')}\nrouting.dead-letter-topic={topic('dead')}\n"
        f"source.k.type=kafka\nsource.k.destinations={topic('read')}\n"
        f"sink.files.type=dropbox\nsink.files.topic={topic('files')}\n"
        "routes.all.in.include=JMSPriority >= 0\nroutes.all.out.topic=files:a\n",
        base=tmp_path,
    )


def consumer(kafka: EmbeddedKafka, name: str, **settings: Any) -> Consumer:
    """A member of a group; all members have the same fixed name."""
    plain = {"bootstrap.servers": kafka.bootstrap, "group.id": name, "enable.auto.commit": False, "log_level": 0}
    return Consumer({**clients.QUIET, **plain, **NAMED, **settings})


def take_place(kafka: EmbeddedKafka, name: str, topic: str) -> None:
    """Joins a group under the fixed name, which fences the member that had it, and leaves."""
    rival = consumer(kafka, name)
    rival.subscribe([topic])
    until(lambda: (rival.poll(0.1), rival.assignment())[1], what="the rival has the partition")
    rival.close()


def test_a_fenced_consumer_tells_it_by_the_code_alone(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    name = topic("fenced")
    commits: list[KafkaError | None] = []
    member = consumer(kafka, name, on_commit=lambda error, _: commits.append(error))
    member.subscribe([name])
    until(lambda: (member.poll(0.1), member.assignment())[1])
    rival = consumer(kafka, name)
    rival.subscribe([name])
    said: list[KafkaError] = []

    def told() -> bool:
        rival.poll(0.1)
        message = member.poll(0.1)
        if message is not None and (error := message.error()) is not None:
            said.append(error)
        return bool(said)

    until(told)
    member.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=True)
    until(lambda: (member.poll(0.1), commits)[1])
    with pytest.raises(KafkaException) as raised:
        member.commit(offsets=[TopicPartition(name, 0, 1)], asynchronous=False)
    found = [said[0], commits[0], raised.value.args[0]]
    assert [(error.code(), error.fatal()) for error in found if error] == [(KafkaError._FATAL, False)] * 3
    assert all(is_fatal(error) for error in found if error)
    rival.close()
    member.close()


def test_a_fenced_producer_tells_it_by_code_or_flag(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    name = topic("fenced")
    settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "log_level": 0}
    first, second = (Producer({**clients.QUIET, **settings}) for _ in range(2))
    for each in (first, second):
        each.init_transactions(30)
    first.begin_transaction()
    first.produce(name, b"")
    raised = []
    for call in (partial(first.commit_transaction, 30), partial(first.produce, name, b"")):
        with pytest.raises(KafkaException) as error:
            call()
        raised.append(error.value.args[0])
    told = [(error.code(), error.fatal()) for error in raised]
    assert told == [(KafkaError._FENCED, True), (KafkaError._FATAL, False)]
    assert all(map(is_fatal, raised))


def test_what_may_pass_is_not_fatal(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    name = topic("empty")
    reader = consumer(kafka, name, **{"enable.partition.eof": True})
    reader.assign([TopicPartition(name, 0, 0)])
    message = reader.poll(30)
    reader.close()
    assert message is not None
    end = message.error()
    away = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": name, "log_level": 0})
    with pytest.raises(KafkaException) as raised:
        away.list_topics(timeout=0.1)
    away.close()
    assert end is not None
    assert not is_fatal(end)
    assert not is_fatal(raised.value.args[0])


def named(monkeypatch: pytest.MonkeyPatch, module: Any) -> None:
    """Has a module's members of groups join under the fixed name."""
    monkeypatch.setattr(module, "member", lambda *arguments: clients.member(*arguments) | NAMED)


def reader_of(config: Config) -> SinkTopicReader:
    sink = config.sinks[0]
    group = clients.sink_group(config.bridge_id, sink.name)
    return SinkTopicReader(KafkaClients(config.kafka_access), group, sink, 0, lambda _: None)


def test_a_fenced_reader_of_a_sink_ends_for_a_new_one(
    config: Config, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(monkeypatch, sink_topic_reader)
    reader = reader_of(config)
    until(lambda: (reader.take(1, 0.1), reader.lag() or reader._consumer.assignment())[1])
    take_place(kafka, clients.sink_group(config.bridge_id, "files"), config.sinks[0].topic)
    with pytest.raises(ClientEndedError, match="has shut out the reader of"):
        until(lambda: reader.take(1, 0.1))
    reader.close()


def test_a_reader_of_a_sink_whose_topic_is_deleted_ends_for_one_that_makes_it_again(
    config: Config, kafka: EmbeddedKafka
) -> None:
    own = config.sinks[0]
    reader = reader_of(config)
    until(lambda: (reader.take(1, 0.1), reader.lag() or reader._consumer.assignment())[1])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    admin.delete_topics([own.topic])[own.topic].result(30)
    with pytest.raises(ClientEndedError, match=f"does not have topic '{own.topic}' any more"):
        until(lambda: reader.take(1, 0.1), 60)
    reader.close()
    BridgeTopics(config).ensure_sink_topics()
    assert own.topic in admin.list_topics(timeout=10).topics


def test_a_fenced_source_connects_anew(config: Config, kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, source)
    own = config.sources[0]
    reader = KafkaSource(SystemEndpoint.of(config, own), 1)
    reader.connect()
    until(lambda: (reader.receive(0.1), reader._opened().assignment())[1])
    take_place(kafka, f"{config.bridge_id}.source.k", own.destinations[0])
    with pytest.raises(NotConnectedError):
        until(lambda: reader.receive(0.1))
    reader.connect()
    producer = ordered_producer(kafka.bootstrap)
    producer.produce(own.destinations[0], b"after")
    producer.flush(30)
    until(lambda: reader.receive(0.1))
    reader.close()


def test_positions_that_a_client_cannot_write_any_more_are_reported(config: Config) -> None:
    safe_offsets = SafeOffsets(
        KafkaClients(config.kafka_access), config.journal.topic, f"{config.bridge_id}.source.k", 1, 1
    )
    safe_offsets.tend()
    safe_offsets._written(KafkaError(KafkaError._FATAL), [])
    with pytest.raises(JournalError, match="cannot be written"):
        safe_offsets.tend()
    safe_offsets.close()


def test_a_router_whose_place_in_kafka_another_one_has_taken_ends_whatever_it_asks(config: Config) -> None:
    BridgeTopics(config).ensure_state_topic()
    first, second = (
        PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal) for _ in range(2)
    )
    first.open()
    second.open()
    for _ in range(2):
        first.note(Committed({0: 1}, 1))
        with pytest.raises(ClientEndedError, match=f"another router of bridge.id={config.bridge_id} has taken over"):
            first.write()
    second.note(Committed({0: 2}, 2))
    second.write(30)


def test_a_count_of_dead_letters_goes_on_with_a_new_client(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with DeadLetterWatch(lambda: DeadLetterStore.of(config), lambda: True) as watch:
        until(lambda: (census := watch.census()) and census.depth == 0)
        look = watch._look
        monkeypatch.setattr(look, "now", partial(_raise, KafkaException(KafkaError(KafkaError._FATAL))))
        until(lambda: watch._look not in (look, None))
        until(lambda: (census := watch.census()) and census.reachable)


def _raise(error: Exception) -> None:
    raise error
