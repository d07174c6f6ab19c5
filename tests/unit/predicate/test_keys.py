"""Requirements of predicates, and whether the texts among them are all that a predicate asks for."""

from __future__ import annotations

import pytest

from routes.predicate import parse
from routes.predicate.keys import MAX_KEYS, Key, Prefix, Range, Requirement, required, sufficient

ALL: list[tuple[str, list[Key]]] = [
    ("a = 'x'", [{"a": "x"}]),
    ("'x' = a", [{"a": "x"}]),
    ("a IN ('x', 'y')", [{"a": "x"}, {"a": "y"}]),
    ("a = 'x' AND b = 'y'", [{"a": "x", "b": "y"}]),
    ("a = 'x' OR b = 'y'", [{"a": "x"}, {"b": "y"}]),
    ("a IN ('x', 'y') AND (b = 'z' OR a = 'x')", [{"a": "x", "b": "z"}, {"a": "x"}, {"a": "y", "b": "z"}]),
    ("a = 'x' AND a = 'y'", []),
]
SOME: list[tuple[str, list[Key]]] = [
    ("a = 'x' AND n > 5", [{"a": "x"}]),
    ("n > 5 AND (a = 'x' OR b = 'y' AND NOT c = 'z')", [{"a": "x"}, {"b": "y"}]),
    ("a = 'x' AND b <> 'y'", [{"a": "x"}]),
]
OTHERS: list[tuple[str, list[Requirement]]] = [
    ("a LIKE 'x%y_z'", [Prefix("a", "x")]),
    (r"a LIKE 'x\_y%' ESCAPE '\'", [Prefix("a", "x_y")]),
    ("n > 0", [Range("n", low=0.0)]),
    ("0 >= n", [Range("n", high=0.0)]),
    ("n = 0 OR a LIKE 'x'", [Range("n", 0.0, 0.0), Prefix("a", "x")]),
    ("n IN (0, 'x')", [{"n": "x"}, Range("n", 0.0, 0.0)]),
    ("a = 'x' OR n >= 0", [{"a": "x"}, Range("n", low=0.0)]),
    ("n NOT BETWEEN 0 AND 5 AND a LIKE 'x%'", [Prefix("a", "x")]),
    ("n > 0 AND m < 0 AND n < 0", [Range("n", 0.0, 0.0)]),
    ("n > 0 AND a LIKE 'x%'", [Prefix("a", "x")]),
    ("n > 0 AND n + 1 = m", [Range("n", low=0.0)]),
    ("(n = 0 OR m = 0) AND n <> 1", [Range("n", 0.0, 0.0), Range("m", 0.0, 0.0)]),
]
NONE = [
    *(
        "a <> 'x'",
        "a = b",
        "NOT a = 'x'",
        "a NOT IN ('x')",
        "a NOT IN (1)",
        "a",
        "TRUE",
        "a = 'x' OR n <> 1",
        "a = TRUE",
        "n + 1 > 5",
    ),
    *("a LIKE '%x'", "a LIKE '_x'", "a NOT LIKE 'x'", "NOT n > 5", "n <> 5", "n BETWEEN a AND b", "a IS NULL"),
]


@pytest.mark.parametrize(("text", "keys"), ALL)
def test_predicates_about_texts_alone_are_true_for_their_keys(text: str, keys: list[Key]) -> None:
    assert sufficient(parse(text).root) == keys
    assert required(parse(text).root) == keys


@pytest.mark.parametrize(("text", "keys"), SOME)
def test_predicates_that_ask_for_more_need_their_keys(text: str, keys: list[Key]) -> None:
    assert sufficient(parse(text).root) is None
    assert required(parse(text).root) == keys


@pytest.mark.parametrize(("text", "requirements"), OTHERS)
def test_predicates_about_numbers_and_beginnings_need_these(text: str, requirements: list[Requirement]) -> None:
    assert sufficient(parse(text).root) is None
    assert required(parse(text).root) == requirements


@pytest.mark.parametrize("text", ["n BETWEEN -7 AND 16777217", "n >= -7 AND 16777217 >= n"])
def test_a_range_has_room_for_numbers_that_are_equal_as_floats(text: str) -> None:
    found = required(parse(text).root)
    assert found is not None
    (only,) = found
    assert isinstance(only, Range)
    assert -7.001 < only.low < -7
    assert 16777217 < only.high < 16777300


@pytest.mark.parametrize("text", [*NONE, "a = '\ufffd'"])
def test_other_predicates_have_no_keys(text: str) -> None:
    assert sufficient(parse(text).root) is None
    assert required(parse(text).root) is None


def test_too_many_combinations_are_not_multiplied_out() -> None:
    texts = ", ".join(f"'{number}'" for number in range(MAX_KEYS // 100 + 1))
    root = parse(f"a IN ({texts}) AND b IN ({texts}) AND c = 'x'").root
    assert sufficient(root) is None
    assert required(root) == [{"c": "x"}]
