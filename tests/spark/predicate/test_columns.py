"""Spark says what the evaluator says: for thousands of random predicates and messages, and for many rules at once."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from engine.message import Message, Record
from routes.predicate import Predicate, evaluate, identifiers
from routes.predicate.columns import compile_predicate, extract
from tests.spark.predicate import generate

BATCHES = 6
PREDICATES = 60
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


def spark_says(
    spark: SparkSession, predicates: Sequence[Predicate], records: Sequence[Record], *, exact: bool = True
) -> list[list[bool | None]]:
    names = sorted(frozenset().union(*(identifiers(predicate) for predicate in predicates)))
    frame, view = extract(frame_of(spark, records), names)
    columns = [
        compile_predicate(predicate, view, exact=exact).alias(f"p{number}")
        for number, predicate in enumerate(predicates)
    ]
    return [list(row) for row in frame.select(*columns).collect()]


@pytest.mark.parametrize("whole_stage", [True, False], ids=["whole-stage", "projections"])
@many_seeds
@given(seed=st.integers(0, 2**32))
def test_spark_and_the_evaluator_agree_on_random_predicates_and_messages(
    spark: SparkSession, whole_stage: bool, seed: int
) -> None:
    random = Random(seed)  # noqa: S311 (no secret is made of it)
    predicates = [generate.predicate(random) for _ in range(PREDICATES)]
    records = [generate.record(random) for _ in range(MESSAGES)]
    messages = [Message.from_record(record) for record in records]
    expected = [[evaluate(predicate, message.lookup) for predicate in predicates] for message in messages]
    spark.conf.set("spark.sql.codegen.wholeStage", str(whole_stage).lower())
    try:
        found = spark_says(spark, predicates, records)
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")
    wrong = [
        f"{predicate}: {says!r} and not {truth!r} for {record.headers}"
        for record, row, truths in zip(records, found, expected, strict=True)
        for predicate, says, truth in zip(predicates, row, truths, strict=True)
        if says is not truth
    ]
    assert not wrong, "\n".join(wrong[:10])
