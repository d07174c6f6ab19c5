"""The page with charts of the last day, drawn as SVG on the server from what the supervisor has in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.page.day import MINUTES
from engine.page.render import render
from engine.page.view import FAILED_OF, IN, LATENCY, ROUTED_BY, WAITING
from engine.telemetry import amounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from engine.page.day import DaySeries
    from engine.page.view import View

__all__ = ["Chart", "charts", "draw_chart"]

_WIDTH, _HEIGHT = 360, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 352, 10, 160
_LINES = 5
"""Number of routes with a line of their own."""
_EVERY_HOURS = 6
_REFRESH_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Figure in a chart."""

    name: str
    paths: tuple[str, ...]
    """Points of each unbroken piece, for SVG's `points`."""
    last: str
    """Latest value in words."""
    peak: str
    """Largest value in words."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its axes, as the template draws it."""

    title: str
    lines: tuple[ChartLine, ...]
    rows: tuple[tuple[float, str], ...]
    """Marks of the vertical axis: place and words."""
    columns: tuple[tuple[float, str], ...]
    """Marks of the horizontal axis: place and time of the day."""
    width: int = _WIDTH
    height: int = _HEIGHT
    left: int = _LEFT
    right: int = _RIGHT
    top: int = _TOP
    bottom: int = _BOTTOM


def charts(view: View) -> Callable[[Request], Response]:
    """Makes the handler of the page."""

    def page(request: Request) -> Response:
        found = view.samples.day.series()
        routed = _busiest(found, ROUTED_BY)
        failed = _busiest(found, FAILED_OF)
        shown = [
            draw_chart("Into the journal", [("all sources", found[IN])] if IN in found else [], amounts.rate),
            draw_chart("Routed, by route", routed, amounts.rate),
            draw_chart("Failed, by route", failed, amounts.rate),
            draw_chart("Routing latency", [("average", found[LATENCY])] if LATENCY in found else [], amounts.duration),
            draw_chart(
                "Waiting in the journal", [("messages", found[WAITING])] if WAITING in found else [], amounts.number
            ),
        ]
        return render(request, view, "charts.html", charts=shown, seconds=_REFRESH_SECONDS)

    return page


def draw_chart(title: str, figures: Sequence[tuple[str, DaySeries]], words: Callable[[float], str]) -> Chart:
    """Draws figures, each with a name, over the last day; `words` tells a value."""
    top = _rounded_up(max((series.peak for _, series in figures), default=0.0))
    last = max((series.last for _, series in figures), default=0)

    def height(value: float) -> float:
        return _BOTTOM - value / top * (_BOTTOM - _TOP)

    lines = tuple(
        ChartLine(name, tuple(_pieces(series, height)), _latest(series, words), words(series.peak))
        for name, series in figures
    )
    rows = tuple((height(value), words(value)) for value in (0.0, top / 2, top)) if figures else ()
    return Chart(title, lines, rows, tuple(_hours(last)) if figures else ())


def _busiest(found: dict[str, DaySeries], prefix: str) -> list[tuple[str, DaySeries]]:
    """The routes with the largest averages, by their names."""
    named = [(name.removeprefix(prefix), series) for name, series in found.items() if name.startswith(prefix)]
    return sorted((each for each in named if each[1].peak), key=lambda each: each[1].mean, reverse=True)[:_LINES]


def _pieces(series: DaySeries, height: Callable[[float], float]) -> Iterator[str]:
    """The points of each stretch of minutes that have values; a single one is a short line."""
    piece: list[str] = []
    for number, value in enumerate((*series.values, None)):
        if value is not None:
            piece.append(f"{_place(number):.1f},{height(value):.1f}")
        elif piece:
            x, _, y = piece[-1].partition(",")
            yield " ".join(piece if len(piece) > 1 else [*piece, f"{float(x) + 1:.1f},{y}"])
            piece = []


def _place(number: float) -> float:
    return _LEFT + number / (MINUTES - 1) * (_RIGHT - _LEFT)


def _hours(last: int) -> Iterator[tuple[float, str]]:
    """Marks at every sixth hour of the day, in UTC."""
    for number in range(MINUTES):
        minute = last - MINUTES + 1 + number
        if minute % (_EVERY_HOURS * 60) == 0:
            yield _place(number), f"{minute // 60 % 24:02}:00"


def _latest(series: DaySeries, words: Callable[[float], str]) -> str:
    value = series.values[-1]
    return "\u2013" if value is None else words(value)


def _rounded_up(value: float) -> float:
    """The next larger of 1, 2, 4, 6, 8, 10, 20 and so on, so that it and its half have short names."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= value * 0.999999)
