"""Rows of the router's plan: messages as Columns, as they are and as they were read, with the branches they took."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as F

from engine.topologies.library.casts import STRINGS, from_json
from engine.topologies.library.row import HeaderView, Row

__all__ = ["PlanFunction", "PlanRow", "TakenBranch", "interpreted"]


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PlanRow(Row):
    """A message at one node of the plan, as Columns; `replace` gives it another key, value, headers or trail.

    `header_view` is of the headers as they were when the row was made; `replace` does not change it.
    """

    source_key: Column
    """The key as it was read."""
    source_value: Column
    """The value as it was read."""
    source_header_view: HeaderView
    """View of the headers as they were read."""
    branches: Mapping[str, TakenBranch]
    """Branch taken at each earlier split, by the split's name."""
    copy: Column
    """Number of the copy of the message, from 0."""
    trail: Column | None = None
    """Headers that are published behind `headers`, and behind those of the plan's origin; of the same type."""
    left: Column | None = None
    """The value as changes of the route leave it, computed once; NULL if nothing changes it, or if that fails."""

    def replace(self, **changes: Column) -> PlanRow:
        """A copy of the row with another key, value, headers, trail or `left`; TypeError for other names.

        What is not replaced is published from the record as it was read, without a copy.
        """
        unknown = changes.keys() - {"key", "value", "headers", "trail", "left"}
        if unknown:
            raise TypeError(f"a row has no {', '.join(sorted(unknown))} that can be replaced")
        fields: dict[str, Any] = dict(changes)
        return replace(self, **fields)

    def branch(self, split: str) -> Column:
        """Index of the branch of a split that took the record; NULL if no branch did."""
        return self.branches[split].index


PlanFunction: TypeAlias = Callable[[PlanRow], Column]
"""A function from a row to a Column: a condition (boolean; NULL counts as false), a key, a topic or a text."""
