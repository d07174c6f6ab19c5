"""Upkeep of filters of ids: when it runs, and what it does after an error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import ClassVar, Self

import pytest
import structlog

from engine.errors import HardFailureError, UnreachableError
from engine.find import filter_upkeep
from engine.find.filter_upkeep import FilterUpkeep
from engine.find.id_filters import IdFilters
from engine.find.stretches import PIECE, Piece
from routes.config import loads
from routes.model import Config
from tests.unit.find.memory import CONFIGURATION


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when filters would be written."""
    event = Event()

    def write(_: FilterUpkeep, __: Config) -> int:
        event.set()
        raise UnreachableError("Kafka does not answer")

    monkeypatch.setattr(filter_upkeep, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(FilterUpkeep, "write", write)
    return event


def test_the_same_trouble_is_told_once(written: Event) -> None:
    config = loads(CONFIGURATION, base=Path())
    with structlog.testing.capture_logs() as logged, FilterUpkeep(lambda: config, lambda: True):
        for _ in range(3):
            assert written.wait(5)
            written.clear()
    assert [line["why"] for line in logged] == ["Kafka does not answer"]


@pytest.mark.parametrize(("more", "wanted"), [("find.filters=searches\n", True), ("", False)])
def test_nothing_is_written_beside_searches_alone_or_by_a_bridge_that_does_not_lead(
    written: Event, more: str, wanted: bool
) -> None:
    config = loads(CONFIGURATION + more, base=Path())
    with FilterUpkeep(lambda: config, lambda: wanted):
        assert not written.wait(0.2)


class Refusing:
    """Stands in for a scanner that may not read the journal."""

    read: ClassVar[list[str]] = []

    def __init__(self, *_: object, calm: bool) -> None:
        assert calm

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to end."""

    def scan(self, pieces: list[Piece], *_: object) -> Iterator[object]:
        self.read.append(pieces[0].topic)
        if pieces[0].topic == "journal":
            raise HardFailureError("Kafka refuses")
        yield from ()


def test_a_topic_that_may_not_be_read_is_left_out_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Offsets:
        def __init__(self, _: object) -> None:
            self.starts = self.ends = lambda *_, **__: {}

    filters = IdFilters(tmp_path / "find", {"journal": "a", "orders": "b"})
    assert filters.prepare({})
    monkeypatch.setattr(filter_upkeep, "KafkaOffsets", Offsets)
    monkeypatch.setattr(filter_upkeep, "Scanner", Refusing)
    monkeypatch.setattr(IdFilters, "opened", lambda *_: filters)
    monkeypatch.setattr(IdFilters, "missing", lambda *_: [Piece(topic, 0, 0, PIECE) for topic in ("journal", "orders")])
    config = loads(CONFIGURATION, base=tmp_path)
    upkeep = FilterUpkeep(lambda: config, lambda: True)
    with pytest.raises(HardFailureError):
        upkeep.write(config)
    assert upkeep.write(config) == 1
    assert Refusing.read == ["journal", "orders"]
