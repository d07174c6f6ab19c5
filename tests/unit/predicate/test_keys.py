"""Requirements of predicates, and whether the texts among them are all that a predicate asks for."""

from __future__ import annotations

import pytest

from routes.predicate import parse
from routes.predicate.keys import MAX_KEYS, Key, Prefix, Range, Requirement, required, sufficient
from routes.predicate.nodes import BodyPath, Identifier

A, B, C, M, N = map(Identifier, "abcmn")
LINE = BodyPath(("lines", 0, "sku"))

ALL: list[tuple[str, list[Key]]] = [
    ("a = 'x'", [{A: "x"}]),
    ("'x' = a", [{A: "x"}]),
    ("a IN ('x', 'y')", [{A: "x"}, {A: "y"}]),
    ("a = 'x' AND b = 'y'", [{A: "x", B: "y"}]),
    ("a = 'x' OR b = 'y'", [{A: "x"}, {B: "y"}]),
    ("a IN ('x', 'y') AND (b = 'z' OR a = 'x')", [{A: "x", B: "z"}, {A: "x"}, {A: "y", B: "z"}]),
    ("a = 'x' AND a = 'y'", []),
    ("msg.body.lines[0].sku = 'x' AND a = 'y'", [{LINE: "x", A: "y"}]),
    ("msg.body.lines[0].sku IN ('x', 'y')", [{LINE: "x"}, {LINE: "y"}]),
    ("msg.body.a = 'x' AND \"msg.body.a\" = 'y'", [{BodyPath(("a",)): "x", Identifier("msg.body.a"): "y"}]),
]
SOME: list[tuple[str, list[Key]]] = [
    ("a = 'x' AND n > 5", [{A: "x"}]),
    ("n > 5 AND (a = 'x' OR b = 'y' AND NOT c = 'z')", [{A: "x"}, {B: "y"}]),
    ("a = 'x' AND b <> 'y'", [{A: "x"}]),
]
OTHERS: list[tuple[str, list[Requirement]]] = [
    ("a LIKE 'x%y_z'", [Prefix(A, "x")]),
    (r"a LIKE 'x\_y%' ESCAPE '\'", [Prefix(A, "x_y")]),
    ("msg.body.lines[0].sku LIKE 'x%'", [Prefix(LINE, "x")]),
    ("msg.body.lines[0].sku = 0", [Range(LINE, 0.0, 0.0)]),
    ("n > 0", [Range(N, low=0.0)]),
    ("0 >= n", [Range(N, high=0.0)]),
    ("n = 0 OR a LIKE 'x'", [Range(N, 0.0, 0.0), Prefix(A, "x")]),
    ("n IN (0, 'x')", [{N: "x"}, Range(N, 0.0, 0.0)]),
    ("a = 'x' OR n >= 0", [{A: "x"}, Range(N, low=0.0)]),
    ("n NOT BETWEEN 0 AND 5 AND a LIKE 'x%'", [Prefix(A, "x")]),
    ("n > 0 AND m < 0 AND n < 0", [Range(N, 0.0, 0.0)]),
    ("n > 0 AND a LIKE 'x%'", [Prefix(A, "x")]),
    ("n > 0 AND n + 1 = m", [Range(N, low=0.0)]),
    ("(n = 0 OR m = 0) AND n <> 1", [Range(N, 0.0, 0.0), Range(M, 0.0, 0.0)]),
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
    *(
        "a LIKE '%x'",
        "a LIKE '_x'",
        "a NOT LIKE 'x'",
        "msg.body[*] = 'x'",
        "msg.text = 'x'",
        "NOT n > 5",
        "n <> 5",
        "n BETWEEN a AND b",
        "a IS NULL",
    ),
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
    assert required(root) == [{C: "x"}]
