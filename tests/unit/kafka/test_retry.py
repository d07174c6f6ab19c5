"""Tests which answers of Kafka a source asks for again."""

from __future__ import annotations

from threading import Event

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.kafka.journal import JournalError
from engine.kafka.retry import KafkaRetry
from routes.config import loads


class Answers:
    """A request that Kafka refuses for several reasons before it answers."""

    def __init__(self, *codes: int) -> None:
        self._codes = list(codes)

    def __call__(self) -> str:
        if self._codes:
            raise KafkaException(KafkaError(self._codes.pop(0)))
        return "answered"


def retry() -> KafkaRetry:
    config = loads("bridge.id=b\nroutes.a.in.include=a='b'\nroutes.a.out.topic=t\n")
    return KafkaRetry(config.kafka_access, config.journal.topic, Event(), tend, tend)


def tend() -> None:
    """Does nothing, as a source whose broker needs no heart-beats."""


def test_a_leader_that_a_broker_does_not_know_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    asked = Answers(KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError.NETWORK_EXCEPTION)
    assert retry().result(asked) == "answered"


def test_another_refusal_ends_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(JournalError):
        retry().result(Answers(KafkaError.INVALID_REQUEST))
