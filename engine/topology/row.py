"""The record as a topology's functions see it: Spark Columns under the names of a Kafka record.

A `Row` is made by the compiler for each node; functions given to `filter`, `map`, `select_key` and `to` read it and
return Columns or a changed Row. Everything in it is an expression: nothing is computed until the query runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.topology.nodes import ByBranch
from routes.predicate.columns import HeaderView, View
from routes.properties import HEADER_FIELDS

__all__ = ["Row"]


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One record and what the topology knows of it; `key`, `value` and `headers` can be replaced."""

    key: Column
    """Binary, nullable."""
    value: Column
    """Binary, nullable."""
    headers: Column
    """`array<struct<key: string, value: binary>>`, nullable."""
    topic: Column
    """The topic it was read from, with `partition`, `offset` and `timestamp`."""
    partition: Column
    offset: Column
    timestamp: Column
    source_key: Column
    """The key it was read with."""
    properties: View
    """JMS fields and properties by name, as predicates read them."""
    branches: Mapping[str, tuple[Column, tuple[str, ...]]]
    """By split that came before: index of the branch taken (NULL: none, or not that way) and the branches' names."""

    def replace(self, **changes: Column) -> Row:
        """The same row with another key, value or headers."""
        unknown = changes.keys() - {"key", "value", "headers"}
        if unknown:
            raise TypeError(f"a row's key, value and headers can be replaced, not {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = dict(changes)
        return replace(self, **fields)

    def property(self, name: str) -> Column:
        """The text of a JMS field or property; NULL if the message has none."""
        return self.properties.text(name)

    def declared_type(self, name: str) -> Column:
        """The declared type of a JMS field or property (`routes.properties.JmsType`); empty text without one."""
        return F.lit(HEADER_FIELDS[name]) if name in HEADER_FIELDS else HeaderView(self.headers).kind(name)

    def header(self, name: str) -> Column:
        """The first Kafka header of that name as text; NULL if there is none or it has no value."""
        values = self.headers.getField("value")
        index = F.array_position(self.headers.getField("key"), name) - 1
        return F.get(values, index.cast("int")).cast("string")

    def branch(self, split: str) -> Column:
        """Index of the branch that a split handed the record to."""
        return self.branches[split][0]

    def pick(self, values: ByBranch) -> Column:
        """The constant that belongs to the branch taken, as text; NULL for a branch without one."""
        index, names = self.branches[values.split]
        constants = [values.values.get(name) for name in names]
        if len(set(constants)) == 1:
            return F.when(index.isNotNull(), F.lit(constants[0]))
        return F.get(F.array(*(F.lit(constant) for constant in constants)), index)
