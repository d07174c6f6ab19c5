"""Arithmetic of the scale benchmark: its cases, and the figures that samples give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.scale import Case, Figures, Sample, cases, figures, pictures, quarters

MOST_BYTES = 2 << 30
THINGS = ("body_bytes", "partitions", "topics")


def samples(rates: list[float], memory: list[float]) -> list[Sample]:
    """A second for each rate, at half a CPU, after ten seconds of start with as much."""
    found = [Sample(0, 10.0, 5.0, memory[0])]
    for rate, resident in zip(rates, memory, strict=True):
        last = found[-1]
        found.append(Sample(last.routed + rate, last.seconds + 1, last.cpu_seconds + 0.5, resident))
    return found


def test_one_thing_grows_at_a_time() -> None:
    growing = cases(20_000_000)
    (usual,) = set(growing["size"]) & set(growing["partitions"]) & set(growing["topics"])
    for name, field in zip(("size", "partitions", "topics"), THINGS, strict=True):
        grown = [getattr(case, field) for case in growing[name]]
        assert grown == sorted(set(grown))
        for case in growing[name]:
            other = {each for each in THINGS if getattr(case, each) != getattr(usual, each)}
            assert other <= {field}
    assert growing["backlog"] == [Case(usual.body_bytes, usual.partitions, usual.topics, 20_000_000)]


@given(st.integers(1, 30_000_000))
def test_no_journal_but_the_backlog_is_large(backlog: int) -> None:
    growing = cases(backlog)
    (long,) = growing.pop("backlog")
    assert long.records == backlog
    for row in growing.values():
        for case in row:
            assert 0 < case.records <= backlog
            assert case.records * case.body_bytes <= MOST_BYTES


def test_figures_are_those_between_the_shares() -> None:
    found = figures(samples([100, 200, 200, 100, 400], [500, 600, 700, 600, 900]), (0.1, 0.6))
    assert found == Figures(rate=500 / 3, cpu_per_million=pytest.approx(3000), average_mb=600, peak_mb=700)


def test_a_share_between_two_samples_is_taken_in_proportion() -> None:
    found = figures(samples([100, 300], [500, 500]), (0.5, 1.0))
    assert found.rate == pytest.approx(300)
    assert found.cpu_per_million == pytest.approx(0.5 / 300 * 1e6)


def test_quarters_compare_the_end_with_the_time_after_the_start() -> None:
    rate, memory = quarters(samples([100, 100, 100, 50, 50], [400, 500, 500, 500, 600]))
    assert rate == pytest.approx(0.5)
    assert memory == pytest.approx(1.5)


def test_pictures_show_every_case_in_each_mode() -> None:
    run = samples([50_000] * 20, [900.0] * 20)
    found = {(case, mode): [run] for row in cases(1_000_000).values() for case in row for mode in ("batch", "realtime")}
    drawn = pictures(found, 1_000_000)
    assert {name: picture.count("<circle") for name, picture in drawn.items()} == {
        "size": 30,
        "partitions": 18,
        "topics": 18,
        "backlog": 114,
    }
