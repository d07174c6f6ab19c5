"""Names of the JVM that are looked up once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_class_and_its_static_methods_are_looked_up_once(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    assert jvm.functions is jvm.functions
    assert jvm.functions.lit is jvm.functions.lit
    assert jvm.jmsbridge.figures.RowCounters is jvm.jmsbridge.figures.RowCounters
    assert [jvm.java.lang.Math.abs(number) for number in (-1, 2)] == [1, 2]


def test_the_value_of_a_static_field_is_not_kept(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    assert jvm.java.lang.Integer.MAX_VALUE == 2**31 - 1
    assert "MAX_VALUE" not in vars(jvm.java.lang.Integer)
