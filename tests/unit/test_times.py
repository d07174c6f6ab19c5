"""Reading and writing of times."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.times import iso, milliseconds, read_moment, read_time

AT = 1_795_240_800_123


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T06:00:00.123Z", 1_795_240_800_123),
        ("2026-11-21T07:00:00.123+01:00", 1_795_240_800_123),
        ("2026-11-21T06:00:00", 1_795_240_800_000),
        ("2026-11-21", 1_795_219_200_000),
        ("0001-01-01T00:00:00+23:59", -62_135_683_140_000),
        ("yesterday", None),
        ("", None),
        ("2h", None),
    ],
)
def test_times_are_read_as_iso_8601_in_utc(text: str, expected: int | None) -> None:
    assert milliseconds(text) == expected


def test_times_may_be_told_as_how_long_ago() -> None:
    now = AT + 7_200_000
    assert read_moment("--since", "2h", now) == AT
    assert read_moment("--since", "500ms", now) == now - 500
    assert read_moment("--since", "2026-11-21T06:00:00.123Z", now) == AT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21T06:00:00.123Z", AT),
        ("1795240800123", AT),
        ("-5", -5),
        (str(2**63 - 1), 2**63 - 1),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_times_may_be_numbers(text: str, expected: int) -> None:
    assert read_time(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "", "1.5", "٣", str(2**63), str(-(2**63) - 1), 5_000 * "9"])
def test_what_is_no_time_of_64_bits_is_refused(text: str) -> None:
    with pytest.raises(
        UsageError, match=r"^'.*' is not a time: expected 2026-01-01T12:00:00Z, or milliseconds since 1970"
    ):
        read_time(text)


def test_times_are_shown_in_utc_with_milliseconds() -> None:
    assert iso(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert iso(2**62) == str(2**62)
