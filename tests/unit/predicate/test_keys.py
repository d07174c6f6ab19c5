"""Which texts a predicate asks for, and whether they are all it asks for."""

from __future__ import annotations

import pytest

from routes.predicate import parse
from routes.predicate.keys import MAX_KEYS, required, sufficient

ALL = [
    ("a = 'x'", [{"a": "x"}]),
    ("'x' = a", [{"a": "x"}]),
    ("a IN ('x', 'y')", [{"a": "x"}, {"a": "y"}]),
    ("a = 'x' AND b = 'y'", [{"a": "x", "b": "y"}]),
    ("a = 'x' OR b = 'y'", [{"a": "x"}, {"b": "y"}]),
    ("a IN ('x', 'y') AND (b = 'z' OR a = 'x')", [{"a": "x", "b": "z"}, {"a": "x"}, {"a": "y", "b": "z"}]),
    ("a = 'x' AND a = 'y'", []),
]
SOME = [
    ("a = 'x' AND n > 5", [{"a": "x"}]),
    ("n > 5 AND (a = 'x' OR b = 'y' AND NOT c = 'z')", [{"a": "x"}, {"b": "y"}]),
    ("a = 'x' AND b <> 'y'", [{"a": "x"}]),
]
NONE = ["a <> 'x'", "a = 5", "a = b", "NOT a = 'x'", "a NOT IN ('x')", "a LIKE 'x'", "a", "TRUE", "a = 'x' OR n = 1"]


@pytest.mark.parametrize(("text", "keys"), ALL)
def test_predicates_about_texts_alone_are_true_for_their_keys(text: str, keys: list[dict[str, str]]) -> None:
    assert sufficient(parse(text).root) == keys
    assert required(parse(text).root) == keys


@pytest.mark.parametrize(("text", "keys"), SOME)
def test_predicates_that_ask_for_more_need_their_keys(text: str, keys: list[dict[str, str]]) -> None:
    assert sufficient(parse(text).root) is None
    assert required(parse(text).root) == keys


@pytest.mark.parametrize("text", [*NONE, "a = '\ufffd'"])
def test_other_predicates_have_no_keys(text: str) -> None:
    assert sufficient(parse(text).root) is None
    assert required(parse(text).root) is None


def test_too_many_combinations_are_not_multiplied_out() -> None:
    texts = ", ".join(f"'{number}'" for number in range(MAX_KEYS // 100 + 1))
    root = parse(f"a IN ({texts}) AND b IN ({texts}) AND c = 'x'").root
    assert sufficient(root) is None
    assert required(root) == [{"c": "x"}]
