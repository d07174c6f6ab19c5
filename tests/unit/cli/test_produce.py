"""`send` to Kafka: an error says how many messages arrived, and a server that starts is waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from engine.cli import produce
from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import propagation_seconds
from engine.kafka.errors import unanswered
from engine.record import Record
from routes.config import loads

START = (
    "bridge.id=b\nsource.s.type=stomp\nsource.s.destinations=queue:q\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
)
EXTERNAL = "kafka.bootstrap.servers=h:9092\nembedded=off\nsource.s.url=stomp://h:61613\n"
STARTING = KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
MISSING = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
REFUSED = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


class Client:
    """A producer that confirms the first messages, answers the next ones with an error, and leaves the others open."""

    def __init__(self, confirmed: int, error: KafkaError | None, topic_errors: list[KafkaError]) -> None:
        self.confirmed, self.error = confirmed, error
        self.topic_errors = topic_errors
        self.asked = 0
        self.sent: list[Callable[..., None]] = []

    def list_topics(self, topic: str, timeout: float) -> Any:
        self.asked += 1
        error = self.topic_errors.pop(0) if self.topic_errors else None
        return SimpleNamespace(topics={topic: SimpleNamespace(error=error)})

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **_: object) -> None:
        self.sent.append(on_delivery)

    def poll(self, seconds: float) -> int:
        return 0

    def flush(self, seconds: float) -> int:
        message = SimpleNamespace(topic=lambda: "t", partition=lambda: 0, offset=lambda: 7)
        for done in self.sent[: self.confirmed]:
            done(None, message)
        for done in self.sent[self.confirmed :][:1] if self.error else ():
            done(self.error, message)
        return len(self.sent) - self.confirmed


@pytest.fixture
def send(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    monkeypatch.setattr(produce, "_PAUSE_SECONDS", 0.001)

    def call(client: Client, count: int, more: str = "") -> str:
        monkeypatch.setattr(KafkaClients, "producer", lambda *_: client)
        return produce.send(loads(START + more, Path()).kafka_access, "t", Record(None, b"x", ()), count)

    return call


def test_what_is_not_confirmed_is_counted(send: Callable[..., str]) -> None:
    with pytest.raises(UnreachableError) as caught:
        send(Client(4_000, None, []), 5_000)
    assert ", after 4000 of 5000 messages; 1000 more were sent, and may have arrived" in str(caught.value)


def test_a_refusal_tells_the_same(send: Callable[..., str]) -> None:
    with pytest.raises(HardFailureError, match=r"after 2 of 5 messages; 3 more were sent, and may have arrived$"):
        send(Client(2, REFUSED, []), 5)
    with pytest.raises(HardFailureError) as caught:
        send(Client(0, REFUSED, []), 1)
    assert "after" not in str(caught.value)


def test_a_broker_that_is_starting_is_waited_for(send: Callable[..., str]) -> None:
    client = Client(1, None, [STARTING, MISSING, STARTING])
    assert send(client, 1) == "t:0:7"
    assert client.asked == 4


def test_a_topic_that_another_kafka_lacks_is_told_at_once(send: Callable[..., str]) -> None:
    client = Client(1, None, [MISSING])
    with pytest.raises(HardFailureError):
        send(client, 1, EXTERNAL)
    assert client.asked == 1


def test_a_broker_that_is_not_ready_is_not_told_to_be_missing() -> None:
    assert "is still starting, or moves partitions (topic 't': " in str(unanswered("h:1", STARTING, "topic 't'"))
    assert str(unanswered("h:1", KafkaError(KafkaError._TRANSPORT))).endswith("is it running?")


def test_the_embedded_kafka_gets_time_to_read_its_topics() -> None:
    assert propagation_seconds(loads(START, Path()).kafka_access) >= 30
    assert propagation_seconds(loads(START + EXTERNAL, Path()).kafka_access) < 5
