"""Stand-ins for the Kafka that pages of messages ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pytest

from engine.errors import UsageError
from engine.find import browse
from engine.find.timeline import Timeline, TimelineEvent
from engine.kafka.offsets import PartitionSpan
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message
from engine.page import messages

__all__ = ["HOSTILE", "KafkaRecords", "TopicRecords", "located"]

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J\u202e"


def located(
    topic: str, offset: int, body: bytes = b"hello", headers: Iterable[tuple[str, bytes]] = (), **fields: str
) -> LocatedRecord:
    """A record in partition 0, at a time that its offset tells."""
    kind = BodyType.of(body)
    record = Message(body, kind, {"JMSMessageID": f"ID:{offset}", "JMSDestination": "queue:orders", **fields}, {}, "s")
    made = record.to_record()
    made = type(made)(made.key, made.value, (*made.headers, *headers))
    return LocatedRecord(Position(topic, 0, offset), 1_790_000_000_000 + offset, made)


class KafkaRecords:
    """Records by topic, each topic with one partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topics: dict[str, list[LocatedRecord]] = {}
        self.error: Exception | None = None
        self.events: tuple[TimelineEvent, ...] = ()
        self.untold: Exception | None = None
        for module in (messages, browse):
            monkeypatch.setattr(module, "KafkaTopicReader", lambda _, topic, *__: TopicRecords(self, topic))
        monkeypatch.setattr(messages, "KafkaOffsets", lambda _: self)
        monkeypatch.setattr(messages, "timeline", self.timeline)

    def put(self, topic: str, *records: LocatedRecord) -> None:
        """Adds records to a topic."""
        self.topics.setdefault(topic, []).extend(records)

    def timeline(self, _: object, position: Position) -> Timeline:
        found = TopicRecords(self, position.topic).at(position.partition, position.offset)
        if self.untold:
            raise self.untold
        return Timeline(found, self.events)

    def spans(self, topics: Iterable[str]) -> dict[str, dict[int, PartitionSpan]]:
        if self.error:
            raise self.error
        return {
            topic: {0: PartitionSpan(3, 3 + len(self.topics[topic]), 1_790_000_000_000, None)}
            for topic in topics
            if topic in self.topics
        }


class TopicRecords:
    """Reader of one topic."""

    def __init__(self, kafka: KafkaRecords, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic

    def __enter__(self) -> TopicRecords:
        if self._kafka.error:
            raise self._kafka.error
        if self._topic not in self._kafka.topics:
            msg = f"topic '{self._topic}' does not exist"
            raise UsageError(msg)
        return self

    def __exit__(self, *_: object) -> None: ...

    @property
    def records(self) -> list[LocatedRecord]:
        return self._kafka.topics[self._topic]

    def bounds(self) -> dict[int, tuple[int, int]]:
        offsets = [each.position.offset for each in self.records]
        return {0: (min(offsets, default=0), max(offsets, default=-1) + 1)}

    def read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LocatedRecord]:
        return (each for each in self.records if starts[0] <= each.position.offset < ends[0])

    def at(self, partition: int, offset: int) -> LocatedRecord:
        for each in self.records:
            if each.position == Position(self._topic, partition, offset):
                return each
        msg = f"{self._topic}:{partition}:{offset}: no such record"
        raise UsageError(msg)
