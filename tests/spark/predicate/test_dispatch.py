"""The first rule that wants a message is the same one, found by tables and branches or tried one by one."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.message import Message, Record
from routes.predicate import evaluate, parse
from routes.predicate.columns import Rule, first_match
from tests.spark.predicate import generate
from tests.spark.predicate.test_columns import frame_of, many_seeds


def spark_says(spark: SparkSession, rules: Sequence[Rule], records: Sequence[Record]) -> list[int | None]:
    return [row[0] for row in frame_of(spark, records).select(first_match(rules, F.col("headers"))).collect()]


def one_by_one(rules: Sequence[Rule], message: Message) -> int | None:
    for number, (include, exclude) in enumerate(rules):
        excluded = exclude is not None and evaluate(exclude, message.lookup) is True
        if evaluate(include, message.lookup) is True and not excluded:
            return number
    return None


def agree(spark: SparkSession, rules: Sequence[Rule], records: Sequence[Record]) -> list[int | None]:
    found = spark_says(spark, rules, records)
    expected = [one_by_one(rules, Message.from_record(record)) for record in records]
    wrong = [
        f"{says} and not {number} for {record.headers}"
        for says, number, record in zip(found, expected, records, strict=True)
        if says != number
    ]
    assert not wrong, "\n".join(wrong[:10])
    return found


def rule(random: Random) -> Rule:
    """Mostly texts asked for, alone or beside other conditions; sometimes anything."""
    exclude = generate.predicate(random) if random.random() < 0.2 else None
    if random.random() < 0.2:
        return generate.predicate(random), exclude
    texts = [generate.quoted(random.choice(generate.TEXTS)) for _ in range(6)]
    shapes = (
        "a = {0}",
        "a = {0} AND b = {1}",
        "b = {0} AND {1} = a",
        "a IN ({0}, {1}, {2})",
        "a IN ({0}, {1}) AND b IN ({2}, {3})",
        "a = {0} OR a = {1} AND b = {2}",
        "a = {0} AND a = {1}",
        "msg.address = {0}",
        "msg.address = {0} AND c > 5",
        "msg.address = {0} AND NOT b = {1}",
        "a = {0} AND (b = {1} OR c = 5)",
        "a IN ({0}, {1}, {2}) AND c IS NULL",
        "JMSPriority = {0} OR a = {1}",
        "a LIKE {6}",
        "a LIKE {6} AND c > {7}",
        "a LIKE {6} OR b = {0} OR c < {7}",
        "c > {7}",
        "{7} >= c AND c >= {8}",
        "c BETWEEN {7} AND {8} AND b LIKE {6}",
        "c NOT BETWEEN {7} AND {8} AND b <> {0}",
        "c = {7} OR a = {0}",
        "c = {7} AND msg.address LIKE {6}",
        "JMSPriority < {7} AND JMSTimestamp = {8}",
        "a * 2 + {7} = b - {8}",
    )
    patterns = [generate.quoted(random.choice((*generate.PATTERNS, "foo-%", "5%", "fo_-%")))]
    numbers = [random.choice(("", "-")) + random.choice(generate.NUMBERS) for _ in range(2)]
    return parse(random.choice(shapes).format(*texts, *patterns, *numbers)), exclude


@many_seeds
@given(seed=st.integers(0, 2**32))
def test_random_rules_choose_the_same_rule_as_one_by_one(spark: SparkSession, seed: int) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    rules = [rule(random) for _ in range(random.choice((1, 5, 60)))]
    agree(spark, rules, [generate.record(random) for _ in range(200)])


def test_five_hundred_rules_with_texts_and_more_keep_their_order(spark: SparkSession) -> None:
    rules: list[Rule] = [(parse(f"msg.address = 'q{n % 200}' AND n = {n}"), None) for n in range(400)]
    rules += [(parse(f"msg.address==q{n}"), parse("n > 900") if n % 2 else None) for n in range(200)]
    rules += [(parse("msg.address LIKE 'q%'"), None)]
    records = [
        Record(None, b"", (("jms.JMSDestination", f"queue:q{q}".encode()), ("jms.n", str(n).encode())))
        for q, n in ((5, 5), (5, 205), (5, 6), (5, 901), (6, 901), (199, 399), (300, 1))
    ]
    assert agree(spark, rules, records) == [5, 205, 405, 600, 406, 399, 600]


def test_numbers_that_are_equal_only_as_floats_are_found(spark: SparkSession) -> None:
    texts = (
        "n = 16777217",
        "n = 16777216f",
        "n >= 9007199254740993",
        "n <= 0.1f",
        "n = 0.0",
        "n < -3.4e38f",
        "n = 0.1",
    )
    rules: list[Rule] = [(parse(text), None) for text in texts]
    records = [
        Record(None, b"", (("jms.n", number.encode()), ("jmsbridge.types", f"n={kind}".encode())))
        for number in ("16777216", "16777217", "9007199254740992", "9007199254740993", "0.1", "-0.0", "0", "NaN")
        for kind in ("float", "double", "long", "string", "boolean", "")
    ]
    records += [
        Record(None, b"", (("jms.n", text), ("jmsbridge.types", b"n=float"))) for text in (b"Infinity", b"-Infinity")
    ]
    for first in range(len(rules)):
        agree(spark, rules[first:] + rules[:first], records)


def test_keys_of_several_texts_are_not_taken_for_each_other(spark: SparkSession) -> None:
    pairs = [("a", "bc"), ("ab", "c"), ("", "abc"), ("abc", ""), ("1:a", "b"), ("1", ":ab"), ("\0", "1"), ("ä", "ä")]
    rules: list[Rule] = [(parse(f"a = '{a}' AND b = '{b}'"), None) for a, b in pairs]
    records = [Record(None, b"", (("jms.a", a.encode()), ("jms.b", b.encode()))) for a, b in pairs]
    assert agree(spark, rules, records) == list(range(len(pairs)))


def test_no_rules_choose_nothing(spark: SparkSession) -> None:
    assert spark_says(spark, [], [Record(None, b"", ())]) == [None]


def test_a_first_rule_that_is_always_true_reads_no_headers(spark: SparkSession) -> None:
    rules: list[Rule] = [(parse("TRUE"), None), (parse("a = 1"), None)]
    frame = frame_of(spark, [Record(None, b"", ())]).select(first_match(rules, F.col("headers")).alias("first"))
    assert frame.collect()[0][0] == 0
    jvm_plan = frame._jdf.queryExecution().analyzed().toString()
    assert "first_match_" not in jvm_plan
