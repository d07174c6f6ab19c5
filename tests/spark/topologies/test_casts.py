"""Casts by type objects give what Spark's own casts by text give."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from engine.topologies.library.casts import BIGINT, BINARY, HEADERS, INT, STRING, STRINGS, cast, from_json, try_cast


@pytest.mark.parametrize(
    ("to", "text"),
    [
        (INT, "int"),
        (BIGINT, "bigint"),
        (STRING, "string"),
        (BINARY, "binary"),
        (HEADERS, "array<struct<key: string, value: binary>>"),
    ],
)
def test_a_type_is_the_one_that_its_text_means(spark: SparkSession, to: DataType, text: str) -> None:
    frame = spark.range(1).select(cast(F.lit(None), to).alias("ours"), F.lit(None).cast(text).alias("theirs"))

    assert frame.schema["ours"].dataType == frame.schema["theirs"].dataType == to


def test_a_value_that_does_not_fit_is_null_only_if_tried(spark: SparkSession) -> None:
    frame = spark.range(1)

    assert frame.select(try_cast(F.lit("7"), INT), try_cast(F.lit("x"), INT)).first() == (7, None)
    with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
        frame.select(cast(F.lit("x"), INT)).first()


def test_json_is_read_as_the_type(spark: SparkSession) -> None:
    row = spark.range(1).select(from_json(F.lit('["a", null]'), STRINGS), from_json(F.lit("7"), STRINGS)).first()

    assert row == (["a", None], None)
