"""Paging through a topic: every record once, by filters, whatever the times and the gaps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.find import browse as module
from engine.find.browse import Browsed, RecordFilter, browse
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message
from engine.page import asked
from routes.predicate import parse

Topic = Mapping[int, Mapping[int, LocatedRecord]]
ACCESS: Any = None


def record(partition: int, offset: int, time_ms: int, body: bytes = b"x") -> LocatedRecord:
    message = Message(body, BodyType.TEXT, {}, {})
    return LocatedRecord(Position("t", partition, offset), time_ms, message.to_record())


class Kafka:
    """Records by partition and offset; offsets may be missing."""

    topic: ClassVar[Topic] = {}
    seconds = 0.0

    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> Kafka:
        return self

    def __exit__(self, *_: object) -> None: ...

    def bounds(self) -> dict[int, tuple[int, int]]:
        return {p: (min(records, default=0), max(records, default=-1) + 3) for p, records in self.topic.items()}

    def read(self, starts: Mapping[int, int], ends: Mapping[int, int]) -> Iterator[LocatedRecord]:
        for partition, start in starts.items():
            for offset, each in sorted(self.topic[partition].items()):
                if start <= offset < ends[partition]:
                    time.sleep(self.seconds)
                    yield each


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KafkaTopicReader", Kafka)
    monkeypatch.setattr(module, "_STEP", 2)
    monkeypatch.setattr(Kafka, "seconds", 0.0)


def pages(takes: RecordFilter, count: int, seconds: float = 60) -> Iterator[Browsed]:
    before: Mapping[int, int] = {}
    while True:
        # As the URL has it.
        page = browse(ACCESS, "t", takes, count, seconds, asked.offsets("before", asked.offsets_text(before)))
        yield page
        if not page.older:
            return
        assert page.older != before
        before = page.older


topics = st.dictionaries(
    st.integers(0, 3), st.dictionaries(st.integers(0, 60), st.integers(0, 9), max_size=30), max_size=3
).map(lambda of: {p: {o: record(p, o, at, b"%d" % (o % 3)) for o, at in each.items()} for p, each in of.items()})


@given(topics, st.integers(1, 7), st.sampled_from([None, "msg.text = '1'"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_pages_have_every_record_once_and_each_partition_backwards(
    topic: Topic, count: int, where: str | None
) -> None:
    Kafka.topic = topic
    found = [list(page.records) for page in pages(RecordFilter(where=parse(where) if where else None), count)]
    assert all(len(page) == count for page in found[:-2])
    at = [each.located.position for page in found for each in page]
    wanted = {
        each.position for of in topic.values() for each in of.values() if where is None or each.record.value == b"1"
    }
    assert sorted(at) == sorted(wanted)
    for partition in topic:
        offsets = [each.offset for each in at if each.partition == partition]
        assert offsets == sorted(offsets, reverse=True)


def test_the_newest_of_all_partitions_come_first() -> None:
    Kafka.topic = {0: {n: record(0, n, n) for n in range(50)}, 1: {n: record(1, n, 100 * n) for n in range(50)}}
    page = next(pages(RecordFilter(), 50))
    times = [each.located.time_ms for each in page.records]
    assert times == sorted([*range(50), *(100 * n for n in range(50))], reverse=True)[:50]
    assert page.in_time


def test_when_the_time_is_over_the_next_page_goes_on() -> None:
    Kafka.topic = {0: {n: record(0, n, n, b"%d" % n) for n in range(30)}}
    Kafka.seconds = 0.01
    takes = RecordFilter(where=parse("msg.text = '3'"))
    found = list(pages(takes, 5, seconds=0.06))
    assert not found[0].in_time
    assert [each.located.position.offset for page in found for each in page.records] == [3]


def test_a_page_goes_on_however_little_its_time_is() -> None:
    Kafka.topic = {0: {n: record(0, n, n) for n in range(9)}}
    Kafka.seconds = 0.002
    found = list(pages(RecordFilter(), 5, seconds=0.001))
    assert [each.located.position.offset for page in found for each in page.records] == [*reversed(range(9))]


def test_a_long_body_is_cut_and_its_size_is_told() -> None:
    Kafka.topic = {0: {0: record(0, 0, 0, b"x" * 100_000)}}
    (each,) = next(pages(RecordFilter(), 5)).records
    assert each.size == 100_000
    assert len(each.located.record.value or b"") == 65536
