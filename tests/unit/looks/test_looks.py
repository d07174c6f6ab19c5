"""Entries of the audit of looks, and which looks are written again."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UnreachableError
from engine.kafka.reader import Position
from engine.looks.log import LookLog, LookTopic, last_looks
from engine.looks.look import Look, LookWay
from routes.config.load import loads
from tests.unit.page.bridge import CONFIGURATION, NotedLooks

TOPIC = LookTopic.of(loads(CONFIGURATION))
POSITIONS = st.builds(
    Position,
    st.text(st.sampled_from("ab.-_9"), min_size=1, max_size=8),
    st.integers(0, 99),
    st.integers(0, 1 << 60),
)


def look(*offsets: int, user: str = "anna", way: str = LookWay.LIST, host: str = "10.0.0.1") -> Look:
    records = tuple(Position("orders", 0, offset) for offset in offsets)
    return Look("2026-11-28T12:00:00.000Z", user, "operator", host, way, False, records)


@given(
    st.builds(
        Look,
        st.just("2026-11-28T12:00:00.000Z"),
        st.text(),
        st.sampled_from(["viewer", "operator"]),
        st.text(),
        st.sampled_from(LookWay) | st.text(min_size=1),
        st.booleans(),
        st.lists(POSITIONS, max_size=5).map(tuple),
    )
)
def test_an_entry_is_read_as_it_was_written(entry: Look) -> None:
    assert Look.parse(entry.to_json().encode("utf-8", "surrogatepass")) == entry


@given(
    st.none() | st.binary() | st.sampled_from([b"{}", b"[]", b'{"time":"t","way":"w","records":["x"]}', b"[" * 9999])
)
def test_other_records_are_not_entries(value: bytes | None) -> None:
    assert Look.parse(value) is None


def test_a_list_that_is_loaded_again_is_noted_once() -> None:
    now, log = [0.0], NotedLooks()
    log._clock = lambda: now[0]

    def written(entry: Look, once: float = 600.0) -> list[list[int]]:
        log.looks.clear()
        log.write(TOPIC, entry, once_seconds=once)
        return [[each.offset for each in found.records] for found in log.looks]

    assert written(look(1, 2)) == [[1, 2]]
    now[0] += 2
    assert written(look(2, 3)) == [[3]]
    assert written(look(1, 2, 3)) == []
    assert written(look(1, user="eve")) == [[1]]
    assert written(look(1, host="10.0.0.2")) == [[1]]
    assert written(look(1, way=LookWay.RECORD), 0.0) == [[1]]
    assert written(look(1, way=LookWay.RECORD), 0.0) == [[1]]
    assert written(look()) == []
    now[0] += 599
    assert written(look(1, 2, 3)) == [[1, 2]]
    log.error = UnreachableError("no")
    for _ in range(2):
        with pytest.raises(UnreachableError):
            written(look(8))


def test_looks_are_remembered_in_bounded_memory() -> None:
    log = NotedLooks()
    for start in range(0, 30_000, 100):
        log.write(TOPIC, look(*range(start, start + 100)), once_seconds=600.0)
    assert len(log._seen) == 10_000


def test_a_kafka_that_is_not_there_is_told_in_seconds() -> None:
    topic = LookTopic.of(loads(CONFIGURATION + "journal.topic=j\nhttp.looks-retention=forever\n"))
    assert (topic.name, topic.retention_ms, topic.replication) == ("j.looks", -1, -1)
    began = time.monotonic()
    with pytest.raises(UnreachableError, match=r"no Kafka at 127\.0\.0\.1:1"):
        LookLog().write(topic, look(1))
    assert time.monotonic() - began < 4
    with pytest.raises(UnreachableError, match=r"no Kafka at 127\.0\.0\.1:1"):
        last_looks(topic, 5, 1.0)
