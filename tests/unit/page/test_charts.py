"""Figures of the last day: averages of minutes, gaps, bounds; and their charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.page import day as module
from engine.page.charts import _rounded_up, draw_chart
from engine.page.day import MINUTES, DayFigures
from engine.telemetry.amounts import rate
from engine.telemetry.metrics import FAILED, JOURNALED, LAG_RECORDS, LATENCY_AVERAGE, ROUTED
from tests.unit.page.bridge import HOSTILE, Page


def test_a_minute_has_the_average_of_its_readings() -> None:
    day = DayFigures()
    for seconds, value in ((0, 1.0), (5, 3.0), (59, None), (60, 8.0), (180, 4.0)):
        day.add(seconds, {"a": value})
    series = day.series()["a"]
    assert series.values[-4:] == (2.0, 8.0, None, 4.0)
    assert (len(series.values), series.last, series.peak) == (MINUTES, 3, 8.0)


def test_what_is_older_than_a_day_is_forgotten() -> None:
    day = DayFigures()
    day.add(0, {"a": 1.0, "b": 1.0})
    day.add(60 * (MINUTES - 1), {"b": 2.0})
    assert day.series()["a"].values[0] == 1.0
    day.add(60 * MINUTES, {"b": 3.0})
    assert day.series().keys() == {"b"}
    assert day.series()["b"].values[-2:] == (2.0, 3.0)
    day.add(60 * MINUTES * 5, {"b": 5.0})
    assert [value for value in day.series()["b"].values if value is not None] == [5.0]


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    day = DayFigures()
    day.add(600, {"a": 1.0})
    day.add(60, {"a": 3.0})
    assert day.series()["a"].values[-1] == 2.0


def test_the_number_of_figures_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_SERIES", 3)
    day = DayFigures()
    day.add(0, {f"route {n}": 1.0 for n in range(10)})
    assert len(day.series()) == 3


@given(st.floats(1e-9, 1e15))
def test_an_axis_ends_at_a_round_number_above(value: float) -> None:
    top = _rounded_up(value)
    assert value * 0.999 <= top <= value * 10.001
    assert f"{top:.0e}"[0] in "12468"


def test_a_gap_breaks_the_line() -> None:
    day = DayFigures()
    for minute in (0, 1, 2, 5, 9, 10):
        day.add(minute * 60, {"a": 1.0})
    chart = draw_chart("t", [("a", day.series()["a"])], rate)
    assert [len(points.split()) for points in chart.lines[0].paths] == [3, 2, 2]
    assert [text for _, text in chart.rows] == ["0/s", "0.5/s", "1.0/s"]
    assert {text for _, text in chart.columns} == {"00:00", "06:00", "12:00", "18:00"}


def test_the_page_draws_each_figure_and_the_busiest_routes(tmp_path: Path) -> None:
    page = Page(tmp_path)
    assert page.text("/charts").count("Nothing yet.") == 5
    for number in range(4):
        page.figures.set(JOURNALED, number * 600, "jms")
        for route in range(7):
            page.figures.set(ROUTED, number * 100 * route, f"r{route}", "t")
        page.figures.set(FAILED, number * 10, HOSTILE, "kafka:t", "key-not-found", "dead-letter")
        page.figures.set(LAG_RECORDS, 17, "0")
        page.figures.set(LATENCY_AVERAGE, 0.012)
        page.sample()
    text = page.text("/charts")
    assert "<script>alert" not in text
    assert re.findall(r"</svg> (r\d)", text) == ["r6", "r5", "r4", "r3", "r2"]
    assert "now 120/s, at most 120/s" in text
    assert "now 12 ms" in text
    assert "now 17" in text
