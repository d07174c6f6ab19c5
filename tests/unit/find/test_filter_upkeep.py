"""Upkeep of filters of ids: when it runs, and what it does after an error."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
import structlog

from engine.errors import UnreachableError
from engine.find import filter_upkeep
from engine.find.filter_upkeep import FilterUpkeep
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
