"""Nodes of a topology: frozen values, each with one step of processing and the names of its parents.

`dsl` makes them, `describe` prints them, `compile` turns them into a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pyspark.sql import Column

    from engine.streams.row import Row
    from routes.predicate.nodes import Predicate

__all__ = [
    "Branch",
    "ByBranch",
    "Condition",
    "Fail",
    "Filter",
    "Map",
    "Merge",
    "Node",
    "SelectKey",
    "SinkNode",
    "SourceNode",
    "Split",
    "children",
]

Condition = Union["Predicate", Callable[["Row"], "Column"]]
"""A parsed predicate, or a function from the row to a boolean Column; NULL counts as false."""


@dataclass(frozen=True, slots=True)
class ByBranch:
    """A constant for each branch of a split that the record has passed: a topic, a key, a setting.

    Compiles to one array look-up, which costs as much for five hundred branches as for five.
    """

    split: str
    """Name of the split."""
    values: Mapping[str, str]
    """Value by branch name; NULL for a branch that is missing."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step in a topology; `parents` are the names of the nodes whose records it consumes."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceNode(Node):
    """Reads the records of one topic."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Passes the records for which the condition is true; the others end here."""

    condition: Condition = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Map(Node):
    """Passes each record as changed by a function."""

    change: Callable[[Row], Row] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SelectKey(Node):
    """Passes each record with another key."""

    key: Callable[[Row], Column] | str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Split(Node):
    """Passes each record to the first of its branches whose conditions accept it; other records end here."""


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """Branch of a split."""

    condition: Condition | None = field(kw_only=True)
    """Condition of the records that the branch takes; None for the default branch, which takes all others."""
    unless: Predicate | None = field(kw_only=True, default=None)
    """Predicate of records that the branch does not take although `condition` is true."""


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """Passes the records of several streams as one."""


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """Publishes each record to its topic; a record whose topic is NULL is not published."""

    topic: str | ByBranch | Callable[[Row], Column] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Fail(Node):
    """Stops the query at the first record, with an error whose text is made from the record."""

    message: Callable[[Row], Column] = field(kw_only=True)


def children(nodes: Iterable[Node], name: str) -> tuple[Node, ...]:
    """The nodes that consume the records of the node of that name."""
    return tuple(node for node in nodes if name in node.parents)
