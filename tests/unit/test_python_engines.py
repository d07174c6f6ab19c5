"""Inputs of the comparison with stream processors for Python, and what counts as a result."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bench.python_engines.rule import FIELDS, scored
from bench.python_engines.workloads import WORKLOADS

COUNT, WARM_UP = 3_000, 300
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
BEGIN = 1_767_225_600_000


@pytest.mark.parametrize("name", WORKLOADS)
def test_an_input_is_the_same_in_every_run(name: str) -> None:
    records = WORKLOADS[name].records
    assert list(records(COUNT, WARM_UP)) == list(records(COUNT, WARM_UP))


def test_an_hour_of_event_time_follows_the_warm_up_and_a_day_the_last_events() -> None:
    times = [record.time - BEGIN for record in WORKLOADS["windows"].records(COUNT, WARM_UP)]
    assert max(times[:WARM_UP]) < 60_000
    assert times[WARM_UP] == HOUR_MS + 60_000
    assert [at for at, time in enumerate(times) if time == DAY_MS] == list(range(COUNT - 500, COUNT))


def test_the_last_events_have_each_key_once_and_keys_stay_in_their_partitions() -> None:
    records = list(WORKLOADS["windows"].records(COUNT, WARM_UP))
    assert len({record.key for record in records[-500:]}) == 500
    assert len({(record.key, record.partition) for record in records}) == 500


def test_an_event_has_its_key_and_its_time_in_its_value() -> None:
    for record in WORKLOADS["function"].records(COUNT, WARM_UP):
        value = json.loads(record.value)
        assert (value["key"], value["time"]) == (record.key, record.time)


def test_words_are_counted() -> None:
    workload = WORKLOADS["words"]
    expected = workload.expected(workload.records(COUNT, WARM_UP))
    assert expected.total() == 8 * COUNT


def test_windows_of_the_last_events_are_left_out() -> None:
    workload = WORKLOADS["windows"]
    expected = workload.expected(workload.records(COUNT, WARM_UP))
    assert expected.total() == COUNT - 500
    # Windows of ten seconds in a minute of warm-up, and in the eight that follow before the last events.
    assert {start - BEGIN for _, start in expected} == {
        *range(0, 60_000, 10_000),
        *range(HOUR_MS + 60_000, HOUR_MS + 500_000, 10_000),
    }


def test_of_a_count_the_greatest_is_the_result() -> None:
    workload = WORKLOADS["windows"]
    values = [
        {"key": "a", "start": BEGIN, "count": 2},
        {"key": "a", "start": BEGIN, "count": 5},
        {"key": "a", "start": BEGIN, "count": 3},
        {"key": "b", "start": BEGIN, "count": 1},
        {"key": "b", "start": BEGIN + DAY_MS, "count": 1},
    ]
    assert workload.results(values) == {("a", BEGIN): 5, ("b", BEGIN): 1}


def test_of_a_function_each_record_is_a_result() -> None:
    made = dict(zip(FIELDS, scored(" Ann ", "https://shop.example.com/a", 100), strict=True))
    row = ("ann", "shop.example.com", 119, "plain")
    assert WORKLOADS["function"].results([made, made]) == Counter({row: 2})


@pytest.mark.parametrize(("cents", "level"), [(0, "plain"), (8_404, "silver"), (84_034, "gold")])
def test_the_level_is_that_of_the_amount_with_tax(cents: int, level: str) -> None:
    assert scored("ann", "https://shop.example.com/a", cents)[3] == level
