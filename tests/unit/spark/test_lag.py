"""The journal's tail, read by a client whose consumer group Kafka refuses."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError

from engine.spark import lag
from engine.spark.lag import LagSampler
from routes.config import loads

if TYPE_CHECKING:
    import pytest

_CONFIG = loads(
    "bridge.id=b1\nsource.s.type=stomp\nsource.s.destinations=queue:a\nroutes.r.in.include=TRUE\nroutes.r.out.topic=t\n"
)


class _Event:
    def __init__(self, code: int, offset: int = 0) -> None:
        self._code, self._offset = code, offset

    def error(self) -> KafkaError:
        return KafkaError(self._code)

    def offset(self) -> int:
        return self._offset


class _Consumer:
    def __init__(self, *events: _Event) -> None:
        self._events = deque(events)

    def assign(self, _: list[Any]) -> None:
        pass

    def poll(self, _: float) -> _Event | None:
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        pass


class _Kafka:
    """Answers of a Kafka whose journal has five offsets behind the router, all of them markers."""

    def ends(self, topics: list[str], *, committed: bool = False) -> dict[str, dict[int, int]]:
        return {topic: {0: 5} for topic in topics}

    def partitions(self, topics: list[str]) -> dict[str, int]:
        return dict.fromkeys(topics, 1)


def test_a_refused_group_does_not_hide_the_end_of_the_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    refused, end = _Event(KafkaError.GROUP_AUTHORIZATION_FAILED), _Event(KafkaError._PARTITION_EOF, offset=5)
    monkeypatch.setattr(lag, "consumer", lambda *_: _Consumer(refused, end))
    sampler = LagSampler(_Kafka(), _CONFIG, [], {0: 0}, interval_seconds=3600)  # type: ignore[arg-type]
    try:
        for _ in range(3):
            sampler.sample()

        assert sampler.lag({0: 0}, {}).total == 0
    finally:
        sampler.close()
