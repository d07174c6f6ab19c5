"""Tests that the JVM hands nothing to a producer when the router does not lead any more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError

from engine.spark.publish_deadline import limited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def jvm(spark: SparkSession) -> Iterator[Any]:
    jvm: Any = spark._jvm
    jvm.jmsbridge.Sends.always()
    yield jvm
    jvm.jmsbridge.Sends.always()


def send(jvm: Any) -> None:
    """What Kafka's producer does first with a record."""
    sends = jvm.java.util.List.of(jvm.jmsbridge.Sends())
    record = jvm.org.apache.kafka.clients.producer.ProducerRecord("topic", bytearray(b"value"))
    jvm.org.apache.kafka.clients.producer.internals.ProducerInterceptors(sends).onSend(record)
    # It has arrived: nothing is under way for other tests in the same JVM.
    jvm.jmsbridge.Sends().onAcknowledgement(None, None)


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
