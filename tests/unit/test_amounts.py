"""Numbers for display: the unit is that of the rounded amount."""

from __future__ import annotations

import pytest

from engine.telemetry.amounts import duration, number, rate, size


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (duration(0.9994), "999 ms"),
        (duration(0.9996), "1 s"),
        (duration(59.7), "1 min"),
        (duration(185), "3 min 5 s"),
        (size(1023.4), "1023 B"),
        (size(1023.6), "1.0 KiB"),
        (size(1023.9 * 1024), "1023.9 KiB"),
        (size(1024 * 1024 - 1), "1.0 MiB"),
        (size(1024**3 - 1), "1.0 GiB"),
        (size(5000 * 1024**3), "5000.0 GiB"),
        (rate(9.94), "9.9/s"),
        (rate(9.96), "10/s"),
        (rate(99_999.4), "99,999/s"),
        (rate(99_999.6), "100k/s"),
        (number(1234), "1,234"),
        (size(float("nan")), "\N{EN DASH}"),
    ],
)
def test_an_amount_is_shown_in_the_unit_of_what_it_is_rounded_to(shown: str, text: str) -> None:
    assert shown == text
