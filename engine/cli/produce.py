"""The Kafka side of `send`: an ordinary producer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer

from engine.errors import HardFailureError, UnreachableError
from engine.kafka import SILENT, librdkafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Message as KafkaMessage

    from engine.message import Record
    from routes.model import Config

__all__ = ["send"]

_SECONDS = 15.0


def send(config: Config, topic: str, record: Record, count: int) -> str:
    """Publish the record `count` times and wait for all of them; position of the last, `topic:partition:offset`.

    Raises:
        HardFailureError: Kafka refuses (no such topic, not authorised, too large).
        UnreachableError: Kafka does not answer.
    """
    errors: list[KafkaError] = []
    last: list[str] = [""]

    def delivered(error: KafkaError | None, message: KafkaMessage) -> None:
        if error is not None:
            errors.append(error)
        last[0] = f"{message.topic()}:{message.partition()}:{message.offset()}"

    settings = {
        **librdkafka(config, "producer"),
        "delivery.timeout.ms": int(_SECONDS * 1000),
    }
    producer = Producer(settings, logger=SILENT)
    try:
        # librdkafka waits for an unknown topic as if the network were down; so ask for it first.
        if (unknown := producer.list_topics(topic, timeout=_SECONDS).topics[topic].error) is not None:
            raise _translated(config, topic, unknown)
        for _ in range(count):
            while not _queued(producer, topic, record, delivered):
                producer.poll(1.0)
            producer.poll(0)
            if errors:
                break
        left = producer.flush(_SECONDS)
    except KafkaException as error:
        raise _translated(config, topic, error.args[0]) from error
    if errors:
        raise _translated(config, topic, errors[0])
    if left:
        raise UnreachableError(f"Kafka at {config.bootstrap_servers} does not answer; is it running?")
    return last[0]


def _queued(
    producer: Producer, topic: str, record: Record, delivered: Callable[[KafkaError | None, KafkaMessage], None]
) -> bool:
    try:
        producer.produce(topic, key=record.key, value=record.value, headers=list(record.headers), on_delivery=delivered)
    except BufferError:
        return False
    return True


def _translated(config: Config, topic: str, error: KafkaError) -> Exception:
    servers = config.bootstrap_servers
    if error.code() in (KafkaError._MSG_TIMED_OUT, KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
        return UnreachableError(f"Kafka at {servers} does not answer ({error.str()}); is it running?")
    return HardFailureError(f"Kafka at {servers} refuses the message to '{topic}': {error.str()}")
