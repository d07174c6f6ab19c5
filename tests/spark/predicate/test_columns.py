"""Spark says what the evaluator says: for thousands of random predicates and messages, and for many rules at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.message import Message, Record
from routes.predicate import Predicate, evaluate, parse
from routes.predicate.check import MAX_OPERATORS
from routes.predicate.columns import compile_predicate
from routes.predicate.parser import MAX_DEPTH
from tests.spark.predicate import generate

BATCHES = 4
MESSAGES = 100

many_seeds = settings(
    max_examples=BATCHES,
    deadline=None,
    derandomize=True,
    database=None,
    # One example is a Spark job of thousands of cases; a seed cannot be made smaller.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def frame_of(spark: SparkSession, records: Sequence[Record]) -> DataFrame:
    rows = [(list(record.headers),) for record in records]
    return spark.createDataFrame(rows, "headers array<struct<key: string, value: binary>>").coalesce(1)


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.conf.set(name, value)
    try:
        yield
    finally:
        spark.conf.unset(name)


def spark_says(
    spark: SparkSession, predicates: Sequence[Predicate], records: Sequence[Record]
) -> list[list[bool | None]]:
    headers = F.col("headers")
    columns = [compile_predicate(predicate, headers).alias(f"p{number}") for number, predicate in enumerate(predicates)]
    return [list(row) for row in frame_of(spark, records).select(*columns).collect()]


def agree(spark: SparkSession, predicates: Sequence[Predicate], records: Sequence[Record]) -> None:
    lookups = [Message.from_record(record).lookup for record in records]
    expected = [[evaluate(predicate, lookup) for predicate in predicates] for lookup in lookups]
    wrong = [
        f"{predicate.text[:200]}: {says!r} and not {truth!r} for {record.headers}"
        for record, row, truths in zip(records, spark_says(spark, predicates, records), expected, strict=True)
        for predicate, says, truth in zip(predicates, row, truths, strict=True)
        if says is not truth
    ]
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.parametrize(("whole_stage", "predicates"), [(True, 8), (False, 60)], ids=["fused", "projections"])
@many_seeds
@given(seed=st.integers(0, 2**32))
def test_spark_and_the_evaluator_agree_on_random_predicates_and_messages(
    spark: SparkSession, whole_stage: bool, predicates: int, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    drawn = [generate.predicate(random) for _ in range(predicates)]
    records = [generate.record(random) for _ in range(MESSAGES)]
    # Generated code comes in two forms: fused into one method with the source, or a method for each few expressions.
    with setting(spark, "spark.sql.codegen.wholeStage", str(whole_stage).lower()):
        agree(spark, drawn, records)


def test_interpreted_expressions_say_the_same(spark: SparkSession) -> None:
    random = Random(1)  # noqa: S311 (no secret is made of it)
    drawn = [generate.predicate(random) for _ in range(60)]
    records = [generate.record(random) for _ in range(MESSAGES)]
    with (
        setting(spark, "spark.sql.codegen.wholeStage", "false"),
        setting(spark, "spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ):
        agree(spark, drawn, records)


def test_the_deepest_and_longest_predicates_run(spark: SparkSession) -> None:
    many = ", ".join(f"'{number}'" for number in range(10_000))
    predicates = [
        parse("NOT " * (MAX_DEPTH - 2) + "a = 1"),
        parse("(" * 22 + "a = 1" + " OR a = 2) AND b = 1" * 22),
        parse("a" + " + a" * MAX_OPERATORS + " > 5"),
        parse("a" + " / b" * MAX_OPERATORS + " > 5"),
        parse("-a * (b - (a + (b * (a - b / (a * b))))) > b"),
        parse(" AND ".join(f"a <> {number}" for number in range(500))),
        parse(f"a IN ({many})"),
        parse(f"a NOT IN ({many}) OR b = 1"),
        parse("a LIKE '" + "%a" * 50 + "%b'"),
    ]
    records = [
        Record(None, b"", (("jms.a", text), ("jms.b", b"1"), ("jmsbridge.types", types)))
        for text in (b"5", b"0.5", b"9999", b"10000", b"a" * 10_000, b"\xff", b"1" * 100_000)
        for types in (b"", b"a=float", b"a=double,b=int", b"a=string")
    ]
    agree(spark, predicates, records)


def test_a_frame_without_headers_has_no_values(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,)], "headers array<struct<key: string, value: binary>>")
    predicates = [parse(text) for text in ("a IS NULL", "a = 1", "JMSPriority IS NULL", "msg.address <> 'x'")]
    row = frame.select(*(compile_predicate(predicate, F.col("headers")) for predicate in predicates)).collect()[0]
    assert list(row) == [True, None, True, None]


def test_a_predicate_reads_the_headers_that_it_is_given(spark: SparkSession) -> None:
    frame = frame_of(spark, [Record(None, b"", (("jms.a", b"1"), ("jms.b", b"2")))])
    changed = F.array(F.struct(F.lit("jms.a").alias("key"), F.lit("2").cast("binary").alias("value")))
    wanted = parse("a = 2 AND b IS NULL")
    assert frame.filter(compile_predicate(wanted, F.col("headers"))).count() == 0
    assert frame.withColumn("headers", changed).filter(compile_predicate(wanted, F.col("headers"))).count() == 1
