"""Expressions as people write them who know SQL or Kafka Streams: what the planner says of them, and where."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from engine.streams import Stream, StreamsBuilder, TopologyError, json, plan


def planned(spark: SparkSession, change: Callable[[Stream], object]) -> str:
    """The fault of a topology with a change of a stream."""
    builder = StreamsBuilder("said")
    stream = builder.stream("in", value=json("customer string, amount double, tags array<string>"))
    change(stream)
    stream.to("out")
    with pytest.raises(TopologyError) as caught:
        plan(builder.build(), spark)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "message", "caret"),
    [
        ("amount > 100 and", "'f': the expression ends before 'and', which would be a name for it", 13),
        ("amount > 100 AS large", "'f': the expression ends before 'large', which would be a name for it", 13),
        ("amount >\n  100 or", "'f': the expression ends before 'or', which would be a name for it", 6),
        ("amount > > 100", "'f': Syntax error at or near '>'", 9),
        ("amount > (100", "'f': Syntax error at or near end of input", 13),
        ("", "'f': Syntax error", 0),
    ],
)
def test_a_fault_of_syntax_is_shown_at_its_place(spark: SparkSession, text: str, message: str, caret: int) -> None:
    said, shown, place = planned(spark, lambda stream: stream.filter(text, name="f")).split("\n")
    assert said.startswith(message)
    assert shown.strip() in text
    assert place == "  " + " " * caret + "^"


AGGREGATE = "an aggregate such as sum belongs in aggregate(...), behind group_by or group_by_key"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.map_values("n", t="sum(amount)"), AGGREGATE),
        (lambda s: s.map_values("n", t=F.max("amount")), AGGREGATE),
        (lambda s: s.filter("sum(amount) > 5", name="n"), AGGREGATE),
        (lambda s: s.select_key("count(1)", name="n"), AGGREGATE),
        (lambda s: s.map_values("n", t="row_number() OVER (ORDER BY amount)"), "a window function sees one record"),
        (lambda s: s.map_values("n", t="explode(tags)"), "explode makes several records of one: use flat_map"),
        (lambda s: s.filter(lambda row: True, name="n"), "a function returns True, and not a Column"),
        (lambda s: s.filter(lambda row: "amount > 1", name="n"), "a function returns 'amount > 1', and not a Column"),
        (lambda s: s.map_values("n", t=5), "this is 5, and not a Column: write text of Spark SQL, or F.lit(5)"),
        (lambda s: s.group_by_key().aggregate("n", t="sum(amount) and"), "the expression ends before 'and'"),
    ],
)
def test_what_is_no_expression_of_one_record_is_a_fault_of_its_node(
    spark: SparkSession, change: Callable[[Stream], object], message: str
) -> None:
    assert planned(spark, change).startswith(f"'n': {message}")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda row: row.amount > 5, 'AttributeError: .*a field of the value is written row\\["amount"\\]'),
        (lambda row: missing > 5, "NameError: name 'missing' is not defined"),  # type: ignore[name-defined] # noqa: F821
    ],
)
def test_a_function_that_fails_is_a_fault_of_its_node_with_its_line(
    spark: SparkSession, function: Callable[..., object], message: str
) -> None:
    said = planned(spark, lambda stream: stream.filter(function, name="f"))  # type: ignore[arg-type]
    assert re.fullmatch(rf"'f': .*test_guidance.py:\d+: {message}.*", said), said


def test_spark_prints_nothing_of_its_own(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    assert "missing" in planned(spark, lambda stream: stream.filter("missing > 5"))
    assert "missing" in planned(spark, lambda stream: stream.filter(F.col("missing") > 5))
    assert capfd.readouterr() == ("", "")
