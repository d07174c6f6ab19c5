"""The journal's tail, read by a client whose consumer group Kafka refuses."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from engine.kafka.clients import KafkaClients
from engine.router import lag
from engine.router.lag import LagSampler
from routes.config import loads

if TYPE_CHECKING:
    import pytest

_CONFIG = loads(
    "bridge.id=b1\nsource.s.type=stomp\nsource.s.destinations=queue:a\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
)
_CLIENTS = KafkaClients(_CONFIG.kafka_access)


class _Event:
    def __init__(self, code: int | None, partition: int = -1, offset: int = 0) -> None:
        self._code, self._partition, self._offset = code, partition, offset

    def error(self) -> KafkaError | None:
        return None if self._code is None else KafkaError(self._code)

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset


class _Consumer:
    def __init__(self, *events: _Event) -> None:
        self._events = deque(events)

    def assign(self, _: list[Any]) -> None:
        pass

    def pause(self, _: list[Any]) -> None:
        pass

    def poll(self, _: float) -> _Event | None:
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        pass


class _Kafka:
    """Answers of a Kafka whose journal has five offsets behind the router, all of them markers."""

    def __init__(self, partitions: int = 1) -> None:
        self.end = 5
        self._partitions = partitions

    def ends(self, topics: list[str], *, committed: bool = False) -> dict[str, dict[int, int]]:
        return {topic: dict.fromkeys(range(self._partitions), self.end) for topic in topics}

    def partitions(self, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 1)


def test_a_refused_group_does_not_hide_the_end_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, end = _Event(KafkaError.GROUP_AUTHORIZATION_FAILED), _Event(KafkaError._PARTITION_EOF, 0, 5)
    monkeypatch.setattr(KafkaClients, "consumer", lambda *_: _Consumer(refused, end))
    sampler = LagSampler(_Kafka(), _CLIENTS, _CONFIG.journal.topic, [], {0: 0}, interval_seconds=3600)  # type: ignore[arg-type]
    try:
        for _ in range(3):
            sampler.sample()

        assert sampler.lag({0: 0}, {}).total == 0
    finally:
        sampler.close()


def test_one_client_reads_the_tails_of_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    count, clients = 10_000, []
    ends = [_Event(KafkaError._PARTITION_EOF, partition, 5) for partition in range(1, count)]

    def client(*_: object) -> _Consumer:
        clients.append(_Consumer(_Event(None, 0, 3), *ends))
        return clients[-1]

    monkeypatch.setattr(KafkaClients, "consumer", client)
    positions = dict.fromkeys(range(count), 0)
    sampler = LagSampler(_Kafka(count), _CLIENTS, _CONFIG.journal.topic, [], positions, interval_seconds=3600)  # type: ignore[arg-type]
    try:
        for _ in range(4):
            sampler.sample()

        assert sampler.lag(positions, {}).total == 5
        assert len(clients) == 1
    finally:
        sampler.close()


def test_a_partition_keeps_few_bytes_for_each_of_its_samples() -> None:
    partition = lag._Partition()
    for sample in range(10_000):
        partition.note(sample, sample)
    kept = len(partition.ends)
    assert len(partition.times) == kept < 1_000
    # Tuples of time and end took 120 bytes each, 0.8 GB with 10,000 partitions.
    assert sys.getsizeof(partition.times) + sys.getsizeof(partition.ends) < 30 * kept


def test_the_age_of_a_record_is_that_of_the_first_sample_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    kafka = _Kafka()
    sampler = LagSampler(kafka, _CLIENTS, _CONFIG.journal.topic, [], {0: 0}, interval_seconds=3600)  # type: ignore[arg-type]
    try:
        for end in (5_000, 6_000, 7_000):
            kafka.end, now = end, now + 10
            sampler.sample()

        assert [sampler.lag({0: at}, {}).seconds for at in (4_999, 5_000, 5_999, 6_999, 7_000)] == [20, 10, 10, 0, 0]
    finally:
        sampler.close()
