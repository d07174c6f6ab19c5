"""Kafka topics as a source: every record once, through kills and moves between workers, and topics that come later."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from engine.kafka.topics import BridgeTopics
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from tests.integration.connectors.running import Running, bodies, configure, visible
from tests.topic_records import ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from engine.embedded import EmbeddedKafka
    from routes.model import Config
    from tests.conftest import TopicFactory
    from tests.integration.connectors.conftest import Configure, Start

CODE = (
    "import sys, threading; from pathlib import Path; from prometheus_client import CollectorRegistry;"
    "from engine.delivery.source_loop import run_source; from engine.telemetry.status import Reporter;"
    "from routes import config;"
    "run_source(config.load(Path(sys.argv[1])), 'src', 1, Reporter(None, 'source:src', CollectorRegistry()),"
    " threading.Event())"
)


def put(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes | None],
    key: bytes | None = None,
    headers: Mapping[str, bytes] | None = None,
) -> None:
    """Returns when Kafka has them."""
    producer = ordered_producer(bootstrap, {"linger.ms": 5})
    for value in values:
        producer.produce(topic, value, key, headers=dict(headers or {}))
        producer.poll(0)
    assert producer.flush(60) == 0


def taken(config: Config, topic: str) -> int:
    """How many records of a topic are dealt with for good."""
    group = f"{config.bridge_id}.source.src"
    consumer = Consumer({"bootstrap.servers": config.bootstrap_servers, "group.id": group, "log_level": 0})
    try:
        places = [TopicPartition(topic, p) for p in consumer.list_topics(topic, timeout=10).topics[topic].partitions]
        # Kafka does not tell before the transaction of a worker that was killed has ended.
        return sum(max(place.offset, 0) for place in consumer.committed(places, timeout=30))
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS):
            raise
        # The first group that anybody asks for.
        return 0
    finally:
        consumer.close()


def reading(*topics: str, **more: str) -> dict[str, str]:
    return {".type": "kafka", ".destinations": ", ".join(map(re.escape, topics)).replace("\\", "\\\\"), **more}


def test_records_of_other_programs_become_messages(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    config = configured(reading(orders))
    put(kafka.bootstrap, orders, [b"hello"], b"key-1", {"trace-parent": b"00-1", "raw": b"\xff", "JMSType": b"x"})
    put(kafka.bootstrap, orders, [b"\xff\x00", None])
    start(config).acknowledges(3)

    text, data, empty = sorted(visible(config), key=lambda m: m.headers["JMSMessageID"])
    assert (text.body, text.body_type) == (b"hello", BodyType.TEXT)
    assert text.headers["JMSDestination"] == f"topic:kafka.{orders}"
    assert text.headers["JMSMessageID"] == f"ID:{orders}:0:0"
    assert text.headers["JMSCorrelationID"] == "key-1"
    assert text.headers["JMSDeliveryMode"] == "PERSISTENT"
    assert abs(int(text.headers["JMSTimestamp"]) - time.time() * 1000) < 60_000
    assert text.properties == {
        "trace-parent": Property("00-1", JmsType.STRING),
        "raw": Property("/w==", JmsType.BYTES),
        "_JMSType": Property("x", JmsType.STRING),
        "JMS_Kafka_Topic": Property(orders, JmsType.STRING),
        "JMS_Kafka_Partition": Property("0", JmsType.INT),
        "JMS_Kafka_Offset": Property("0", JmsType.LONG),
        "JMS_Kafka_Key": Property("key-1", JmsType.STRING),
    }
    assert text.source == "src"
    assert (data.body, data.body_type) == (b"\xff\x00", BodyType.BYTES)
    assert "JMSCorrelationID" not in data.headers
    assert (empty.body, empty.body_type, empty.has_null_value) == (b"", BodyType.TEXT, True)


def test_topics_by_regular_expression_also_those_made_later(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    first, other = topic("reg-a"), topic("irregular")
    prefix = first.removesuffix(first.partition("-")[2])
    config = configured({".type": "kafka", ".destinations": f"{prefix}.*", ".address": "queue:in.${topic}"})
    put(kafka.bootstrap, first, [b"1"])
    put(kafka.bootstrap, other, [b"no"])
    source = start(config)
    source.acknowledges(1)
    later = topic("reg-b")
    put(kafka.bootstrap, later, [b"2", b"3"])
    source.acknowledges(3)
    assert {m.headers["JMSDestination"] for m in visible(config)} == {f"queue:in.{first}", f"queue:in.{later}"}


def test_hundreds_of_topics(kafka: EmbeddedKafka, configured: Configure, start: Start, queue: str) -> None:
    names = [f"{queue}.t{n:03}" for n in range(200)]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        made.result(60)
    producer = ordered_producer(kafka.bootstrap)
    for number in range(10):
        for name in names:
            producer.produce(name, f"{name} {number}".encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    config = configured({".type": "kafka", ".destinations": f"{queue}\\\\.t[0-9]+"})
    start(config).acknowledges(2000, 60)
    found = [m.body.decode() for m in visible(config)]
    assert sorted(found) == sorted(f"{name} {number}" for name in names for number in range(10))


@pytest.mark.kills
def test_kills_at_any_moment_lose_and_double_nothing(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders", partitions=3)
    config = configured(reading(orders))
    count = 100_000
    producer = ordered_producer(kafka.bootstrap, {"linger.ms": 5})
    for n in range(count):
        producer.produce(orders, str(n).encode(), f"key-{n % 10}".encode())
        producer.poll(0)
    assert producer.flush(60) == 0
    for number in range(4):
        before = taken(config, orders)
        assert before < count
        process = subprocess.Popen([sys.executable, "-c", CODE, str(config.path)], start_new_session=True)
        try:
            until(lambda before=before: taken(config, orders) > before, 60, "some progress")
            time.sleep(0.02 * number)
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
    source = start(config)
    until(lambda: source.error or len(visible(config)) >= count, 90, "all journaled")
    source.stop()
    assert source.error is None
    found = [int(m.body) for m in visible(config)]
    assert sorted(found) == list(range(count))
    for key in range(10):
        own = [n for n in found if n % 10 == key]
        assert own == sorted(own)


def test_workers_that_come_and_go_share_the_partitions_and_double_nothing(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders", partitions=4)
    config = configured(reading(orders))
    producer = ordered_producer(kafka.bootstrap)
    workers: list[Running] = []
    for part in range(8):
        for n in range(part * 200, part * 200 + 200):
            producer.produce(orders, str(n).encode(), f"key-{n % 10}".encode())
        assert producer.flush(60) == 0
        if part in (0, 2, 5):
            workers.append(start(config, len(workers) + 1))
        if part == 4:
            workers[0].stop()
        time.sleep(0.5)
    until(lambda: len(visible(config)) >= 1600, 60, "all journaled")
    for worker in workers[1:]:
        worker.stop()
    assert [worker.error for worker in workers] == [None] * 3
    found = [int(m.body) for m in visible(config)]
    assert sorted(found) == list(range(1600))
    for key in range(10):
        own = [n for n in found if n % 10 == key]
        assert own == sorted(own)


def test_what_this_bridge_has_published_keeps_its_origin_unless_it_may_come_again(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    once = Message(b"1", headers={"JMSMessageID": "ID:1", "JMSType": "t"}, origins=("b1",))
    twice = Message(b"2", origins=("b0", "b1", "b1"))
    other = Message(b"3", origins=("b2",))
    for message in (once, twice, other):
        record = message.to_record()
        put(kafka.bootstrap, orders, [record.value], record.key, {k: v or b"" for k, v in record.headers})
    config = configured(reading(orders))
    source = start(config)
    source.acknowledges(3)
    source.stop()
    assert {m.body: m.origins for m in visible(config)} == {b"1": ("b1",), b"2": ("b1",), b"3": ("b2",)}


def test_a_value_that_is_no_text_fails_softly_where_text_is_wanted(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    config = configured(reading(orders, **{".message.type": "text", "routing.on-soft-failure": "skip"}))
    put(kafka.bootstrap, orders, [b"1", b"\xff", b"2"])
    source = start(config)
    source.acknowledges(3)
    assert source.count("rejected", reason="unreadable") == 1
    assert sorted(m.body for m in visible(config)) == [b"1", b"2"]
    source.stop()
    again = start(config)
    put(kafka.bootstrap, orders, [b"\xff"])
    again.acknowledges(1)
    again.stop()
    assert again.count("received") == 1


def test_by_the_default_policy_what_cannot_be_read_is_set_aside(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    config = configured(reading(orders, **{".message.type": "TEXT"}))
    put(kafka.bootstrap, orders, [b"1", b"\xff", b"2"])
    source = start(config)
    source.acknowledges(3)
    source.stop()
    assert source.error is None
    assert sorted(m.body for m in visible(config)) == [b"1", b"2"]
    assert bodies(kafka.bootstrap, config.letter_topic) == [b"\xff"]


def test_bytes_where_bytes_are_wanted(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    config = configured(reading(orders, **{".message.type": "BYTES"}))
    put(kafka.bootstrap, orders, [b"plain"])
    start(config).acknowledges(1)
    assert [m.body_type for m in visible(config)] == [BodyType.BYTES]


@pytest.mark.parametrize("wanted", ["never-there", "journal-{}.*", "__consumer.*"])
def test_topics_that_are_not_there_are_waited_for_and_its_own_are_none(
    kafka: EmbeddedKafka, tmp_path: Path, queue: str, start: Start, topic: TopicFactory, wanted: str
) -> None:
    late = f"{queue}-late"
    settings = {".type": "kafka", ".destinations": f"{wanted.format(queue)}, {late}"}
    config = configure(tmp_path, kafka.bootstrap, f"journal-{queue}", settings)
    BridgeTopics(config).ensure_journal()
    source = start(config)
    until(lambda: source.connected, 30, "connected")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(late, 1, 1)])[late].result(30)
    put(kafka.bootstrap, late, [b"1"])
    source.acknowledges(1)
    source.stop()
    assert source.count("received") == 1


def test_records_that_kafka_removed_unread_are_counted_and_a_new_topic_is_read_whole(
    kafka: EmbeddedKafka, topic: TopicFactory, configured: Configure, start: Start
) -> None:
    orders = topic("orders")
    config = configured(reading(orders))
    put(kafka.bootstrap, orders, [b"1", b"2"])
    first = start(config)
    first.acknowledges(2)
    first.stop()
    put(kafka.bootstrap, orders, [b"gone"] * 3)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    (removed,) = admin.delete_records([TopicPartition(orders, 0, -1)]).values()
    removed.result(30)
    put(kafka.bootstrap, orders, [b"3"])
    second = start(config)
    second.acknowledges(1)
    assert sorted(message.body for message in visible(config)) == [b"1", b"2", b"3"]
    until(lambda: second.sample("jmsbridge_source_lost_records_total", source="src") == 3)
    second.stop()

    admin.delete_topics([orders])[orders].result(30)
    until(lambda: orders not in admin.list_topics(timeout=10).topics)
    admin.create_topics([NewTopic(orders, 1, 1)])[orders].result(30)
    put(kafka.bootstrap, orders, [b"new"] * 10)
    # Kafka has removed the positions of the former topic.
    start(config).acknowledges(10)
