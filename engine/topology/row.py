"""The record as a topology's functions see it: Spark Columns under the names of a Kafka record.

A `Row` is made by the compiler for each node; functions given to `filter`, `map`, `select_key` and `to` read it and
return Columns or a changed Row. Everything in it is an expression: nothing is computed until the query runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.topology.nodes import ByBranch
from routes.predicate.columns import HeaderView
from routes.properties import HEADER_FIELDS

__all__ = ["Row", "Taken"]


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Which branch of a split a record took."""

    place: Column
    """The record's number right after the split; see `compile`."""
    first: int
    """That of the first branch, those of the others follow."""
    branches: tuple[str, ...]

    @property
    def index(self) -> Column:
        """Index of the branch; NULL for a record that did not come there, or that no branch took."""
        offset = self.place - self.first
        return F.when(offset.between(0, len(self.branches) - 1), offset)

    def pick(self, values: Mapping[str, str]) -> Column:
        """The constant that belongs to the branch; NULL for a branch without one."""
        # As JSON, because a Column for each would take a call into the JVM each; Spark makes one constant of it.
        constants = F.from_json(F.lit(json.dumps([values.get(name) for name in self.branches])), "array<string>")
        # `get` gives NULL for an index outside the array.
        return F.get(constants, self.place - self.first)


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
    source_properties: HeaderView
    """Looks into the headers it was read with."""
    properties: HeaderView
    """Looks into the headers as they were when the row was made."""
    branches: Mapping[str, Taken]
    """What happened at each split that came before, by its name."""

    def replace(self, **changes: Column) -> Row:
        """The same row with another key, value or headers."""
        unknown = changes.keys() - {"key", "value", "headers"}
        if unknown:
            raise TypeError(f"a row's key, value and headers can be replaced, not {', '.join(sorted(unknown))}")
        fields: dict[str, Any] = dict(changes)
        return replace(self, **fields)

    def header(self, name: str) -> Column:
        """The first Kafka header of that name as text; NULL if there is none or it has no value."""
        return self.properties.header(name)

    def has_header(self, name: str) -> Column:
        """Whether there is a Kafka header of that name, with a value or without."""
        return self.properties.has(name)

    def property(self, name: str) -> Column:
        """The text of a JMS field or property; NULL if the message has none."""
        return self.properties.text(name)

    def source_property(self, name: str) -> Column:
        """The same in the headers it was read with, whatever they have been replaced by."""
        return self.source_properties.text(name)

    def declared_type(self, name: str) -> Column:
        """The declared type of a JMS field or property (`routes.properties.JmsType`); empty text without one."""
        return F.lit(HEADER_FIELDS[name]) if name in HEADER_FIELDS else self.properties.kind(name)

    def branch(self, split: str) -> Column:
        """Index of the branch that a split handed the record to; NULL if it found none."""
        return self.branches[split].index

    def pick(self, values: ByBranch) -> Column:
        """The constant that belongs to the branch taken, as text; NULL for a branch without one."""
        return self.branches[values.split].pick(values.values)
