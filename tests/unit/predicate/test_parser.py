"""What a predicate's text means as a tree: both spellings, precedence, literals, names."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routes.errors import PredicateError
from routes.predicate import identifiers, parse
from routes.predicate.nodes import (
    ADDRESS,
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Negate,
    Not,
    Operator,
    PredicateNode,
    walk,
)
from routes.properties import SEED_NAMES

A, B, C = Identifier("a"), Identifier("b"), Identifier("c")
ONE, TWO = Literal(1), Literal(2)


def eq(left: PredicateNode, right: PredicateNode) -> Comparison:
    return Comparison(Operator.EQ, left, right)


@pytest.mark.parametrize(
    ("selector", "seed"),
    [
        ("msg.address = 'foo-topic'", "msg.address==foo-topic"),
        ("JMSCorrelationID = 'x'", "msg.header.CorrelationId == x"),
        ("a = 'x' AND NOT b <> 'y' OR c = 'z'", "a==x && !b!=y || c==z"),
        ("a = 5 AND b = TRUE AND c = '5'", "a==5 and b==true && c=='5'"),
        ("a = -5 OR a = 1.5e3", "a==-5||a==1.5e3"),
        ("NOT (a = 'x')", "!(a==x)"),
        ("a = '2024-01-01'", "a==2024-01-01"),
        ("a = 'orders.eu' OR a = 'foo/bar' OR a = 'ID:h-1:2'", "a==orders.eu||a==foo/bar||a==ID:h-1:2"),
        ("a = 'IN' AND b = 'or'", "a==IN && b==or"),
        ("a = '007'", "a==007"),
        ("msg.header.a = 'b' AND c = 'd'", "msg.header.a==b && c==d"),
        ("a = msg.header.b", "a==msg.header.b"),
        ("a = 5 + 3", "a==5 + 3"),
        ("a <> 'größe'", "a!=größe"),
    ],
)
def test_the_two_spellings_say_the_same(selector: str, seed: str) -> None:
    assert parse(seed) == parse(selector)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (
            "a = 1 OR b = 1 AND c = 1",
            Logical(Operator.OR, (eq(A, ONE), Logical(Operator.AND, (eq(B, ONE), eq(C, ONE))))),
        ),
        ("NOT a = 1 AND b = 1", Logical(Operator.AND, (Not(eq(A, ONE)), eq(B, ONE)))),
        ("NOT NOT a", Not(Not(A))),
        ("(a OR b) OR c", Logical(Operator.OR, (A, B, C))),
        ("a AND (b AND c)", Logical(Operator.AND, (A, B, C))),
        ("a = 1 + 2 * b", eq(A, Arithmetic(Operator.ADD, ONE, Arithmetic(Operator.MUL, TWO, B)))),
        ("a - b - c = 1", eq(Arithmetic(Operator.SUB, Arithmetic(Operator.SUB, A, B), C), ONE)),
        ("(a + b) * c = 1", eq(Arithmetic(Operator.MUL, Arithmetic(Operator.ADD, A, B), C), ONE)),
        ("-a * b = +1", eq(Arithmetic(Operator.MUL, Negate(A), B), ONE)),
        ("a between 1 and 2 and b", Logical(Operator.AND, (Between(A, ONE, TWO), B))),
        ("NOT a NOT BETWEEN 1 AND 2", Not(Between(A, ONE, TWO, negated=True))),
        ("a in ('x','y','x')", In(A, ("x", "y"))),
        ("a Not In ('it''s')", In(A, ("it's",), negated=True)),
        ("a IN (1, +2, 1)", In(A, (), numbers=(ONE, TWO))),
        ("a NOT IN (-1, 'x', 1.0, 1)", In(A, ("x",), negated=True, numbers=(Literal(-1), Literal(1.0), ONE))),
        ("a IN (-9223372036854775808)", In(A, (), numbers=(Literal(-(2**63)),))),
        ("a LIKE 'x%' ESCAPE '\\'", Like(A, "x%", "\\")),
        ("a NOT LIKE 'x'", Like(A, "x", negated=True)),
        ("a IS NULL OR b IS NOT NULL", Logical(Operator.OR, (IsNull(A), IsNull(B, negated=True)))),
        ("((((a))))", A),
        ("a\t=\r\n\f1", eq(A, ONE)),
    ],
)
def test_operators_bind_as_the_specification_says(text: str, tree: PredicateNode) -> None:
    assert parse(text).root == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("57", 57), ("-957", -957), ("+62", 62), ("0", 0), ("017", 15), ("-017", -15), ("0x1F", 31), ("0XfF", 255),
        ("0b101", 5), ("1_000_000", 1_000_000), ("5L", 5), ("5l", 5), ("0x1FL", 31), ("017L", 15),
        ("9223372036854775807", 2**63 - 1), ("-9223372036854775808", -(2**63)), ("0xFFFFFFFFFFFFFFFF", -1),
        ("7E3", 7000.0), ("-57.9E2", -5790.0), ("7.", 7.0), ("-95.7", -95.7), ("+6.2", 6.2), (".5", 0.5), ("5d", 5.0),
        ("1e-3", 0.001), ("1.5D", 1.5), ("0.0", 0.0), ("010.5", 10.5), ("9223372036854775808.", 2.0**63),
        ("''", ""), ("'literal''s'", "literal's"), ("'\u00e4\n\"'", '\u00e4\n"'), ("TRUE", True), ("fAlSe", False),
    ],
)  # fmt: skip
def test_literals_are_those_of_java(text: str, value: object) -> None:
    assert parse(f"a = {text}").root == eq(A, Literal(value))  # type: ignore[arg-type]


def test_a_float_literal_has_single_precision() -> None:
    assert parse("a = 0.1f").root == eq(A, Literal(0.10000000149011612, single=True))
    assert parse("a = 0.1f").root != parse("a = 0.10000000149011612").root


def test_literals_of_different_types_are_different_though_python_holds_them_for_equal() -> None:
    assert len({parse(f"a = {text}") for text in ("1", "1.0", "TRUE", "1f", "'1'")}) == 5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("$a_1", "$a_1"), ("_", "_"), ("größe", "größe"), ("名前", "名前"), ("a\u0301", "a\u0301"),
        ("NULLABLE", "NULLABLE"), ("android", "android"), ("msg", "msg"),
        ('"my-header"', "my-header"), ('"a ""b"" c"', 'a "b" c'),
        ('"in"', "in"), ("msg.header.a.b", "a.b"), ('msg.header."x-y z"', "x-y z"), ("msg.header.in", "in"),
        ("msg.header.JMSType", "JMSType"), ('msg.header."Type"', "Type"), ("Type", "Type"), ("msg.address", ADDRESS),
        *((f"msg.header.{short}", long) for short, long in SEED_NAMES.items()),
    ],
)  # fmt: skip
def test_names_are_java_identifiers_or_quoted(text: str, name: str) -> None:
    assert parse(f"{text} IS NULL").root == IsNull(Identifier(name))
    assert identifiers(parse(f"{text} = 1")) == {name}


def test_names_are_case_sensitive_and_keywords_are_not() -> None:
    assert identifiers(parse("Region = 1 and region = 1 And REGION is Null")) == {"Region", "region", "REGION"}


def test_every_node_knows_its_place_in_the_text() -> None:
    text = "NOT (region = 'emea' AND msg.header.amount + 1 > -5)"
    parts = {text[node.position : node.end] for node in walk(parse(text).root)}
    assert {"region = 'emea'", "'emea'", "msg.header.amount + 1 > -5", "msg.header.amount + 1", "-5"} <= parts


def test_ten_thousand_texts_in_a_list_and_conditions_in_a_row_are_read_in_seconds() -> None:
    start = time.process_time()
    texts = ", ".join(f"'text {number}'" for number in range(10_000))
    many = parse(f"a IN ({texts})").root
    assert isinstance(many, In)
    assert len(many.texts) == 10_000
    row = parse(" OR ".join(f"a{n} = {n}" for n in range(5_000))).root
    assert isinstance(row, Logical)
    assert len(row.operands) == 5_000
    assert parse("(" * 5_000 + "a" + ")" * 5_000).root == A
    assert time.process_time() - start < 20


WORDS = (
    *("a", "b", "=", "==", "<", "<>", "AND", "||", "NOT", "!", "(", ")", "IN", "LIKE", "'x'", "'", '"', "5", "08", "-"),
    *("BETWEEN", "IS", "NULL", "TRUE", "ESCAPE", ",", "msg.address", "msg.header.x", ".", "&", "foo-bar", "0x", "*"),
)


@settings(deadline=None)
@given(st.text(max_size=30) | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_any_text_is_a_predicate_or_a_fault_with_its_place(text: str) -> None:
    try:
        parsed = parse(text)
    except PredicateError as error:
        fault = error.fault
        assert fault.message.strip()
        assert 1 <= fault.column <= len(text) + 1
    else:
        assert parsed.text == text
