"""What a user reads about a predicate that is none: the place, what was found, and what to write instead."""

from __future__ import annotations

import pytest

from routes.errors import Fault, PredicateError
from routes.predicate import parse
from routes.predicate.check import MAX_OPERATORS
from routes.predicate.parser import MAX_CHARACTERS, MAX_DEPTH

VALUE = "a field or property, a number, a text in single quotes, TRUE or FALSE"
SLIPS = [
    # predicate, column, message, hint
    ("", 1, "the predicate is empty", "TRUE matches every message"),
    ("a =>1", 3, "there is no =>", "write >="),
    ("a =< 1", 3, "there is no =<", "write <="),
    ("a === b", 3, "there is no ===", "write =="),
    ("a ! = 5", 3, "there is a blank in !=", "write !="),
    ("a = 1 & b = 2", 7, "a single & means nothing", "write && or AND"),
    ("a = 1 | b = 2", 7, "a single | means nothing", "write || or OR"),
    ("a = 'x", 5, "the text that starts here has no closing quote", "a quote inside a text is doubled: 'it''s'"),
    ('"a = 5', 1, "the name that starts here has no closing quote", "text goes in single quotes"),
    ("a = 1 AND (b = 2", 11, "this ( is never closed", "add the ) that belongs to it"),
    ("a = ')' AND b = 1)", 18, "this ) closes nothing", "remove it, or add the ( that belongs to it"),
    ("a IN ()", 7, "IN () has no constants", "write IN ('a', 'b') or IN (1, 2)"),
    ("a IN ('x',)", 11, "a constant is missing after the comma", "write IN ('a', 'b') or IN (1, 2)"),
    ("a IN (TRUE)", 7, "IN takes texts in single quotes, and numbers, found TRUE", "write 'TRUE'"),
    ("a IN (x)", 7, "IN takes texts in single quotes, and numbers, found x", "write 'x'"),
    ("a IN (1, 2 + 3)", 12, "found '+', expected ',' or ')'", ""),
    (
        "a IN (007a)",
        7,
        "'007a' is not a number",
        "write '007a' for the text; a name that starts with a digit goes in double quotes",
    ),
    ("a LIKE foo%", 8, "LIKE takes a pattern in single quotes, found foo%", "write 'foo%'"),
    ('a LIKE "foo%"', 8, 'LIKE takes a pattern in single quotes, found "foo%"', "write 'foo%'"),
    ("a LIKE 'x' ESCAPE 'ab'", 19, "ESCAPE takes one character, found 'ab'", ""),
    (
        "a LIKE 'x\\y' ESCAPE '\\'",
        8,
        "the escape character '\\\\' stands before nothing that it can escape in 'x\\y'",
        "it goes before %, _ or \\",
    ),
    (
        'a = "emea"',
        5,
        "text goes in single quotes, a name in double quotes",
        "write 'emea' for the text, msg.header.\"emea\" for the property",
    ),
    ("region = emea.west", 10, "emea.west needs quotes", "write 'emea.west' for the text, or == before it"),
    ("my.name = 5", 1, "my.name is not a name without quotes", 'write "my.name" or msg.header."my.name"'),
    (
        "msg.foo == 1",
        1,
        "there is no msg.foo",
        "there are msg.address, msg.header.NAME, msg.body and msg.text, in small letters",
    ),
    (
        "Msg.address==x",
        1,
        "there is no Msg.address",
        "there are msg.address, msg.header.NAME, msg.body and msg.text, in small letters",
    ),
    ("msg.header.1st == 5", 1, "there is no msg.header.1st", 'write msg.header."1st"'),
    (
        "msg.address = foo-topic",
        15,
        "msg.address is text, and foo-topic calculates a number",
        "write 'foo-topic' for the text, or \"foo-topic\" for a property of that name",
    ),
    (
        "msg.header.x-id == foo",
        1,
        "foo is text, and msg.header.x-id calculates a number",
        'write msg.header."x-id" for a header of that name',
    ),
    ("a == foo bar", 10, "found 'bar' after the word 'foo'", "a text with blanks: 'foo bar'"),
    ("a = NULL", 5, "nothing is equal to NULL", "write IS NULL or IS NOT NULL"),
    ("a == null", 6, "nothing is equal to NULL", "write IS NULL, or 'NULL' for the text"),
    (
        "a = 1 AND AND b = 2",
        11,
        "AND is a word of the language",
        'a value is missing before it, or write "AND" in double quotes for a property of that name',
    ),
    ("a = 08", 5, "'08' is not a number", "a leading 0 makes it octal; write 8, or '08' for the text"),
    ("a = 1e999", 5, "'1e999' is not a number", "it is out of the range of its type"),
    (
        "57abc = 1",
        1,
        "'57abc' is not a number",
        "write '57abc' for the text; a name that starts with a digit goes in double quotes",
    ),
    (
        "a = 9223372036854775808",
        5,
        "the number 9223372036854775808 does not fit 64 bits",
        "exact numbers go from -9223372036854775808 to 9223372036854775807; write 1e19 for a larger one",
    ),
    ("a = \u2018x\u2019", 5, "the quotation mark \u2018 is not one of the language", "text stands between ' and '"),
    (
        "a\u00a0= 1",
        2,
        "the character '\\xa0' (NO-BREAK SPACE) is not white space in predicates",
        "use a plain blank",
    ),
    (
        "a\u00b2 = 1",
        2,
        "the character '\u00b2' (SUPERSCRIPT TWO) is not allowed here",
        "text goes in single quotes, a name in double quotes",
    ),
    ("a = 1;", 6, "the character ';' is not allowed here", "text goes in single quotes, a name in double quotes"),
    ("a = '\ud800'", 6, "the character '\\ud800' (no name) is not white space in predicates", "use a plain blank"),
    ('"" = 5', 1, 'there is no name between "..."', "an empty text is ''"),
]
MISFITS = [
    (
        "a < 'x'",
        5,
        "< compares numbers, found the text 'x'",
        "text can only be compared with = and <>, or with LIKE and IN",
    ),
    ("a < '5'", 5, "< compares numbers, found the text '5'", "write 5 without quotes"),
    ("a >= TRUE", 6, ">= compares numbers, found TRUE", "TRUE and FALSE can only be compared with = and <>"),
    ("a BETWEEN 'x' AND 5", 11, "BETWEEN compares numbers, found the text 'x'", ""),
    ("a + 'x' = 5", 5, "+ calculates with numbers, found the text 'x'", ""),
    ("-TRUE = a", 2, "- goes before a number, found TRUE", ""),
    ("+'x' = a", 2, "+ goes before a number, found the text 'x'", ""),
    ("a AND 5", 7, "AND joins conditions, found the number 5", "compare it: name = 5"),
    ("NOT 'x'", 5, "NOT goes before a condition, found the text 'x'", "compare it: name = 'text'"),
    ("a + 1", 1, "a predicate is a condition, found arithmetic", "compare it: name = 5"),
    ("(a = 1) = b", 2, "= compares values, found a comparison", "join conditions with AND or OR"),
    ("5 LIKE 'x'", 1, "LIKE asks about a field or property, found the number 5", ""),
    ("a + 1 IS NULL", 1, "IS NULL asks about a field or property, found arithmetic", ""),
]
UNEXPECTED = [
    ("a =", 4, f"found the end, expected {VALUE} or '('"),
    ("a AND", 6, f"found the end, expected {VALUE}, NOT or '('"),
    ("a b", 3, "found 'b', expected a comparison, arithmetic, AND, OR or the end"),
    ("a IS 5", 6, "found '5', expected NULL or NOT NULL"),
    ("a NOT 5", 7, "found '5', expected BETWEEN, IN or LIKE"),
    ("a BETWEEN 1 OR 2", 13, "found 'OR', expected AND"),
    ("a IN 'x'", 6, "found \"'x'\", expected '('"),
    ("a = 1 = 2", 7, "found '=', expected AND, OR or the end"),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), SLIPS)
def test_a_slip_is_named_with_what_to_write_instead(text: str, column: int, message: str, hint: str) -> None:
    fault = fault_of(text)
    assert (fault.column, fault.message, fault.hint) == (column, message, hint)


@pytest.mark.parametrize(("text", "column", "message", "hint"), MISFITS)
def test_parts_that_do_not_fit_together_are_told_by_what_they_are(
    text: str, column: int, message: str, hint: str
) -> None:
    fault = fault_of(text)
    assert (fault.column, fault.message) == (column, message)
    assert hint in fault.hint


@pytest.mark.parametrize(("text", "column", "message"), UNEXPECTED)
def test_all_else_says_what_was_found_and_what_was_expected(text: str, column: int, message: str) -> None:
    fault = fault_of(text)
    assert (fault.column, fault.message, fault.hint) == (column, message, "")


def test_the_caret_stands_under_the_place_also_after_line_ends_and_tabs() -> None:
    assert str(fault_of("a = 1\n\tAND b => 2")).splitlines() == [
        "14: error: there is no => (write >=)",
        "    a = 1 \tAND b => 2",
        "          \t      ^",
    ]


def test_the_excerpt_of_a_long_predicate_ends_soon_after_the_place() -> None:
    assert len(fault_of("a = 1 & " + "b" * 100_000).excerpt) < 300


@pytest.mark.parametrize(
    "text",
    [
        "NOT " * (MAX_DEPTH + 1) + "a",
        "-" * 10_000 + "a = 1",
        "a" + " + a" * 10_000 + " = 1",
        "(NOT " * 10_000 + "a" + ")" * 10_000,
    ],
    ids=["not", "minus", "sum", "parentheses"],
)
def test_what_is_nested_too_deep_is_a_fault_and_no_crash(text: str) -> None:
    assert fault_of(text).message == f"operators are nested more than {MAX_DEPTH} deep here"


def test_too_long_a_calculation_is_a_fault() -> None:
    fault = fault_of("a" + " + 1" * MAX_OPERATORS + " BETWEEN 1 AND -b")
    assert fault.message == f"a comparison calculates with more than {MAX_OPERATORS} operators"
    assert parse("a" + " + 1" * MAX_OPERATORS + " = 1 AND " + "b" + " * 2" * MAX_OPERATORS + " = 1")


def test_what_is_too_long_is_a_fault() -> None:
    fault = fault_of("a" * (MAX_CHARACTERS + 1))
    assert (fault.message, fault.hint) == ("the predicate has 1,000,001 characters", "at most 1,000,000")


def fault_of(text: str) -> Fault:
    with pytest.raises(PredicateError) as raised:
        parse(text)
    return raised.value.fault
