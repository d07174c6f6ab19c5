"""Figures of the benchmark of a large state, from its samples."""

from __future__ import annotations

import pytest

from bench.stream_state import between, cost_between, rate_between

SAMPLES = [
    {"seconds": seconds, "published": published, "cpu": 2 * seconds, "rss": rss}
    for seconds, published, rss in [(1.0, 10.0, 1.0), (2.0, 110.0, 2.0), (4.0, 210.0, 3.0), (5.0, 410.0, 4.0)]
]


def test_samples_are_those_beyond_the_lower_number_up_to_the_higher() -> None:
    assert [sample["rss"] for sample in between(SAMPLES, 110, 410)] == [3.0, 4.0]


def test_too_few_samples_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"no sample of memory from 211 to 409 records: take more --keys"):
        between(SAMPLES, 211, 409)


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 400, 100.0), (11, 111, 50.0), (111, 410, 200.0)])
def test_a_rate_is_that_between_the_first_samples_that_reach_the_numbers(low: int, high: int, expected: float) -> None:
    assert rate_between(SAMPLES, low, high) == pytest.approx(expected)


@pytest.mark.parametrize(("low", "high", "expected"), [(0, 400, 20_000.0), (111, 410, 10_000.0)])
def test_a_cost_is_the_cpu_time_for_a_million_records(low: int, high: int, expected: float) -> None:
    assert cost_between(SAMPLES, low, high) == pytest.approx(expected)
