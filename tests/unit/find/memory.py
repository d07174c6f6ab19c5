"""Topics in memory, in the place of Kafka's reader and offsets, for tests of searches."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from engine.dead_letters import audit
from engine.errors import UsageError
from engine.find import record_lookup
from engine.kafka.reader import LocatedRecord, Position
from engine.router import position_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pytest

    from engine.message import Record

__all__ = ["CONFIGURATION", "MemoryKafka"]

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
journal.topic=journal
routing.dead-letter-topic=dead
routing.on-soft-failure=dead-letter
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:orders
sink.jms.type=stomp
sink.jms.url=stomp://127.0.0.1:1
sink.jms.reply-to=queue:replies
sink.nats.type=nats
sink.nats.url=nats://127.0.0.1:2
sink.nats.reply-to=bridge.replies
routes.test.in.include=region = 'test'
routes.test.out.topic=test
routes.orders.in.include=msg.address==orders
routes.orders.out.topic=orders, nats:orders
routes.orders.conv.key=msg.header.CorrelationId
"""

Partition = list[LocatedRecord]


class MemoryKafka:
    """Topics of two partitions; each record has its place, so that offsets may have gaps."""

    partitions = 2

    def __init__(self) -> None:
        self.topics: dict[str, dict[int, Partition]] = {}
        self.committed: dict[tuple[str, str, int], int] = {}
        self.read: dict[str, int] = defaultdict(int)
        """Number of records read, by topic."""

    def add(self, topic: str, record: Record, time_ms: int, partition: int = 0, offset: int | None = None) -> Position:
        """Writes a record at the end of a partition, or at an offset behind it."""
        there = self.topics.setdefault(topic, {each: [] for each in range(self.partitions)})[partition]
        end = there[-1].position.offset + 1 if there else 0
        there.append(LocatedRecord(Position(topic, partition, end if offset is None else offset), time_ms, record))
        return there[-1].position

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Puts these topics in the place of Kafka's."""
        for module in (record_lookup, audit, position_store):
            monkeypatch.setattr(module, "KafkaTopicReader", lambda _, topic, **__: _Reader(self, topic))
        monkeypatch.setattr(record_lookup, "KafkaOffsets", lambda _: _Offsets(self))
        monkeypatch.setattr(audit, "exists", lambda _, topic: topic in self.topics)

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        found = self.topics.get(topic, {})
        return {
            each: (there[0].position.offset, there[-1].position.offset + 1) if there else (0, 0)
            for each, there in found.items()
        }


class _Reader:
    def __init__(self, kafka: MemoryKafka, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic

    def __enter__(self) -> _Reader:
        if self._topic not in self._kafka.topics:
            msg = f"topic '{self._topic}' does not exist"
            raise UsageError(msg)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def bounds(self) -> dict[int, tuple[int, int]]:
        return self._kafka.bounds(self._topic)

    def read(
        self, starts: Mapping[int, int] | None = None, ends: Mapping[int, int] | None = None
    ) -> Iterator[LocatedRecord]:
        for partition, records in self._kafka.topics[self._topic].items():
            if starts is not None and partition not in starts:
                continue
            first = 0
            if starts is not None:
                first = bisect_left(records, starts[partition], key=lambda each: each.position.offset)
            for each in records[first:]:
                if ends is not None and each.position.offset >= ends[partition]:
                    break
                self._kafka.read[self._topic] += 1
                yield each

    present = read

    def at(self, partition: int, offset: int) -> LocatedRecord:
        found = [each for each in self._kafka.topics[self._topic][partition] if each.position.offset == offset]
        if not found:
            msg = f"{self._topic}:{partition}:{offset}: no such record"
            raise UsageError(msg)
        return found[0]


class _Offsets:
    def __init__(self, kafka: MemoryKafka) -> None:
        self._kafka = kafka

    def identity(self, topic: str) -> str:
        return "id"

    def starts(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        return self._each(topics, lambda low, _, __: low)

    def ends(self, topics: Iterable[str], *, committed: bool = False) -> dict[str, dict[int, int]]:
        return self._each(topics, lambda _, high, __: high)

    def since(self, topics: Iterable[str], time_ms: int) -> dict[str, dict[int, int]]:
        def first(_: int, high: int, records: Partition) -> int:
            return next((each.position.offset for each in records if each.time_ms >= time_ms), high)

        return self._each(topics, first)

    def committed(self, group: str, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        known = self._kafka.committed
        return {each: known[group, topic, each] for each in partitions if (group, topic, each) in known}

    def _each(self, topics: Iterable[str], of: Any) -> dict[str, dict[int, int]]:
        known = self._kafka
        return {
            topic: {each: of(*known.bounds(topic)[each], there) for each, there in known.topics[topic].items()}
            for topic in topics
            if topic in known.topics
        }
