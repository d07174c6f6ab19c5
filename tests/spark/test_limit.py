"""Tests that the JVM sends nothing when the router does not lead any more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from py4j.protocol import Py4JJavaError

from engine.router.publish_deadline import limited
from tests.waiting import until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from engine.embedded import EmbeddedKafka
    from tests.conftest import TopicFactory


@pytest.fixture
def jvm(spark: SparkSession) -> Iterator[Any]:
    jvm: Any = spark._jvm
    jvm.jmsbridge.figures.Sends.always()
    yield jvm
    jvm.jmsbridge.figures.Sends.always()


def send(jvm: Any) -> None:
    """What Kafka's producer does first with a record."""
    sends = jvm.java.util.List.of(jvm.jmsbridge.figures.Sends())
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord("topic", bytearray(b"value"))
    jvm.org.apache.kafka.clients.producer.internals.ProducerInterceptors(sends).onSend(record)
    # It has arrived: nothing is under way for other tests in the same JVM.
    jvm.jmsbridge.figures.Sends().onAcknowledgement(None, None)


def test_without_an_end_everything_is_sent(spark: SparkSession, jvm: Any) -> None:
    with limited(spark, lambda: None):
        time.sleep(0.1)
        send(jvm)


def test_after_the_end_nothing_is_sent_until_there_is_another_one(spark: SparkSession, jvm: Any) -> None:
    moments = [time.monotonic() + 2.0]
    with limited(spark, lambda: moments[-1]):
        time.sleep(0.2)
        send(jvm)
        time.sleep(2.0)
        with pytest.raises(Py4JJavaError, match="TooLateError: this router does not lead any more"):
            send(jvm)
        moments.append(time.monotonic() + 60)
        time.sleep(0.8)
        send(jvm)


def test_what_is_in_a_buffer_at_the_end_is_not_sent(
    spark: SparkSession, jvm: Any, kafka: EmbeddedKafka, topic: TopicFactory
) -> None:
    name = topic("limited", 1)
    serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
    settings = {
        "bootstrap.servers": kafka.bootstrap,
        "key.serializer": serializer,
        "value.serializer": serializer,
        "linger.ms": "500",
    }
    producer = jvm.jmsbridge.kafka.Fence.around(jvm.org.apache.kafka.clients.producer.KafkaProducer(settings))

    def send(value: bytes) -> None:
        producer.send(jvm.org.apache.kafka.clients.producer.ProducerRecord(name, bytearray(value)))

    try:
        send(b"before")
        until(lambda: _values(kafka, name) == [b"before"], 20)
        # As in a process that was frozen meanwhile: the record is in the buffer, and the time is over.
        send(b"late")
        jvm.jmsbridge.figures.Sends.until(jvm.java.lang.System.nanoTime())
        time.sleep(2.0)
        assert _values(kafka, name) == [b"before"]
    finally:
        producer.close(jvm.java.time.Duration.ZERO)


def _values(kafka: EmbeddedKafka, topic: str) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "none", "log_level": 0})
    try:
        end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1]
        consumer.assign([TopicPartition(topic, 0, 0)])
        return [record.value() for record in consumer.consume(end, 30)] if end else []
    finally:
        consumer.close()
