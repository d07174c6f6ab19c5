"""An admin client and offsets of a Kafka that stops answering, or loses a topic, between two questions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine.errors import UnreachableError
from engine.kafka import offsets
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import KafkaOffsets, Topics, offset_summary
from routes.config import loads

CONFIG = loads(
    "bridge.id=b1\nkafka.bootstrap.servers=127.0.0.1:1\nsource.s.type=stomp\nsource.s.destinations=queue:a\n"
    "routes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
)
CLIENTS = KafkaClients(CONFIG.kafka_access)


class Answering:
    """An admin client that answers one question and no more."""

    def __init__(self) -> None:
        self._answers = 1

    def list_topics(self, timeout: float) -> Any:
        if not self._answers:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self._answers -= 1
        return SimpleNamespace(brokers={1: None}, topics={}, cluster_id="c")


@pytest.mark.parametrize("ask", [Cluster.offsets_kept_ms, Cluster.brokers, Cluster.names])
def test_a_kafka_that_stops_answering_is_unreachable(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaClients, "admin", lambda *_: Answering())
    asked = Cluster(CLIENTS, 5)
    with pytest.raises(UnreachableError, match=r"^no Kafka at 127\.0\.0\.1:1 for 5 s"):
        ask(asked)


def test_a_topic_that_vanishes_between_two_questions_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Topics] = [
        {"a": {0: 4, 1: -1}, "gone": {0: 7}, "less": {0: -1, 1: 5}},
        {"a": {0: 9, 1: 8}, "less": {0: 6}},
    ]
    monkeypatch.setattr(KafkaOffsets, "_offsets", lambda *_: answers.pop(0))
    monkeypatch.setattr(KafkaClients, "admin", lambda *_: None)
    assert KafkaOffsets(CLIENTS).since(["a", "gone", "less"], 1) == {
        "a": {0: 4, 1: 8},
        "less": {0: 6},
    }


def test_an_error_about_a_thousand_topics_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(KafkaClients, "admin", lambda *_: None)
    monkeypatch.setattr(offsets, "describe", describe)
    topics = [f"department-{number:04}" for number in range(1_000)]
    with pytest.raises(
        KafkaUnavailableError, match=r"topic 'department-0000', .*'department-0004' and 995 more: "
    ) as found:
        KafkaOffsets(CLIENTS).partitions(topics)
    assert len(str(found.value)) < 300
    with pytest.raises(KafkaUnavailableError, match="topic 'a': "):
        KafkaOffsets(CLIENTS).partitions(["a"])


def test_a_line_about_offsets_is_short_for_any_number_of_partitions() -> None:
    assert offset_summary({1: 5, 0: 7}) == {"positions": "0: 7, 1: 5", "partitions": 2, "records": 12}
    many = offset_summary(dict.fromkeys(range(10_000), 10**12))
    assert many["positions"] == ", ".join(f"{each}: {10**12}" for each in range(5)) + " and 9995 more"
    assert (many["partitions"], many["records"]) == (10_000, 10**16)
