"""Kafka as all bare loops use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer

if TYPE_CHECKING:
    from confluent_kafka import Message as KafkaMessage

__all__ = ["BATCH", "IDLE_SECONDS", "KEY", "PRODUCER", "Given", "body_of", "consumer_of", "headers_of", "id_of"]

Given = dict[str, str]
"""Parameters of a loop, by name."""

BATCH = 500
IDLE_SECONDS = 0.2
KEY = "JMSCorrelationID"
PRODUCER = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.size": 512 * 1024,
    "partitioner": "murmur2_random",
}
_JMS = "jms."


def consumer_of(given: Given) -> Consumer:
    """Consumer of the topic that a sink reads."""
    settings = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "bootstrap.servers": given["bootstrap"], "group.id": given["group"]})
    consumer.subscribe([given["topic"]])
    return consumer


def body_of(message: KafkaMessage) -> bytes:
    """The value."""
    value = message.value()
    assert isinstance(value, bytes)
    return value


def headers_of(message: KafkaMessage) -> dict[str, str]:
    """JMS headers of a record, by name."""
    headers: Any = message.headers() or ()
    return {name.removeprefix(_JMS): value.decode() for name, value in headers if name.startswith(_JMS)}


def id_of(message: KafkaMessage) -> str:
    """Id of a record, unique in its topic."""
    return f"{message.partition()}:{message.offset()}"
