"""The reader of a topic, with a stand-in for Kafka's client."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from engine.errors import UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import KafkaTopicReader
from routes.kafka_access import KafkaAccess

ACCESS = KafkaAccess(
    servers="127.0.0.1:9",
    client_id="test",
    common={},
    producer={},
    consumer={},
    file=Path("jms-bridge.properties"),
    max_message_bytes=1_000_000,
    outage_timeout_seconds=60,
)


class Client:
    """Answers for a topic of one partition, whose leader is away for some requests."""

    def __init__(self, requests_without_leader: int) -> None:
        self.left = requests_without_leader

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> tuple[int, int]:
        self.left -= 1
        if self.left >= 0:
            raise KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION))
        return 3, 17

    def close(self) -> None:
        pass


def bounds(monkeypatch: pytest.MonkeyPatch, client: Client, answer_seconds: float) -> dict[int, tuple[int, int]]:
    monkeypatch.setattr(KafkaClients, "consumer", lambda *_: client)
    with KafkaTopicReader(KafkaClients(ACCESS), "orders", answer_seconds) as topic:
        return topic.bounds()


def test_a_partition_between_two_leaders_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounds(monkeypatch, Client(2), 10) == {0: (3, 17)}


def test_a_partition_without_a_leader_is_an_error_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnreachableError, match="does not answer"):
        bounds(monkeypatch, Client(1000), 0.3)
