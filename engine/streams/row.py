"""Rows: the argument of a topology's functions, with Spark Columns under the names of a Kafka record.

The compiler makes a `Row` for each node; functions given to `filter`, `map`, `select_key` and `to` read it and return
Columns or a changed Row. All its contents are expressions, which Spark computes when the query runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.streams.nodes import ByBranch
from routes.predicate.columns import HeaderView
from routes.properties import HEADER_FIELDS

__all__ = ["Row", "TakenBranch"]


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
        """The constant of the branch; NULL for a branch without one."""
        # JSON takes one call into the JVM, a Column for each constant would take one each. Spark folds the parsed array
        # into one constant.
        constants = F.from_json(F.lit(json.dumps([values.get(name) for name in self.branches])), "array<string>")
        # `get` gives NULL for an index outside the array.
        return F.get(constants, self.place - self.first)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A record at one node of a topology, as Columns; `replace` gives it another `key`, `value` or `headers`."""

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
    source_properties: HeaderView
    """View of the headers as they were read."""
    properties: HeaderView
    """View of the headers as they were when the row was made; `replace` does not change it."""
    branches: Mapping[str, TakenBranch]
    """Branch taken at each earlier split, by the split's name."""

    def replace(self, **changes: Column) -> Row:
        """A copy of the row with another key, value or headers; TypeError for other names."""
        unknown = changes.keys() - {"key", "value", "headers"}
        if unknown:
            raise TypeError(f"a row's key, value and headers can be replaced, not {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = dict(changes)
        return replace(self, **fields)

    def header(self, name: str) -> Column:
        """Text of the first Kafka header of that name; NULL if the header is missing or has no value."""
        return self.properties.header(name)

    def has_header(self, name: str) -> Column:
        """True if the record has a Kafka header of that name, with or without a value."""
        return self.properties.has(name)

    def property(self, name: str) -> Column:
        """Text of a JMS field or property; NULL if the message has none."""
        return self.properties.text(name)

    def source_property(self, name: str) -> Column:
        """Text of a JMS field or property in the headers as they were read; NULL if the message has none."""
        return self.source_properties.text(name)

    def declared_type(self, name: str) -> Column:
        """Declared type of a JMS field or property (`routes.properties.JmsType`); empty text if it has none."""
        return F.lit(HEADER_FIELDS[name]) if name in HEADER_FIELDS else self.properties.kind(name)

    def branch(self, split: str) -> Column:
        """Index of the branch of a split that took the record; NULL if no branch did."""
        return self.branches[split].index

    def pick(self, values: ByBranch) -> Column:
        """The constant of the branch that took the record, as text; NULL for a branch without one."""
        return self.branches[values.split].pick(values.values)
