"""Line charts as SVG, for a light and a dark page, with text that can be read at the width of a phone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Axis", "Panel", "chart"]

_WIDTH, _HEIGHT = 440, 230
"""Size of a panel."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 20, 54, 46
"""Margins around the area with the lines."""
_COLOURS = (("#0969da", "#58a6ff"), ("#bc4c00", "#f0883e"), ("#1a7f37", "#3fb950"), ("#8250df", "#bc8cff"))
"""Of the lines, on a light and on a dark page."""
_DASHES = ("none", "7 4", "2 4", "9 3 2 3")
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_INTERVALS = 4
"""Number of intervals between the marks of a linear axis, about."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Axis that begins at 0, or at the least value if it is logarithmic."""

    label: str
    """Quantity and unit."""
    logarithmic: bool = False
    marks: Mapping[float, str] = field(default_factory=dict)
    """Text by value; without any, round values are marked."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One or more lines over the same axes."""

    title: str
    x: Axis
    y: Axis
    lines: Mapping[str, Sequence[tuple[float, float]]]
    """Points by the name of the line, which the legend shows if there are several."""


def chart(title: str, panels: Sequence[Panel]) -> str:
    """An SVG document with the panels one below the other; `title` is for those who cannot see it.

    Raises:
        ValueError: a panel has no point or too many lines, or a point has no place on a logarithmic axis.
    """
    height = _HEIGHT * len(panels)
    light, dark = (
        "".join(f".line{at}{{--c:{colours[scheme]}}}" for at, colours in enumerate(_COLOURS)) for scheme in (0, 1)
    )
    drawn = "\n".join(
        f'<g transform="translate(0 {_HEIGHT * at})">\n{_panel(panel)}\n</g>' for at, panel in enumerate(panels)
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" \
viewBox="0 0 {_WIDTH} {height}" role="img" font-family="system-ui, sans-serif" font-size="13">
<title>{escape(title)}</title>
<style>
text{{fill:#1f2328}} .name{{font-weight:600;font-size:15px}} .grid{{stroke:#d0d7de}} .axis{{stroke:#57606a}}
[class^=line]{{fill:none;stroke:var(--c);stroke-width:2}} circle[class^=line]{{fill:var(--c)}} {light}
@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}} .grid{{stroke:#3d444d}} .axis{{stroke:#9da7b1}} {dark}}}
</style>
{drawn}
</svg>
"""


class _Scale:
    """Positions of values along an axis."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self._logarithmic, self._start, self._end = axis.logarithmic, start, end
        if axis.logarithmic and min(values) <= 0:
            msg = f"the logarithmic axis '{axis.label}' has no place for {min(values):g}"
            raise ValueError(msg)
        self.marks = dict(axis.marks) or (_powers(values) if axis.logarithmic else _round_values(max(values)))
        self._low, self._high = (self._along(end(*values, *self.marks)) for end in (min, max))
        if not axis.logarithmic:
            self._low = min(self._low, 0.0)

    def at(self, value: float) -> float:
        share = (self._along(value) - self._low) / ((self._high - self._low) or 1.0)
        return round(self._start + share * (self._end - self._start), 1)

    def _along(self, value: float) -> float:
        return math.log10(value) if self._logarithmic else value


def _panel(panel: Panel) -> str:
    points = [point for line in panel.lines.values() for point in line]
    if not points or len(panel.lines) > len(_COLOURS):
        msg = f"panel '{panel.title}' needs 1 to {len(_COLOURS)} lines with points"
        raise ValueError(msg)
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    x = _Scale(panel.x, [point[0] for point in points], _LEFT, right)
    y = _Scale(panel.y, [point[1] for point in points], bottom, _TOP)
    parts = [_text(panel.title, 8, 20, "start", "name"), _text(panel.y.label, 8, 42, "start")]
    for value, text in y.marks.items():
        parts.append(f'<path class="grid" d="M{_LEFT} {y.at(value)}H{right}"/>')
        parts.append(_text(text, _LEFT - 7, y.at(value) + 4.5, "end"))
    for value, text in x.marks.items():
        parts.append(f'<path class="axis" d="M{x.at(value)} {bottom}v5"/>')
        parts.append(_text(text, x.at(value), bottom + 19, "middle"))
    parts.append(f'<path class="axis" d="M{_LEFT} {bottom}H{right}"/>')
    parts.append(_text(panel.x.label, (_LEFT + right) / 2, bottom + 37, "middle"))
    legend = float(right)
    for at, (name, line) in reversed(list(enumerate(panel.lines.items()))):
        style = f'class="line{at}" stroke-dasharray="{_DASHES[at]}"'
        places = [(x.at(across), y.at(up)) for across, up in line]
        parts.append(f'<path {style} d="M{" L".join(f"{across} {up}" for across, up in places)}"/>')
        parts += [f'<circle class="line{at}" cx="{across}" cy="{up}" r="3"/>' for across, up in places]
        if len(panel.lines) > 1:
            parts.append(_text(name, legend, 42, "end"))
            legend -= 7.5 * len(name) + 8
            parts.append(f'<path {style} d="M{legend - 24} 37.5h24"/>')
            legend -= 38
    return "\n".join(parts)


def _text(text: str, x: float, y: float, anchor: str, style: str = "") -> str:
    return f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _round_values(most: float) -> dict[float, str]:
    """Multiples of a round step from 0 up to at least `most`."""
    wanted = (most or 1.0) / _INTERVALS
    unit = 10.0 ** math.floor(math.log10(wanted))
    step = next(unit * each for each in _STEPS if unit * each >= wanted * 0.999)
    return {step * at: _short(step * at) for at in range(math.ceil(most / step * 0.999) + 1)}


def _powers(values: Sequence[float]) -> dict[float, str]:
    """Powers of ten around all values."""
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return {10.0**each: _short(10.0**each) for each in range(least, max(most, least + 1) + 1)}


def _short(value: float) -> str:
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"
