"""Spellings of names that a system cannot carry: they are legal, differ from each other, and can be turned back."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.property_names import ANY, JMS, NATS, SYMBOLS, is_identifier, not_kept, take_not_kept

RULES = {"jms": JMS, "nats": NATS, "symbols": SYMBOLS, "any": ANY}
PARTS = ("_", "_HYPHEN_", "_DOT_", "_U005F_", "_U00F6_", "_U004E_", "HYPHEN", "DOT", "U005F", "U00F6", "-", ".", "ö")
NAMES = st.one_of(
    st.text(min_size=1, max_size=30),
    st.lists(st.sampled_from((*PARTS, "NOT", "in", "a", "1", " ", ":", "\N{PARTY POPPER}")), min_size=1).map("".join),
)


@pytest.mark.parametrize(
    ("rules", "name", "spelling"),
    [
        ("jms", "region", "region"),
        ("jms", "größe", "größe"),
        ("jms", "content-type", "content_HYPHEN_type"),
        ("jms", "trace.id", "trace_DOT_id"),
        ("jms", "1st", "_U0031_st"),
        ("jms", "a b", "a_U0020_b"),
        ("jms", "NOT", "_U004E_OT"),
        ("jms", "in", "_U0069_n"),
        ("jms", "Escape", "_U0045_scape"),
        ("jms", "NOTE", "NOTE"),
        ("jms", "a_DOT_b", "a_U005F_DOT_b"),
        ("jms", "a_DOT", "a_DOT"),
        ("jms", "", ""),
        ("nats", "X-Request-Id", "X-Request-Id"),
        ("nats", "größe", "gr_U00F6__U00DF_e"),
        ("nats", "a_DOT_b", "a_DOT_b"),
        ("symbols", "x-opt-ä", "x-opt-_U00E4_"),
        ("any", "\0 ö_DOT_", "\0 ö_DOT_"),
    ],
)
def test_a_name_has_a_spelling_in_each_system(rules: str, name: str, spelling: str) -> None:
    assert RULES[rules].encoded(name) == spelling
    assert RULES[rules].decoded(spelling) == name


@pytest.mark.parametrize("name", ["a_HYPHEN", "_U0041_b", "a_U005F_b", "_U110000_", "_UD800_x", "_dot_", "x" * 200])
def test_a_name_that_no_sink_would_write_stays_as_it_is(name: str) -> None:
    assert JMS.decoded(name) == name


@pytest.mark.parametrize("rules", RULES)
@given(NAMES)
@example("_HYPHEN-")
@example("-HYPHEN_")
@example("_HYPHEN_HYPHEN_")
@example("_U005F_DOT_")
@example("_U005F_U005F_DOT_")
@example("-" * 150)
def test_each_spelling_can_be_turned_back(rules: str, name: str) -> None:
    found = RULES[rules]
    spelling = found.encoded(name)
    assert found.decoded(spelling) == name
    assert all(found.carries(char, at) for at, char in enumerate(spelling))
    assert not found.has_meaning(spelling)


@given(NAMES)
def test_what_jms_gets_is_an_identifier_and_no_word_of_selectors(name: str) -> None:
    spelling = JMS.encoded(name)
    assert all(is_identifier(char, at) for at, char in enumerate(spelling))
    assert not re.fullmatch("null|true|false|not|and|or|between|like|in|is|escape", spelling, re.IGNORECASE)


def test_what_is_not_kept_is_counted_once() -> None:
    take_not_kept()
    not_kept("a", "why")
    not_kept("b" * 1000, "why", 2)
    assert take_not_kept() == 3
    assert take_not_kept() == 0
