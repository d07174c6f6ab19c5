"""Conclusions from conditions hold for every message, whatever kind its values have."""

from __future__ import annotations

import json
from functools import cache
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest

from routes.predicate import evaluate, parse
from routes.predicate.bodies import Body
from routes.predicate.doubts import doubts
from routes.predicate.implication import Covers, clashes, is_never_true
from routes.predicate.nodes import Between, Logical, Operator, walk
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from routes.predicate import Predicate

TEXTS = (
    *("", "x", "y", "xy", "5", "05", "5.0", "5.0000001", "-5", "0", "1e-46", "1e39", "1e400", "NaN", "Infinity"),
    *("-Infinity", "true", "TRUE", "tRue", "false", "16777216", "16777217", "16777218", "9007199254740993", "10", "6"),
    *("3.4028235e38", "3.5e38", "-3.5e38", "0.1", "0.10000000149011612", "\ufffd"),
)
JSON = (
    *("null", "{}", "true", "false", '"x"', '"y"', '"xy"', '"5"', '"true"', "5", "5.0", "5.0000001", "5e0", "6", "10"),
    *(
        "0.1",
        "0.100000000000000000005",
        "0.10000000149011612",
        "1e-46",
        "1e39",
        "1e400",
        "16777216",
        "16777217",
        "16777216.5",
        "9007199254740993",
    ),
    *("-5", "0", "3.5e38", "340282356779733661637539395458142568447"),
)
NUMBERS = (
    *("5", "5.0", "5f", "6", "10", "0", "-5", "1e-46", "1e39", "1e40", "3.5e38", "16777216", "16777217", "16777217f"),
    *("16777218", "9007199254740993", "0.1", "0.10", "0.1f", "0.10000000000000000001", "1e308"),
)
CONSTANTS = ("'x'", "'y'", "'xy'", "'5'", "'true'", "'TRUE'", "TRUE", "FALSE", "'\ufffd'")
PATTERNS = ("x%", "xy%", "y%", "%", "5", "5%", "_", "_y%", "x_%", "%y", "t%", "tr%")
PARTS = ("a", "JMSPriority", "msg.body.a", "msg.body.a", "msg.body[*].a", "a", "a")
VALUES = [None, *(Property(text, kind) for text in TEXTS for kind in (None, *JmsType))]


def atom(random: Random) -> str:
    part, sign = random.choice(PARTS), random.choice(("=", "<>", "<", "<=", ">", ">="))
    match random.randrange(9):
        case 0:
            return f"{part} {random.choice(('', 'NOT '))}BETWEEN {random.choice(NUMBERS)} AND {random.choice(NUMBERS)}"
        case 1:
            listed = random.choices((*NUMBERS, *("'x'", "'y'", "'5'", "'true'") * 4), k=random.randint(1, 3))
            return f"{part} {random.choice(('', 'NOT '))}IN ({', '.join(listed)})"
        case 2:
            return f"{part} {random.choice(('', 'NOT '))}LIKE '{random.choice(PATTERNS)}'"
        case 3:
            return f"{part} IS {random.choice(('', 'NOT '))}NULL"
        case 4:
            return random.choice((part, f"NOT {part}", "TRUE", f"b {sign} 5"))
        case 5 | 6:
            return f"{part} {random.choice(('=', '<>'))} {random.choice(CONSTANTS)}"
    return random.choice((f"{part} {sign} {random.choice(NUMBERS)}", f"{random.choice(NUMBERS)} {sign} {part}"))


def predicate(random: Random, depth: int = 2) -> str:
    if depth == 0 or random.random() < 0.3:
        return atom(random)
    joint = random.choice((" AND ", " AND ", " OR "))
    text = joint.join(predicate(random, depth - 1) for _ in range(random.randint(2, 3)))
    return random.choice((f"({text})", f"({text})", f"({text})", f"NOT ({text})"))


def truths(predicate: Predicate) -> list[bool | None]:
    """The truth for messages of all values: of a property or field, then of a body, then of both."""
    bodies = [Body(f'{{"a":{value}}}'.encode()) for value in JSON]
    bodies += [Body(json.dumps([{"a": json.loads(one)}, {"a": 10}]).encode()) for one in ("1", "5", '"x"', "true")]

    def of(value: Property | None, body: Body) -> bool | None:
        given = {"a": value, "JMSPriority": value, "b": Property("6")}
        return evaluate(predicate, given.get, body)

    found = [of(value, Body(b'{"a":"x"}')) for value in VALUES]
    return found + [of(value, body) for value, body in product((None, Property("x"), Property("5")), bodies)]


@pytest.mark.parametrize("seed", range(3))
def test_what_is_never_true_is_true_for_no_value(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    told = 0
    for _ in range(1000):
        read = parse(" AND ".join(atom(random) for _ in range(random.randint(1, 3))))
        node = read.root
        joined = node.operands if isinstance(node, Logical) and node.operator is Operator.AND else (node,)
        impossible = [
            *clashes(joined),
            *(each for part in joined if isinstance(part, Between) for each in clashes((part, part))),
        ]
        if impossible:
            told += 1
            assert True not in truths(read), read.text
    assert told > 50


@pytest.mark.parametrize("seed", range(3))
def test_a_covered_route_never_wins(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    told = 0
    for _ in range(20):
        read = [parse(predicate(random)) for _ in range(12)]
        true_for = cache(lambda number, read=read: truths(read[number]))
        covers = Covers()
        for number, each in enumerate(read):
            names = covers.names_of(each.root)
            covers.add(str(number), each.root)
            if names:
                told += 1
                taken = [any(earlier) for earlier in zip(*(true_for(int(name)) for name in names), strict=True)]
                pairs = zip(true_for(number), taken, strict=True)
                assert all(earlier for later, earlier in pairs if later), f"{names} of {read} before {each}"
    assert told > 15


@pytest.mark.parametrize("seed", range(3))
def test_a_whole_condition_that_is_never_true_is_true_for_no_value(seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    told = excluded = 0
    for _ in range(200):
        read, but = parse(predicate(random)), parse(predicate(random, 1))
        if is_never_true(read.root):
            told += 1
            assert True not in truths(read), read.text
        elif is_never_true(read.root, but=but.root):
            excluded += 1
            pairs = zip(truths(read), truths(but), strict=True)
            assert all(left_out is True for taken, left_out in pairs if taken), f"{read} but {but}"
    assert told > 5
    assert excluded > 2


@pytest.mark.parametrize(
    "text",
    [
        "x IS NULL AND x > 5",
        "x IS NULL AND x LIKE 'a%'",
        "x LIKE 'ab%' AND x LIKE 'b%'",
        "x LIKE 'ab%' AND NOT x LIKE 'a%'",
        "x LIKE 'ab%' AND x NOT LIKE 'a%'",
        "x = 'a' AND (x = 'b' OR x = 'c')",
        "x IN ('a', 'b') AND y = 1 AND x IN ('c', 'd')",
        "x > 10 AND NOT x > 5",
        "(x = 'a' AND x = 'b') OR (y > 5 AND y < 3)",
        "msg.body.a > 10 AND (msg.body.a < 5 OR msg.body.a IS NULL)",
    ],
)
def test_conditions_that_no_message_meets_are_doubted(text: str) -> None:
    assert is_never_true(parse(text).root)
    assert list(doubts(parse(text)))


@pytest.mark.parametrize(
    ("text", "but"),
    [
        ("x = 'a' AND x LIKE 'a%'", None),
        ("x IS NULL AND NOT x = 'a' OR y", None),
        ("x LIKE 'a%' AND x LIKE '%b'", None),
        ("NOT x > 5 AND x = 'a'", None),
        ("x = 'a'", "NOT x + 1 > 5"),
        ("x = 'a' OR y = 1", "x = 'a'"),
        ("msg.body[*].a = 1 AND msg.body[*].a = 2", None),
    ],
)
def test_conditions_that_some_message_meets_are_not(text: str, but: str | None) -> None:
    assert not is_never_true(parse(text).root, but=None if but is None else parse(but).root)


@pytest.mark.parametrize(
    ("earlier", "later", "names"),
    [
        (["x LIKE 'a%'"], "x LIKE 'ab%' AND y = 1", ("0",)),
        (["x NOT LIKE 'b%'"], "x LIKE 'ab%'", ("0",)),
        (["x = 'a'", "z = 1", "x = 'b'"], "x IN ('a', 'b')", ("0", "2")),
        (["x = 'a'", "x = 'b' AND y"], "x IN ('a', 'b')", ()),
        (["x = 1", "x > 5"], "(x > 7 OR x = 1) AND y = 2", ("1", "0")),
    ],
)
def test_earlier_routes_cover_a_later_one_together(earlier: list[str], later: str, names: tuple[str, ...]) -> None:
    covers = Covers()
    for number, text in enumerate(earlier):
        covers.add(str(number), parse(text).root)
    assert covers.names_of(parse(later).root) == names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("amount > 1000 AND amount < 10", "no value of amount meets this condition and amount > 1000"),
        ("x = 'a' AND y AND x = 'b'", "no value of x meets this condition and x = 'a'"),
        ("x = 'a' AND x <> 'a'", "no value of x meets this condition and x = 'a'"),
        ("x = 'a' AND x LIKE 'b%'", "no value of x meets this condition and x = 'a'"),
        ("x = 'a' AND x > 3", "no value of x meets this condition and x = 'a'"),
        ("x > 5 AND x = 5", "no value of x meets this condition and x > 5"),
        ("x AND NOT x", "no value of x meets this condition and x"),
        ("x IS NULL AND x = 'a'", "no value of x meets this condition and x IS NULL"),
        ("x BETWEEN 10 AND 5", "no value of x meets this condition"),
        ("y OR msg.body.n BETWEEN 10 AND 5", "no value of msg.body.n meets this condition"),
        ("msg.body.n > 5 AND msg.body.n < 3", "no value of msg.body.n meets this condition and msg.body.n > 5"),
        ("JMSPriority >= 5 AND JMSPriority < 5", "no value of JMSPriority meets this condition and JMSPriority >= 5"),
    ],
)
def test_conditions_that_exclude_each_other_are_doubted(text: str, said: str) -> None:
    assert [doubt.message for doubt in doubts(parse(text))] == [said]


@pytest.mark.parametrize(
    "text",
    [
        "x > 5 OR x < 3",
        "x >= 5 AND x <= 5",
        "x = '5' AND x > 3",
        "x = 'TRUE' AND x = TRUE",
        "x >= 16777217 AND x <= 16777216",
        "x = 1e-46 AND x = 0",
        "x >= 1e40 AND x <= 1e39",
        "x > 5 AND x <= 5f",
        "msg.body.n[*] > 5 AND msg.body.n[*] < 3",
        "xpath('/a/b') = 'x' AND xpath('/a/b') = 'y'",
        "x = 'a' AND y = 'b'",
        "x <> 'a' AND x <> 'b'",
    ],
)
def test_conditions_that_a_value_may_meet_are_not_doubted(text: str) -> None:
    assert not list(doubts(parse(text)))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a > 10", "a > 5"),
        ("a = 'x'", "a = 'y' AND b = 1"),
        ("a = 'x' AND b = 1", "a = 'x'"),
        ("a > 5f", "a > 5"),
        ("a = 5", "a = '5'"),
        ("a <> 'x'", "NOT a = 'x' OR a IS NULL"),
        ("msg.body.n[*] BETWEEN 1 AND 5", "msg.body.n[*] > 2 AND msg.body.n[*] < 4"),
    ],
)
def test_a_route_that_may_get_a_message_is_not_covered(first: str, second: str) -> None:
    covers = Covers()
    covers.add("a", parse(first).root)
    assert covers.name_of(parse(second).root) is None


def test_many_routes_are_compared_in_little_time() -> None:
    covers = Covers()
    for number in range(3_000):
        node = parse(f"msg.address = 'q{number}' AND (a > {number} OR b IN ('x', 'y'))").root
        assert covers.name_of(node) is None
        covers.add(str(number), node)
    nested = "a = 1"
    for number in range(24):
        nested = f"({nested} AND b > {number} OR c = {number})"
    node = parse(nested).root
    covers.add("nested", parse(nested.replace("c", "d")).root)
    assert covers.name_of(node) is None
    assert len(list(walk(node))) > 100
