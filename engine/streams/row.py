"""Rows: the argument of a topology's functions, with Spark Columns under the names of a Kafka record.

The compiler makes a `Row` for each node; functions given to `filter`, `map`, `select_key` and `to` read it and return
Columns or a changed Row. All its contents are expressions, which Spark computes when the query runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from engine.streams.casts import STRINGS, from_json

__all__ = ["HeaderView", "JvmFunctions", "Row", "TakenBranch", "interpreted"]

_CATALOG = "jmsbridge"
_CATALOG_CLASS = "jmsbridge.predicate.Functions"
"""Spark's catalog of the functions in `jvm/spark`, and the class that has them."""


class JvmFunctions:
    """Functions of `jmsbridge.predicate.Functions` in `jvm/spark`, for the frames of one session."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._are_declared = False

    def call(self, function: str, *arguments: Column) -> Column:
        """The result of a function; RuntimeError if the session lacks their jar."""
        if not self._are_declared:
            self._declare()
        quoted = function.replace("`", "``")
        return F.call_function(f"{_CATALOG}.`{quoted}`", *arguments)

    def _declare(self) -> None:
        jvm: Any = self._spark._jvm
        if isinstance(jvm.jmsbridge.predicate.Functions, JavaPackage):
            msg = "the Spark session lacks jms-bridge-spark.jar: add it to spark.jars or the driver's class path"
            raise RuntimeError(msg)
        self._spark.conf.set(f"spark.sql.catalog.{_CATALOG}", _CATALOG_CLASS)
        self._are_declared = True


class HeaderView:
    """Columns of single headers of a record.

    The look-ups are functions of `jvm/spark`. In headers as the journal's reader gives them, a header is found at the
    place where it was in the record before, without a copy.
    """

    def __init__(self, headers: Column, functions: JvmFunctions) -> None:
        """Creates the view of headers, `array<struct<key: string, value: binary>>`, nullable."""
        self._headers = headers
        self.functions = functions

    def has(self, name: str) -> Column:
        """True if there is a header of that name, with a value or without."""
        return self.call(f"has-header:{name}")

    def text(self, name: str) -> Column:
        """Text of the first header of that name; NULL without one or its value."""
        return self.call(f"header:{name}")

    def call(self, function: str) -> Column:
        """The result of a function of `jvm/spark` over the headers."""
        return self.functions.call(function, self._headers)


def interpreted(column: Column) -> Column:
    """The column, computed without generated code; for one whose code would be larger than Java compiles.

    Spark then also compiles what comes before it, in the order of the plan, separately.
    """
    # Spark has no generated code for functions over the values of a map, unlike those over arrays.
    return F.transform_values(F.create_map(F.lit(0), column), lambda _, value: value)[0]


@dataclass(frozen=True, slots=True, eq=False)
class TakenBranch:
    """Branch of a split that took a record, as Columns."""

    place: Column
    """The record's place right after the split; see `compile`."""
    first: int
    """Place of the first branch; the places of the other branches follow it."""
    branches: tuple[str, ...]

    @property
    def index(self) -> Column:
        """Index of the branch; NULL for a record that did not reach the split, or that no branch took."""
        offset = self.place - self.first
        return F.when(offset.between(0, len(self.branches) - 1), offset)

    def pick(self, values: Mapping[str, str]) -> Column:
        """The constant of the branch, from constants by branch name; NULL for a branch without one.

        One array look-up, which costs as much for five hundred branches as for five.
        """
        # JSON takes one call into the JVM, a Column for each constant would take one each. Spark folds the parsed array
        # into one constant.
        constants = from_json(F.lit(json.dumps([values.get(name) for name in self.branches])), STRINGS)
        # `get` gives NULL for an index outside the array.
        return F.get(constants, self.place - self.first)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A record at one node of a topology, as Columns; `replace` gives it another key, value, headers or trail."""

    key: Column
    """Key of the record: binary, nullable."""
    value: Column
    """Value of the record: binary, nullable."""
    headers: Column
    """Headers of the record: `array<struct<key: string, value: binary>>`, nullable."""
    topic: Column
    """The topic from which the record was read; `partition`, `offset` and `timestamp` are those of that topic."""
    partition: Column
    offset: Column
    timestamp: Column
    source_key: Column
    """The key as it was read."""
    source_header_view: HeaderView
    """View of the headers as they were read."""
    header_view: HeaderView
    """View of the headers as they were when the row was made; `replace` does not change it."""
    branches: Mapping[str, TakenBranch]
    """Branch taken at each earlier split, by the split's name."""
    trail: Column | None = None
    """Headers that are published behind `headers`, and behind those of the topology's origin; of the same type."""

    def replace(self, **changes: Column) -> Row:
        """A copy of the row with another key, value, headers or trail; TypeError for other names.

        What is not replaced is published from the record as it was read, without a copy.
        """
        unknown = changes.keys() - {"key", "value", "headers", "trail"}
        if unknown:
            raise TypeError(f"a row's key, value, headers and trail can be replaced, not {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = dict(changes)
        return replace(self, **fields)

    def __getattr__(self, name: str) -> NoReturn:
        """Raises AttributeError that says how a field is written."""
        text = f"a row has no '{name}'"
        if not name.startswith("_"):
            text += f": a field of the value is written row[{json.dumps(name)}]"
        raise AttributeError(text, name=name, obj=self)

    def __getitem__(self, field: str) -> Column:
        """A field of the record's value, where the topology has given its values fields."""
        return F.col(f"`{field}`")

    def header(self, name: str) -> Column:
        """Text of the first header of that name; NULL if the header is missing or has no value."""
        return self.header_view.text(name)

    def has_header(self, name: str) -> Column:
        """True if the record has a header of that name, with or without a value."""
        return self.header_view.has(name)

    def branch(self, split: str) -> Column:
        """Index of the branch of a split that took the record; NULL if no branch did."""
        return self.branches[split].index
