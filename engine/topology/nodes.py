"""The nodes a topology is made of: frozen values that say what happens to records, and from where they come.

`dsl` makes them, `describe` prints them, `compile` turns them into a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Union

if TYPE_CHECKING:
    from pyspark.sql import Column

    from engine.topology.row import Row
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
    "Sink",
    "Source",
    "Split",
    "children",
]

Condition = Union["Predicate", Callable[["Row"], "Column"]]
"""A parsed predicate, or a function from the row to a boolean Column; NULL counts as false."""


@dataclass(frozen=True, slots=True)
class ByBranch:
    """A constant for each branch of a split that the record passed: a topic, a key, a setting.

    Compiles to one array look-up, so that it costs the same for five branches and for five hundred.
    """

    split: str
    """Name of the split."""
    values: Mapping[str, str]
    """Value by branch name; a branch that is missing has none (NULL)."""


@dataclass(frozen=True, slots=True)
class Node:
    """A step in a topology. `parents` are the names of the nodes whose records it takes."""

    name: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source(Node):
    """Records of one topic."""

    topic: str = ""


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Passes the records that the condition is true for; the others end here."""

    condition: Condition = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Map(Node):
    """Passes each record changed."""

    change: Callable[[Row], Row] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SelectKey(Node):
    """Passes each record with another key."""

    key: Callable[[Row], Column] | str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Split(Node):
    """Hands each record to the first of its branches that wants it; others end here."""


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """One way out of a split."""

    condition: Condition | None = field(kw_only=True)
    """None: the default branch."""
    unless: Predicate | None = field(kw_only=True, default=None)
    """Records that this is true for are not wanted."""


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """The records of several streams as one."""


@dataclass(frozen=True, slots=True)
class Sink(Node):
    """Publishes each record."""

    topic: str | ByBranch | Callable[[Row], Column] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Fail(Node):
    """Stops the query at the first record, with a text made from it."""

    message: Callable[[Row], Column] = field(kw_only=True)


def children(nodes: Iterable[Node], name: str) -> tuple[Node, ...]:
    """The nodes that take the records of the one so named."""
    return tuple(node for node in nodes if name in node.parents)
