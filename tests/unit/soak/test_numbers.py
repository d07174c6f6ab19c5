"""Counting in bounded memory sees what is lost, doubled, reordered or invented, and nothing else."""

from __future__ import annotations

import pytest

from tests.chaos.ledger import SOURCES, Number
from tests.soak.numbers import Arrivals, RunningLedger, is_for_topic

COUNT = 640


@pytest.fixture
def ledger() -> RunningLedger:
    return RunningLedger()


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def sent(ledger: RunningLedger, source: str) -> list[Number]:
    """What has to arrive in the topic; all of it acknowledged."""
    numbers = ledger.issue(source, COUNT)
    for number in numbers:
        ledger.acknowledge(number)
    return [number for number in numbers if is_for_topic(number)]


def arrive(numbers: list[Number]) -> Arrivals:
    found = Arrivals()
    for number in numbers:
        found.add(number)
    return found


def test_all_is_well(ledger: RunningLedger, source: str) -> None:
    found = arrive(sent(ledger, source))
    assert (found.twice, found.reordered, found.unknown, found.lost(ledger, source)) == (0, 0, 0, [])
    assert not found.missing
    assert not ledger.open[source]
    assert ledger.issued(source) == COUNT


@pytest.mark.parametrize("at", [0, 17, -1])
def test_a_lost_message_is_named_wherever_it_is_missing(ledger: RunningLedger, source: str, at: int) -> None:
    numbers = sent(ledger, source)
    lost = numbers.pop(at)
    assert arrive(numbers).lost(ledger, source) == [lost]


def test_what_was_not_acknowledged_may_be_missing(ledger: RunningLedger, source: str) -> None:
    numbers = sent(ledger, source)
    ledger.open[source].add(numbers.pop(17))
    assert arrive(numbers).lost(ledger, source) == []


def test_a_message_that_comes_twice_counts(ledger: RunningLedger, source: str) -> None:
    numbers = sent(ledger, source)
    found = arrive([*numbers, numbers[3]])
    assert (found.twice, found.reordered) == (1, 0)


def test_a_message_behind_a_later_one_of_its_key_counts(ledger: RunningLedger, source: str) -> None:
    numbers = sent(ledger, source)
    late = numbers.pop(3)
    found = arrive([*numbers, late])
    assert (found.twice, found.reordered, found.lost(ledger, source)) == (0, 1, [])


def test_what_belongs_elsewhere_or_nowhere_counts() -> None:
    found = arrive([Number("stomp", 0, 1)])
    found.add(None)
    assert (found.unknown, found.count) == (2, 2)
