"""What predicates say about a message, rule by rule of Jakarta Messaging 3.1, 3.8.1, its own examples among them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from engine.message import Message
from routes.predicate import Trace, evaluate, parse, trace
from routes.properties import JmsType, Property

T, F, U = True, False, None


def says(
    text: str, properties: Mapping[str, Property] | None = None, **values: bool | int | float | str
) -> bool | None:
    """Values given by keyword are declared as Python shows them; `properties` are as they are."""
    given = {name: Property.of(value) for name, value in values.items()} | dict(properties or {})
    return evaluate(parse(text), Message(properties=given).lookup)


def untyped(**texts: str) -> dict[str, Property]:
    return {name: Property(text) for name, text in texts.items()}


def typed(kind: JmsType, **texts: str) -> dict[str, Property]:
    return {name: Property(text, kind) for name, text in texts.items()}


# 3.8.1.1: the examples of the specification


@pytest.mark.parametrize(
    ("text", "values", "truth"),
    [
        ("NumberOfOrders > 1", {"NumberOfOrders": "2"}, F),
        ("age BETWEEN 15 AND 19", {"age": 15}, T),
        ("age BETWEEN 15 AND 19", {"age": 20}, F),
        ("age NOT BETWEEN 15 AND 19", {"age": 20}, T),
        ("age NOT BETWEEN 15 AND 19", {"age": 19}, F),
        ("Country IN ('UK', 'US', 'France')", {"Country": "UK"}, T),
        ("Country IN ('UK', 'US', 'France')", {"Country": "Peru"}, F),
        ("Country NOT IN ('UK', 'US', 'France')", {"Country": "UK"}, F),
        ("Country NOT IN ('UK', 'US', 'France')", {"Country": "Peru"}, T),
        ("Country IN ('UK')", {}, U),
        ("Country NOT IN ('UK')", {}, U),
        ("phone LIKE '12%3'", {"phone": "123"}, T),
        ("phone LIKE '12%3'", {"phone": "12993"}, T),
        ("phone LIKE '12%3'", {"phone": "1234"}, F),
        ("word LIKE 'l_se'", {"word": "lose"}, T),
        ("word LIKE 'l_se'", {"word": "loose"}, F),
        (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "_foo"}, T),
        (r"underscored LIKE '\_%' ESCAPE '\'", {"underscored": "bar"}, F),
        ("phone NOT LIKE '12%3'", {"phone": "123"}, F),
        ("phone NOT LIKE '12%3'", {"phone": "1234"}, T),
        ("phone LIKE '%'", {}, U),
        ("phone NOT LIKE '%'", {}, U),
        ("prop_name IS NULL", {}, T),
        ("prop_name IS NULL", {"prop_name": ""}, F),
        ("prop_name IS NOT NULL", {}, F),
        ("prop_name IS NOT NULL", {"prop_name": 0}, T),
        ("color = 'blue' AND weight > 2500", {"color": "blue", "weight": 2501}, T),
        ("color = 'blue' AND weight > 2500", {"color": "blue", "weight": 2500}, F),
    ],
)
def test_the_examples_of_the_specification_hold(
    text: str, values: dict[str, bool | int | float | str], truth: bool | None
) -> None:
    assert says(text, **values) is truth


# 3.8.1.2: tables 3-4 to 3-6


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [(T, T, T, T), (T, F, F, T), (T, U, U, T), (F, F, F, F), (F, U, F, U), (U, U, U, U)],
)
def test_truth_has_three_values(left: bool | None, right: bool | None, both: bool | None, either: bool | None) -> None:
    spelt = {True: "TRUE", False: "FALSE", None: "missing = 1"}
    for a, b in ((left, right), (right, left)):
        assert says(f"{spelt[a]} AND {spelt[b]}") is both
        assert says(f"{spelt[a]} OR {spelt[b]}") is either
    assert says(f"NOT {spelt[left]}") is (None if left is None else not left)


@pytest.mark.parametrize(
    "text",
    [
        *("a = 1", "a <> 1", "a < 1", "1 >= a", "a = 'x'", "a <> TRUE", "a = a", "a <> b", "a BETWEEN 1 AND 2"),
        *(
            "a NOT BETWEEN 1 AND 2",
            "a IN ('x')",
            "a IN (1, 'x')",
            "a NOT IN (1)",
            "a LIKE 'x'",
            "a + 1 = 2",
            "-a = 1",
            "1 / a > 0",
            "a",
            "msg.address = 'x'",
        ),
    ],
)
def test_what_is_missing_makes_all_but_is_null_unknown_also_under_not(text: str) -> None:
    assert says(text) is U
    assert says(f"NOT ({text})") is U


# 3.8.1.1: only like values can be compared


@pytest.mark.parametrize(
    ("value", "like", "unlike"),
    [
        ("x", "'x'", "5"),
        ("5", "'5'", "5"),
        (5, "5", "'5'"),
        (5.0, "5", "TRUE"),
        (True, "TRUE", "'true'"),
        ("true", "'true'", "TRUE"),
    ],
)
def test_values_of_unlike_types_are_neither_equal_nor_unequal(value: str | int | float, like: str, unlike: str) -> None:
    assert says(f"a = {like}", a=value) is T
    assert says(f"a <> {like}", a=value) is F
    for sign in ("=", "<>"):
        assert says(f"a {sign} {unlike}", a=value) is F
        assert says(f"NOT a {sign} {unlike}", a=value) is T


def test_text_and_booleans_have_no_order() -> None:
    assert says("a < b", a="x", b="y") is F
    assert says("NOT a < b", a="x", b="y") is T
    assert says("a < b", a=False, b=True) is F
    assert says("a BETWEEN 1 AND 3", a="2") is F


def test_not_between_is_less_or_greater_and_not_the_negation_of_between() -> None:
    assert says("a NOT BETWEEN 1 AND 3", a="text") is F
    assert says("NOT (a BETWEEN 1 AND 3)", a="text") is T


def test_in_takes_numbers_as_equality_does() -> None:
    assert [says("a IN (1, 2.5)", a=each) for each in (1, 2.5, 3, "1", True)] == [T, T, F, F, F]
    assert [says("a NOT IN (1, 2.5)", a=each) for each in (1, 2.5, 3, "1", True)] == [F, F, T, T, T]
    assert [says("a IN ('x', 2)", a=each) for each in ("x", 2, "2", 3)] == [T, T, F, F]
    assert says("a IN (9007199254740993)", a=9007199254740992) is F


def test_in_with_texts_and_like_know_only_text() -> None:
    assert says("a IN ('5')", a=5) is F
    assert says("a NOT IN ('5')", a=5) is T
    assert says("a LIKE '5'", a=5) is F
    assert says("a NOT LIKE '5'", a=5) is T


@pytest.mark.parametrize(("value", "truth"), [(True, T), (False, F), (1, F), ("true", F)])
def test_a_name_alone_is_true_only_for_a_boolean_that_is(value: bool | int | str, truth: bool) -> None:
    assert says("a", a=value) is truth
    assert says("NOT a", a=value) is (not truth)


def test_text_is_compared_character_by_character_with_case() -> None:
    assert says("a = 'Foo'", a="foo") is F
    assert says("a = '\u00e4'", a="a\u0308") is F
    assert says("a LIKE '_\n_'", a="\U0001f600\n.") is T
    assert says("a LIKE '.*'", a="foo") is F


# Numbers


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("7 / 2 = 3", T), ("-7 / 2 = -3", T), ("7 / -2 = -3", T), ("7 / 2. = 3.5", T), ("1 / 0 = 1", U),
        ("1. / 0 = 1", U),
        ("0. / 0. <> 0", U), ("9223372036854775807 + 1 > 0", U), ("-9223372036854775808 - 1 < 0", U),
        ("4611686018427387904 * 2 > 0", U), ("-9223372036854775808 / -1 > 0", U),
        ("-(-9223372036854775808 + 0) > 0", U),
        ("9223372036854775807 + 1. = 9223372036854775808.", T), ("1e308 * 10 > 1e308", T),
        ("9007199254740993 = 9007199254740992.", T), ("9007199254740993 = 9007199254740992", F),
        ("2 + 3 * 4 = 14", T), ("(2 + 3) * 4 = 20", T), ("2 - 3 - 4 = -5", T), ("0.1 + 0.2 = 0.3", F),
        ("-0.0 = 0", T),
        ("0.1f = 0.1", F), ("0.1f + 0.2f = 0.3f", T), ("0.1f + 0.2f = 0.3", F), ("0.5f = 0.5", T),
        ("16777217 = 16777216f", T), ("16777217 = 16777216.", F), ("16777216f + 1 = 16777216f", T),
        ("1e30f * 1e30f > 1e300", T), ("1 / 3f = 0.33333334f", T), ("1 / 3f = 1 / 3.", F),
    ],
)  # fmt: skip
def test_arithmetic_is_that_of_java_without_wrapping_around(text: str, truth: bool | None) -> None:
    assert says(text) is truth


def test_a_float_property_keeps_single_precision() -> None:
    a = typed(JmsType.FLOAT, a="0.1", b="16777216")
    assert says("a = 0.1f", a) is T
    assert says("a = 0.1", a) is F
    assert says("b + 1 = b", a) is T
    assert says("b + 1. = b", a) is F


@pytest.mark.parametrize("kind", [JmsType.FLOAT, JmsType.DOUBLE])
def test_nan_is_unequal_to_all_and_neither_less_nor_greater(kind: JmsType) -> None:
    a = typed(kind, a="NaN", i="Infinity")
    for text in ("a = a", "a < 1", "a > 1", "a >= a", "a BETWEEN 0 AND 1", "a NOT BETWEEN 0 AND 1", "i - i = 0"):
        assert says(text, a) is F
    assert says("a <> a AND i > 1e308 AND -i < 0", a) is T


def test_arithmetic_with_text_or_booleans_is_unknown() -> None:
    assert says("a + 1 = 1", a="0") is U
    assert says("a * 1 = 1", a=True) is U
    assert says("-a = 1", typed(JmsType.BYTES, a="MQ==")) is U


# Declared types, and none


@pytest.mark.parametrize(
    ("kind", "text", "condition"),
    [
        (JmsType.BYTE, "127", "a = 127"), (JmsType.SHORT, "-32768", "a = -32768"), (JmsType.INT, "+5", "a = 5"),
        (JmsType.LONG, "007", "a = 7"), (JmsType.FLOAT, "5", "a = 5"), (JmsType.DOUBLE, "-Infinity", "a < 0"),
        (JmsType.BOOLEAN, "TRUE", "a"), (JmsType.STRING, "", "a = ''"),
    ],
)  # fmt: skip
def test_a_declared_value_is_of_its_type(kind: JmsType, text: str, condition: str) -> None:
    assert says(condition, typed(kind, a=text)) is T


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (JmsType.BYTE, "128"), (JmsType.SHORT, "40000"), (JmsType.INT, "3000000000"),
        (JmsType.LONG, "9223372036854775808"),
        (JmsType.LONG, "5.0"), (JmsType.INT, " 5"), (JmsType.INT, "\u0665"), (JmsType.DOUBLE, "nan"),
        (JmsType.DOUBLE, "1_0"),
        (JmsType.FLOAT, ""), (JmsType.BOOLEAN, "yes"), (JmsType.BOOLEAN, "1"),
    ],
)  # fmt: skip
def test_a_declared_value_that_is_not_of_its_type_is_null(kind: JmsType, text: str) -> None:
    broken = typed(kind, a=text)
    assert says("a = 5 OR a <> 'x' OR a", broken) is U
    assert says("a IS NULL", broken) is T


def test_bytes_are_there_and_unlike_everything() -> None:
    a = typed(JmsType.BYTES, a="MQ==", b="MQ==")
    for text in ("a = 'MQ=='", "a = b", "a <> b", "a = 1", "a IN ('MQ==')", "a LIKE '%'", "a", "a IS NULL"):
        assert says(text, a) is F


@pytest.mark.parametrize(
    ("text", "value", "truth"),
    [
        ("a = 'x'", "x", T), ("a = '5'", "5", T), ("a = 5", "5", T), ("a = 5", "+5", T), ("a = 5", "5.0", T),
        ("a > 4", "05", T),
        ("a = 5", "five", F), ("a <> 5", "five", F), ("a < 5", "", F), ("a = 5", " 5", F), ("a = 5", "0x5", F),
        ("a = 9007199254740993", "9007199254740993", T), ("a > 9223372036854775807", "9223372036854775808", F),
        ("a = 9223372036854775808.", "9223372036854775808", T), ("a = 0.1", "0.1", T), ("a = 0.1f", "0.1", F),
        ("a > 0", "NaN", F), ("a > 0", "Infinity", F), ("a = TRUE", "True", T), ("a <> TRUE", "false", T),
        ("a = TRUE", "1", F),
        ("a", "TRUE", T), ("NOT a", "yes", T), ("a + 1 = 6", "5", T), ("a + 1 = 6", "five", U), ("-a = -5", "5", T),
        ("a IN ('5')", "5", T), ("a IN (4, 5)", "05.0", T), ("a IN (5)", "five", F),
        ("a LIKE '5%'", "55", T), ("a BETWEEN 4 AND 6", "5", T), ("a IS NULL", "", F),
    ],
)  # fmt: skip
def test_a_value_without_a_type_is_read_as_what_it_is_compared_with(text: str, value: str, truth: bool | None) -> None:
    assert says(text, untyped(a=value)) is truth


def test_two_values_without_types_are_equal_as_texts_and_ordered_as_numbers() -> None:
    assert says("a = b", untyped(a="5", b="5.0")) is F
    assert says("a <> b", untyped(a="5", b="5.0")) is T
    assert says("a < b", untyped(a="5", b="10")) is T
    assert says("a < b", untyped(a="a", b="b")) is F


def test_a_value_without_a_type_beside_a_declared_one_is_read_as_its_type() -> None:
    assert says("a = b", untyped(a="5.0"), b=5) is T
    assert says("a = b", untyped(a="5.0"), b="5") is F
    assert says("a = b", untyped(a="TRUE"), b=True) is T
    assert says("a <> b", untyped(a="x"), b=5) is F


def test_fields_have_the_types_of_the_specification() -> None:
    message = Message(
        headers={
            "JMSDestination": "topic:prices.eu",
            "JMSPriority": "9",
            "JMSTimestamp": "1700000000000",
            "JMSDeliveryMode": "PERSISTENT",
            "JMSRedelivered": "true",
            "JMSType": "5",
        }
    )
    for text in (
        "msg.address = 'prices.eu' AND JMSDestination = 'topic:prices.eu'",
        "JMSPriority > 8 AND JMSTimestamp = 1700000000000 AND JMSDeliveryMode = 'PERSISTENT' AND JMSRedelivered",
        "JMSType = '5' AND NOT JMSType = 5 AND JMSCorrelationID IS NULL",
        "msg.header.Priority==9 && msg.header.Type=='5'",
    ):
        assert evaluate(parse(text), message.lookup) is T


def test_an_address_without_a_prefix_stays_as_it_is() -> None:
    for destination, address in (("queue:a", "a"), ("topic:queue:a", "queue:a"), ("a", "a"), ("QUEUE:a", "QUEUE:a")):
        message = Message(headers={"JMSDestination": destination})
        assert evaluate(parse(f"msg.address = '{address}'"), message.lookup) is T


def test_a_trace_gives_the_value_of_every_part() -> None:
    message = Message(properties=untyped(region="emea", amount="9"))
    found = trace(parse("region = 'emea' AND NOT (amount + 1 > 10 OR vip)"), message.lookup)
    amount = Trace("amount + 1", 10, False, (Trace("amount", "9", False),))
    inner = (Trace("amount + 1 > 10", F, True, (amount,)), Trace("vip", U, True))
    negated = Trace("NOT (amount + 1 > 10 OR vip)", U, True, (Trace("amount + 1 > 10 OR vip", U, True, inner),))
    region = Trace("region = 'emea'", T, True, (Trace("region", "emea", False),))
    assert found == Trace("region = 'emea' AND NOT (amount + 1 > 10 OR vip)", U, True, (region, negated))


def test_a_trace_shows_numbers_as_they_were_calculated() -> None:
    found = trace(parse("a / 2 > 1"), Message(properties=typed(JmsType.FLOAT, a="NaN")).lookup)
    assert isinstance(found.parts[0].value, float)
    assert math.isnan(found.parts[0].value)
