"""LIKE: what matches, what the escape character may stand before, and that no pattern is slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routes.predicate.patterns import Pattern, split


def matches(pattern: Pattern, text: str) -> bool:
    return re.fullmatch(pattern.regex, text) is not None


def by_definition(pattern: str, text: str) -> bool:
    """One row of the table for each character of the pattern: which beginnings of the text match so far."""
    reached = {0}
    for char in pattern:
        if char == "%":
            reached = set(range(min(reached), len(text) + 1)) if reached else set()
        else:
            reached = {n + 1 for n in reached if n < len(text) and char in ("_", text[n])}
    return len(text) in reached


@settings(deadline=None)
@given(st.text(alphabet="ab%_\n.\U0001f600", max_size=8), st.text(alphabet="ab%_\n.\U0001f600", max_size=10))
def test_a_pattern_matches_what_its_definition_says(pattern: str, text: str) -> None:
    assert matches(split(pattern, None), text) is by_definition(pattern, text)


@settings(deadline=None)
@given(st.text(max_size=20))
def test_escaped_a_text_matches_itself_and_nothing_longer(text: str) -> None:
    pattern = split(re.sub(r"([%_\\])", r"\\\1", text), "\\")
    assert matches(pattern, text)
    assert not matches(pattern, text + "x")


@pytest.mark.parametrize("pattern", ["a\\", "a\\b", "\\"])
def test_the_escape_character_stands_before_what_it_can_escape(pattern: str) -> None:
    with pytest.raises(ValueError, match=str(pattern.index("\\"))):
        split(pattern, "\\")


def test_a_percent_sign_can_be_the_escape_character() -> None:
    pattern = split("50%%", "%")
    assert matches(pattern, "50%")
    assert not matches(pattern, "50%%")


def test_many_percent_signs_are_not_slow_on_any_text() -> None:
    start = time.process_time()
    assert not matches(split("%a" * 30 + "%b", None), "a" * 20_000)
    assert time.process_time() - start < 2
