"""Starts of earlier generations: kept in Kafka, and told apart by the records that each routed."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kafka.clients import KafkaClients
from engine.message import Record
from engine.router import position_store
from engine.router.generation import Generation, Start
from engine.router.past_routes import configuration_of, generation_of
from engine.router.position_store import NotedStart, PositionStore
from engine.seals import SealKeys
from routes.config import loads
from routes.errors import ConfigurationError
from tests.unit.kafka.reader_stand_in import ReaderStandIn

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers=127.0.0.1:1
source.s.type=nats
source.s.url=nats://127.0.0.1:1
source.s.destinations=in
routes.r.in.include=TRUE
routes.r.out.topic=out
"""
KEYS, OTHERS = SealKeys(b"ours", "b1"), SealKeys(b"theirs", "b1")


def start(number: int, position: int, routes: str = "") -> Start:
    """A generation that continues the one with the number before."""
    run, before = f"run {number}", f"run {number - 1}"
    return Start("jms-bridge.journal", "id", {0: position}, {}, "b1", routes, run, before, KEYS.id, number)


def noted(*starts: Start) -> list[NotedStart]:
    return [NotedStart(each, 0) for each in starts]


class StateTopic:
    """A compacted topic in memory."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records: dict[bytes, Record] = {}
        config = loads(CONFIGURATION)
        self.store: Any = PositionStore(KafkaClients(config.kafka_access), config.bridge_id, config.journal)
        self.store.write = lambda *_: None
        topic = self

        class Reader(ReaderStandIn):
            def present(self) -> list[Any]:
                return [type("Located", (), {"record": each}) for each in topic.records.values()]

        monkeypatch.setattr(position_store, "KafkaTopicReader", Reader)

    def begin(self, begun: Start, keys: SealKeys | None = KEYS) -> None:
        self.store._waiting.clear()
        self.store.begin(Generation(Path("checkpoint/1"), begun), keys)
        for name, value in self.store._waiting.items():
            for key, part, headers in position_store._parts(self.store._key(name), value):
                self.records.pop(key, None)
                self.records[key] = Record(key, part, tuple((each, str(text).encode()) for each, text in headers))

    def sequences(self, *keys: SealKeys, journal_id: str = "id") -> list[int]:
        return [each.start.sequence for each in self.store.starts(keys, journal_id)]


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> StateTopic:
    return StateTopic(monkeypatch)


def test_the_last_generations_are_kept_whole_and_in_order(topic: StateTopic) -> None:
    for number in range(1, 41):
        topic.begin(start(number, number, "x" * 100_000 if number % 3 else "short"))
    assert topic.sequences(KEYS) == list(range(9, 41))
    assert topic.store.starts([KEYS])[-1].start == start(40, 40, "x" * 100_000)
    assert topic.store.read([KEYS]).progress.start == start(40, 40, "x" * 100_000)


def test_starts_without_a_seal_count_only_where_none_has_one(topic: StateTopic) -> None:
    topic.begin(start(1, 1), None)
    assert topic.sequences(KEYS) == topic.sequences() == [1]
    topic.begin(start(2, 2))
    assert topic.sequences(KEYS) == [2]
    assert topic.sequences(OTHERS) == [1, 2]


def test_starts_of_a_former_journal_and_damaged_ones_are_left_out(topic: StateTopic) -> None:
    topic.begin(replace(start(1, 1), journal_id="former"))
    topic.begin(start(2, 2))
    topic.records[b"b1 jms-bridge.journal kept 7"] = Record(b"b1 jms-bridge.journal kept 7", b"{", ())
    note = json.dumps({"version": 1, **asdict(start(3, 3)), "positions": 5}).encode()
    topic.records[b"b1 jms-bridge.journal kept 8"] = Record(b"b1 jms-bridge.journal kept 8", note, ())
    assert topic.sequences(KEYS) == topic.sequences() == [2]


def test_a_record_belongs_to_the_last_generation_that_began_before_it() -> None:
    starts = noted(start(1, 0), start(2, 10), start(3, 10), start(4, 30))
    found = [generation_of(starts, 0, offset) for offset in (0, 9, 10, 29, 30, 1000)]
    assert [each and each.start.sequence for each in found] == [1, 1, 3, 3, 4, 4]


def test_no_generation_is_named_where_one_is_missing() -> None:
    starts = noted(start(3, 10), start(5, 30))
    assert [generation_of(starts, 0, offset) is None for offset in (9, 10, 29, 30)] == [True, True, True, False]
    assert generation_of([], 0, 5) is None


@given(st.lists(st.integers(0, 100), min_size=1, max_size=10), st.integers(0, 120))
def test_a_record_is_never_older_than_its_generation_nor_newer_than_the_next(sizes: list[int], offset: int) -> None:
    positions = [sum(sizes[:number]) for number in range(len(sizes))]
    starts = noted(*(start(number, at) for number, at in enumerate(positions, 1)))
    found = generation_of(starts, 0, offset)
    assert found is not None
    ends = [each.start.positions[0] for each in starts if each.start.sequence > found.start.sequence]
    assert found.start.positions[0] <= offset
    assert all(offset < end for end in ends)


def test_the_configuration_of_a_generation_has_its_routes_and_the_rest_of_the_present_one() -> None:
    present = loads(CONFIGURATION + "journal.retention=3d\n")
    then = configuration_of(start(1, 0, CONFIGURATION.replace("=out", "=then")), present)
    assert [each.target.topic for each in then.publications] == ["then"]
    assert then.journal == present.journal
    with pytest.raises(ConfigurationError):
        configuration_of(start(1, 0, "routes.r.in.include=(\n"), present)
