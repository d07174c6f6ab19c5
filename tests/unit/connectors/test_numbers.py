"""Numbers in texts of other programs: only those of 64 bits are parsed, and nothing raises."""

from __future__ import annotations

import pytest

from engine.connectors.numbers import whole


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("17", 17), ("0017", 17), (str(2**63 - 1), 2**63 - 1), ("9" * 19, 10**19 - 1)]
)
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1_0", "1.0", "x", "\u0661", "\u00b2", "9" * 20, "9" * 5000])
def test_any_other_text_is_none(text: str) -> None:
    assert whole(text) is None
