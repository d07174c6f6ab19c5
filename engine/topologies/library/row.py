"""Rows: the argument of a topology's functions, with Spark Columns under the names of a Kafka record.

A `Row` is made for each node; functions given to `filter`, `select_key`, `map_values` and `to` read it and return
Columns. All its contents are expressions, which Spark computes when the topology runs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from py4j.java_gateway import JavaPackage
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

__all__ = ["HeaderView", "JvmFunctions", "Row"]

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

    def content(self, name: str) -> Column:
        """Bytes of the first header of that name; NULL without one or its value."""
        return F.get(F.filter(self._headers, lambda each: each["key"] == F.lit(name)), F.lit(0))["value"]

    def call(self, function: str, *more: Column) -> Column:
        """The result of a function of `jvm/spark` over the headers, and over further columns."""
        return self.functions.call(function, self._headers, *more)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A record at one node of a topology, as Columns."""

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
    header_view: HeaderView
    """View of the headers."""

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

    def header_bytes(self, name: str) -> Column:
        """Bytes of the first header of that name; NULL if the header is missing or has no value."""
        return self.header_view.content(name)

    def has_header(self, name: str) -> Column:
        """True if the record has a header of that name, with or without a value."""
        return self.header_view.has(name)
