"""Charts of the benchmarks: where points lie, what is marked, and what cannot be drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.chart import Axis, Panel, chart

if TYPE_CHECKING:
    from collections.abc import Sequence

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Sequence[tuple[float, float]], logarithmic: bool = False) -> ET.Element:
    axis = Axis("amount", logarithmic=logarithmic)
    panel = Panel("A & B", axis, axis, {f"line {number}": line for number, line in enumerate(lines)})
    return parsed([panel, panel])


def parsed(panels: list[Panel]) -> ET.Element:
    return ET.fromstring(chart("Amounts <all>", panels))  # noqa: S314 - our own


def places(picture: ET.Element) -> list[tuple[float, float]]:
    """Points of the first panel."""
    panel = picture.find(f"{SVG}g")
    assert panel is not None
    return [(float(each.attrib["cx"]), float(each.attrib["cy"])) for each in panel.iter(f"{SVG}circle")]


def texts(picture: ET.Element) -> list[str | None]:
    return [each.text for each in picture.iter(f"{SVG}text")]


def test_points_lie_in_proportion_to_their_values() -> None:
    first, middle, last = places(drawn([(0, 0), (50, 50), (100, 100)]))
    assert middle == ((first[0] + last[0]) / 2, (first[1] + last[1]) / 2)
    assert first[0] < last[0]
    assert first[1] > last[1], "up is more"


def test_equal_ratios_are_equally_far_apart_on_a_logarithmic_axis() -> None:
    one, two, three = (place[0] for place in places(drawn([(1, 1), (10, 1), (100, 1)], logarithmic=True)))
    assert two - one == pytest.approx(three - two, abs=0.2)


@given(st.lists(st.tuples(st.floats(1e-3, 1e9), st.floats(1e-3, 1e9)), min_size=1, max_size=20), st.booleans())
def test_all_points_lie_between_the_axes_and_keep_their_order(
    points: list[tuple[float, float]], logarithmic: bool
) -> None:
    picture = drawn(points, logarithmic=logarithmic)
    found = places(picture)
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"]) / 2
    assert all(0 < x < width and 0 < y < height for x, y in found)
    placed = sorted(zip(points, found, strict=True))
    assert [place[0] for _, place in placed] == sorted(place[0] for place in found)


def test_titles_units_legend_and_marks_are_written() -> None:
    shown = texts(drawn([(0, 0), (2_000_000, 1)], [(1, 1)]))
    assert {"A & B", "amount", "line 0", "line 1", "0", "500k", "1.5M", "2M"} <= set(shown)


def test_a_single_line_needs_no_legend() -> None:
    assert "line 0" not in texts(drawn([(1, 1)]))


def test_given_marks_stand_in_place_of_round_values() -> None:
    panel = Panel("Sizes", Axis("B", logarithmic=True, marks={1024: "1 Ki"}), Axis("MB"), {"a": [(1024, 0)]})
    assert texts(parsed([panel])) == ["Sizes", "MB", "0", "1 Ki", "B"]


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="the logarithmic axis 'amount' has no place for 0"):
        drawn([(0, 1)], logarithmic=True)
    with pytest.raises(ValueError, match="panel 'A & B' needs 1 to 4 lines with points"):
        drawn()
