"""Bounded look-ups: by time, with late and early timestamps, gaps, and honest words about their extent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.find.record_lookup import RecordLookup
from engine.kafka.clients import KafkaClients
from engine.kafka.partitions import partition_of
from engine.message import Record
from routes.config import loads
from tests.unit.find.memory import CONFIGURATION, MemoryKafka

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.kafka.reader import LocatedRecord

CLIENTS = KafkaClients(loads(CONFIGURATION).kafka_access)
NOON = 1_000_000


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemoryKafka:
    made = MemoryKafka()
    made.patch(monkeypatch)
    return made


def record(value: str) -> Record:
    return Record(None, value.encode(), ())


def having(value: str) -> Callable[[LocatedRecord], bool]:
    return lambda located: located.record.value == value.encode()


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From the tests of Kafka's own client.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_has_the_partition_of_java_clients(key: bytes, hashed: int) -> None:
    assert partition_of(key, 1 << 20) == (hashed & 0x7FFFFFFF) % (1 << 20)


@given(st.binary(), st.integers(1, 1000))
def test_each_key_has_a_partition(key: bytes, count: int) -> None:
    assert 0 <= partition_of(key, count) < count


def test_records_before_the_time_are_not_read(kafka: MemoryKafka) -> None:
    for n in range(100):
        kafka.add("out", record(f"old {n}"), NOON - 600_000)
    at = kafka.add("out", record("it"), NOON)
    found = RecordLookup(CLIENTS).look("out", NOON, having("it"))
    assert [each.position for each in found.found] == [at]
    assert kafka.read["out"] == 1


def test_a_record_of_a_slow_clock_is_found_in_the_minute_before(kafka: MemoryKafka) -> None:
    at = kafka.add("out", record("it"), NOON - 30_000)
    kafka.add("out", record("other"), NOON + 1)
    assert [each.position for each in RecordLookup(CLIENTS).look("out", NOON, having("it")).found] == [at]


def test_a_record_behind_one_with_a_later_time_is_found(kafka: MemoryKafka) -> None:
    kafka.add("out", record("other"), NOON + 900_000)
    at = kafka.add("out", record("it"), NOON)
    assert [each.position for each in RecordLookup(CLIENTS).look("out", NOON, having("it")).found] == [at]


def test_the_partition_of_the_key_is_read_first(kafka: MemoryKafka) -> None:
    own = partition_of(b"k", kafka.partitions)
    for n in range(50):
        kafka.add("out", record(f"{n}"), NOON, 1 - own)
    kafka.add("out", record("it"), NOON, own)
    found = RecordLookup(CLIENTS).look("out", NOON, having("it"), key=b"k", only_first=True)
    assert (len(found.found), found.read) == (1, 1)


def test_the_extent_says_where_the_reading_ended(kafka: MemoryKafka) -> None:
    for n in range(10):
        kafka.add("out", record(f"{n}"), NOON, offset=2 * n)
    found = RecordLookup(CLIENTS, most=4).look("out", NOON, having("it"))
    assert found.extent == (
        "among 4 records of 'out' from 1970-01-01T00:15:40.000Z on, and no further, the most that are read"
    )
    assert not found.is_complete
    # Offsets without a record are not counted as read.
    whole = RecordLookup(CLIENTS).look("out", NOON, having("it"))
    assert whole.extent == "among 10 records of 'out' from 1970-01-01T00:15:40.000Z on, to the end"


def test_removed_records_and_missing_topics_are_told(kafka: MemoryKafka) -> None:
    kafka.add("out", record("later"), NOON + 5, offset=17)
    found = RecordLookup(CLIENTS).look("out", NOON, having("it"))
    assert found.extent.endswith("to the end; retention has removed older ones")
    assert RecordLookup(CLIENTS).look("gone", NOON, having("it")).extent == "there is no topic 'gone'"
