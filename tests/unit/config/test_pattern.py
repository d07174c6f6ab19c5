"""Which keys the default pattern takes, and which patterns Java and Python would read differently."""

from __future__ import annotations

import re

import pytest

from routes.keys.pattern import DEFAULT_KEY_PATTERN, KEY_PATTERN
from routes.keys.values import BadValueError


@pytest.mark.parametrize(
    "key",
    [
        "7",
        "order7",
        "550e8400-e29b-41d4-a716-446655440000",
        "{550e8400-e29b-41d4-a716-446655440000}",
        "ID:host-1234-1:1",
        "ID:414d5120514d312020202020",
        "eu/orders/7",
        "aGVsbG8+Lw==",
        "#7@host_1.example",
        "Größe",
        "Ελλάδα",
        "注文7",
        "हिन्दी",
        "می‌خواهم",
        "٣",
        "𐐷",
    ],
)
def test_the_default_takes_real_correlation_ids_and_letters_of_any_script(key: str) -> None:
    assert re.fullmatch(DEFAULT_KEY_PATTERN, key)


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "a b",
        "a\n",
        "\na",
        "a\u00a0b",
        "a\u2028",
        "--",
        "::/",
        "a,b",
        "a;b",
        "'a'",
        "“a”",
        "€",
        "😀",
        "½",
        "a\x00",
    ],
)
def test_the_default_refuses_blanks_other_signs_and_keys_without_a_letter_or_digit(key: str) -> None:
    assert not re.fullmatch(DEFAULT_KEY_PATTERN, key)


@pytest.mark.parametrize(
    "pattern",
    [
        DEFAULT_KEY_PATTERN,
        "[A-Z]+-[0-9]{3,}",
        r"\d+",
        r"\{[^\]]+\}",
        "(?:a|b)*",
        "(?=.*[a-z]).+",
        r"\x41",
        "é",
        r"a\\b",
    ],
)
def test_a_pattern_that_both_read_alike_is_taken(pattern: str) -> None:
    assert KEY_PATTERN.parse(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "offset"),
    [
        ("", 0),
        ("a(", 1),
        (r"a\w+", 1),
        (r"[^\W_]", 2),
        (r"\\\w", 2),
        ("(?P<n>a)", 0),
        ("(?i)a", 0),
        ("a(?#note)", 1),
        (r"\Z", 0),
        ("a{,3}", 1),
        ("a{", 1),
        ("[a[b]", 2),
        ("[a&&b]", 0),
        ("x[]a]", 1),
        (r"\p{L}", 0),
    ],
)
def test_a_pattern_that_java_reads_differently_is_refused(pattern: str, offset: int) -> None:
    with pytest.raises(BadValueError) as raised:
        KEY_PATTERN.parse(pattern)
    assert raised.value.offset == offset
