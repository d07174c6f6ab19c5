"""Casts of Columns that do without Spark's parser of types, whose first use takes most of a second of processor time.

`Column.cast` has the text of a type parsed, and looks up the session for a type that is given as an object;
`functions.from_json` has the parser try its text first, and fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

if TYPE_CHECKING:
    from collections.abc import MutableMapping

__all__ = ["BIGINT", "BINARY", "HEADERS", "INT", "STRING", "STRINGS", "cast", "from_json", "try_cast"]

BINARY, STRING = BinaryType(), StringType()
INT, BIGINT = IntegerType(), LongType()
HEADERS = ArrayType(StructType([StructField("key", STRING), StructField("value", BINARY)]))
"""Headers of a record."""
STRINGS = ArrayType(STRING)

_java_types: MutableMapping[Any, dict[DataType, Any]] = WeakKeyDictionary()
"""Java's objects for types, by JVM."""


def cast(column: Column, to: DataType) -> Column:
    """The column as another type; a value that does not fit ends the query."""
    return _column(_java(column).cast(_java_type(to)))


def try_cast(column: Column, to: DataType) -> Column:
    """The column as another type; NULL for a value that does not fit."""
    return _column(_java(column).try_cast(_java_type(to)))


def from_json(column: Column, to: DataType) -> Column:
    """The value of a column of JSON text; NULL if it does not fit the type."""
    functions = getattr(_jvm(), "org.apache.spark.sql.functions")
    return _column(functions.from_json(_java(column), _java_type(to)))


def _java(column: Column) -> Any:
    return column._jc


def _column(java: Any) -> Column:
    make: Any = Column
    made: Column = make(java)
    return made


def _jvm() -> Any:
    assert SparkContext._jvm is not None, "a Column exists, so there is a JVM"
    return SparkContext._jvm


def _java_type(kind: DataType) -> Any:
    jvm = _jvm()
    known = _java_types.setdefault(jvm, {})
    if kind not in known:
        known[kind] = getattr(jvm, "org.apache.spark.sql.types.DataType").fromJson(kind.json())
    return known[kind]
