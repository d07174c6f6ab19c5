"""Lag as Kafka tells it: partitions that appear meanwhile, and answers with an error."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from engine import lag
from engine.delivery.deduplication.safe_offsets import SafeOffsets
from engine.kafka import clients, offsets
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import KafkaOffsets, committed_positions
from routes.config import loads

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from engine.kafka.retry import KafkaRetry

CONFIG = loads(
    """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:a
sink.n.type=stomp
routes.r.in.include=TRUE
routes.r.out.topic=n:queue/a
kafka.bootstrap.servers=127.0.0.1:1
"""
)
TOPIC = CONFIG.sinks[0].topic
FAILED = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


class Group:
    """A consumer whose group has committed offset 7 of partition 0, and whose partition 1 has an error."""

    def __init__(self, *_: Any) -> None: ...

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        errors = {0: (7, None), 1: (-1001, FAILED)}
        return [
            SimpleNamespace(partition=place.partition, offset=offset, error=error, metadata=None)
            for place in places
            for offset, error in (errors[place.partition],)
        ]

    def close(self) -> None: ...


class NoAnswer:
    """Asks Kafka once."""

    def result(self, ask: Any) -> Any:
        return ask()


class Offsets:
    """Offsets of a topic whose partition 1 was added between two requests."""

    def committed(self, group: str, topic: str, partitions: object) -> dict[int, int]:
        return {0: 7}

    def ends(self, topics: list[str], *, committed: bool) -> dict[str, dict[int, int]]:
        return {TOPIC: {0: 10, 1: 5}}

    def starts(self, topics: list[str]) -> dict[str, dict[int, int]]:
        return {TOPIC: {0: 4}}


def test_a_partition_without_a_known_start_begins_at_0() -> None:
    assert lag._sinks(CONFIG.bridge_id, CONFIG.sinks, cast("KafkaOffsets", Offsets())) == [
        lag.LagReport("sink:n", TOPIC, 3 + 5)
    ]


def test_an_error_of_one_partition_is_not_taken_for_no_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "Consumer", Group)
    monkeypatch.setattr(offsets, "_COORDINATOR_SECONDS", 0.5)
    kafka = KafkaOffsets(KafkaClients(CONFIG.kafka_access))
    assert kafka.committed("g", TOPIC, [0]) == {0: 7}
    with pytest.raises(KafkaUnavailableError, match=re.escape(FAILED.str())):
        kafka.committed("g", TOPIC, [0, 1])


def test_an_error_of_one_partition_is_not_taken_for_no_bookmark() -> None:
    consumer, retry = cast("Consumer", Group()), cast("KafkaRetry", NoAnswer())
    safe_offsets = SafeOffsets(KafkaClients(CONFIG.kafka_access), CONFIG.journal.topic, "b.source.s", 1, 1)
    try:
        safe_offsets._partitions = (0,)
        assert safe_offsets._positions(consumer, retry) == {0: 7}
        safe_offsets._partitions = (0, 1)
        with pytest.raises(KafkaException):
            safe_offsets._positions(consumer, retry)
    finally:
        safe_offsets.close()


def test_committed_positions_are_returned_in_order() -> None:
    (found,) = committed_positions(cast("Consumer", Group()), [cast("Any", SimpleNamespace(partition=0))], 1.0)
    assert found.offset == 7


def test_a_new_kafka_is_waited_for_until_it_has_a_topic_of_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR, None]

    def ask(*_: object) -> list[Any]:
        if code := answers.pop(0):
            raise KafkaException(KafkaError(code))
        return [SimpleNamespace(partition=0, offset=3)]

    monkeypatch.setattr(offsets, "committed_positions", ask)
    monkeypatch.setattr(KafkaClients, "consumer", lambda *_: SimpleNamespace(close=lambda: None))
    assert KafkaOffsets(KafkaClients(CONFIG.kafka_access)).committed("g", TOPIC, [0]) == {0: 3}
    assert answers == []


def test_no_client_asks_for_the_positions_of_a_group_in_the_way_that_ends_the_process() -> None:
    """`AdminClient.list_consumer_group_offsets` of confluent-kafka 2.16 has a segmentation fault on a new Kafka."""
    folder = Path(lag.__file__).parent
    assert [file for file in folder.rglob("*.py") if ".list_consumer_group_offsets(" in file.read_text("utf-8")] == []
