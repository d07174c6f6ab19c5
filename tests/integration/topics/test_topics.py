"""Topics made and checked on a real Kafka that lets anybody do anything."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from engine.embedded import EmbeddedKafka, free_ports
from engine.errors import HardFailureError, UnreachableError
from engine.kafka.journal import FRAMING_BYTES
from engine.kafka.topics import BridgeTopics
from routes.config import loads
from routes.errors import ConfigurationError
from routes.model import Config

if TYPE_CHECKING:
    from tests.conftest import TopicFactory

Configure = Callable[..., Config]


@pytest.fixture
def configure(kafka: EmbeddedKafka, topic: TopicFactory) -> Configure:
    """A configuration of two routes to `orders`, one to `prices`, with a journal of a name nobody has."""
    fresh = topic("name").replace("name", "journal")

    def configured(*lines: str, orders: str = "orders", prices: str = "prices") -> Config:
        return loads(
            f"bridge.id=b\nkafka.bootstrap.servers={kafka.bootstrap}\njournal.topic={fresh}\n"
            f"routes.a.in.include=x=1\nroutes.a.out.topic={orders}\n"
            f"routes.b.in.include=x=2\nroutes.b.out.topic={orders}\n"
            f"routes.c.in.include=x=3\nroutes.c.out.topic={prices}\n" + "\n".join(lines)
        )

    return configured


def settings(kafka: EmbeddedKafka, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    return {name: entry.value for name, entry in admin.describe_configs([resource])[resource].result(30).items()}


def partitions(kafka: EmbeddedKafka, topic: str) -> int:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    return len(admin.list_topics(timeout=30).topics[topic].partitions)


def test_a_missing_journal_is_created_as_configured(configure: Configure, kafka: EmbeddedKafka) -> None:
    config = configure("journal.partitions=3", "journal.retention=2d", "journal.max-message-bytes=2MiB")
    assert BridgeTopics(config).ensure_journal() == 3
    assert partitions(kafka, config.journal.topic) == 3
    made = settings(kafka, config.journal.topic)
    assert made["retention.ms"] == str(2 * 86_400_000)
    assert made["max.message.bytes"] == str(2 * 1024 * 1024 + FRAMING_BYTES)
    assert (made["cleanup.policy"], made["message.timestamp.type"]) == ("delete", "CreateTime")


def test_a_journal_kept_forever_has_no_retention(configure: Configure, kafka: EmbeddedKafka) -> None:
    config = configure("journal.retention=forever")
    BridgeTopics(config).ensure_journal()
    assert settings(kafka, config.journal.topic)["retention.ms"] == "-1"


def test_an_existing_journal_is_kept_as_it_is(configure: Configure) -> None:
    assert BridgeTopics(configure("journal.partitions=2")).ensure_journal() == 2
    assert BridgeTopics(configure("journal.partitions=5", "journal.retention=1d")).ensure_journal() == 2


def test_a_compacted_journal_and_one_with_too_small_a_limit_are_refused(
    configure: Configure, topic: TopicFactory, kafka: EmbeddedKafka
) -> None:
    name = topic("journal", config={"cleanup.policy": "compact", "max.message.bytes": "1000000"})
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(configure(f"journal.topic={name}", "journal.max-message-bytes=1MiB")).ensure_journal()
    largest = 1024 * 1024 + FRAMING_BYTES
    assert str(raised.value).splitlines() == [
        f"Kafka at {kafka.bootstrap}: 2 topics cannot be used",
        f"  topic '{name}' (the journal): is compacted, which drops messages; "
        "set its cleanup.policy to delete, or name another journal.topic",
        f"  topic '{name}' (the journal): takes 1000000 bytes, and the bridge may write {largest}; "
        f"set its max.message.bytes to {largest}, or lower journal.max-message-bytes",
    ]


def test_more_copies_than_brokers_is_refused_with_the_key_to_change(configure: Configure, kafka: EmbeddedKafka) -> None:
    config = configure("journal.replication=3\nrouting.dead-letter-topic=dead")
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(config).ensure_journal()
    assert str(raised.value) == (
        f"Kafka at {kafka.bootstrap}: topic '{config.journal.topic}' (the journal): does not exist, and cannot be "
        "created with 3 copies; lower journal.replication, or write broker"
    )


def test_topics_that_exist_pass(configure: Configure, topic: TopicFactory) -> None:
    BridgeTopics(configure(f"routing.dead-letter-topic={topic()}", orders=topic(), prices=topic())).check()


def test_all_missing_topics_are_named_with_their_users_and_the_remedy(
    configure: Configure, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(configure("routing.dead-letter-topic=none.2", orders="none.1", prices=topic())).check()
    remedy = "does not exist; create it (kafka-topics.sh --create), or set routing.create-topics=true"
    assert str(raised.value).splitlines() == [
        f"Kafka at {kafka.bootstrap}: 2 topics cannot be used",
        f"  topic 'none.1' (routes 'a', 'b'): {remedy}",
        f"  topic 'none.2' (routing.dead-letter-topic): {remedy}",
    ]
    assert raised.value.exit_code == 4


def test_a_single_missing_topic_is_told_in_one_line(
    configure: Configure, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    with pytest.raises(HardFailureError) as raised:
        BridgeTopics(configure(orders=topic(), prices="none")).check()
    assert str(raised.value) == (
        f"Kafka at {kafka.bootstrap}: topic 'none' (route 'c'): "
        "does not exist; create it (kafka-topics.sh --create), or set routing.create-topics=true"
    )


def test_missing_topics_are_created_only_when_wanted(configure: Configure, topic: TopicFactory) -> None:
    orders, prices, dead = topic("orders"), f"{topic()}-p", f"{topic()}-d"
    lines = (f"routing.dead-letter-topic={dead}", "journal.partitions=3")
    assert BridgeTopics(configure(*lines, orders=orders, prices=prices)).create_missing() == []
    assert (
        BridgeTopics(configure(*lines, "routing.create-topics=false", orders=orders, prices=prices)).create_missing()
        == []
    )
    wanted = configure(*lines, "routing.create-topics=true", orders=orders, prices=prices)
    assert sorted(BridgeTopics(wanted).create_missing()) == sorted([prices, dead])
    assert BridgeTopics(wanted).create_missing() == []
    BridgeTopics(wanted).check()
    assert BridgeTopics(wanted).limits()[dead] > wanted.journal.max_message_bytes


def test_on_the_embedded_kafka_missing_topics_are_created(kafka: EmbeddedKafka, topic: TopicFactory) -> None:
    port, name = kafka.bootstrap.rpartition(":")[2], f"{topic()}-x"
    start = f"bridge.id=b\nembedded.kafka.port={port}\nroutes.a.in.include=x=1\nroutes.a.out.topic={name}\n"
    assert BridgeTopics(loads(start + "routing.create-topics=false\n")).create_missing() == []
    assert BridgeTopics(loads(start)).create_missing() == [name]


def test_topics_that_a_source_names_are_created_with_the_destinations(
    configure: Configure, topic: TopicFactory
) -> None:
    orders, read = topic("orders"), f"{topic()}-read"
    source = ("source.in.type=kafka", f"source.in.destinations={read}, {read}-.*")
    assert BridgeTopics(configure(*source, orders=orders, prices=orders)).create_missing() == []
    wanted = configure(*source, "routing.create-topics=true", orders=orders, prices=orders)
    assert BridgeTopics(wanted).create_missing() == [read]


def test_limits_are_those_of_each_topic(configure: Configure, topic: TopicFactory) -> None:
    small, dead = topic(config={"max.message.bytes": "1000"}), topic(config={"max.message.bytes": "2000"})
    config = configure(f"routing.dead-letter-topic={dead}", orders=small, prices="none")
    assert BridgeTopics(config).limits() == {small: 1000, dead: 2000}


def test_a_broker_that_is_not_there_is_told_in_one_line_after_the_given_time(configure: Configure) -> None:
    (port,) = free_ports(1)
    started = time.monotonic()
    with pytest.raises(UnreachableError) as raised:
        BridgeTopics(configure(f"kafka.bootstrap.servers=127.0.0.1:{port}")).check(timeout_seconds=1)
    assert time.monotonic() - started < 5
    assert str(raised.value).startswith(f"no Kafka at 127.0.0.1:{port} for 1 s")
    assert str(raised.value).endswith("; start it, or correct kafka.bootstrap.servers")
    assert "\n" not in str(raised.value)


def test_a_server_that_never_answers_is_unreachable_too(configure: Configure) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = configure(f"kafka.bootstrap.servers=127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(UnreachableError):
            BridgeTopics(config).ensure_journal(timeout_seconds=1)


def test_a_value_that_the_client_does_not_take_is_a_fault_of_the_configuration(configure: Configure) -> None:
    with pytest.raises(ConfigurationError, match=r"ssl\.ca\.pem"):
        BridgeTopics(configure("kafka.ssl.truststore.certificates=none", "kafka.security.protocol=SSL")).check()
