"""Nodes of a topology: frozen values, each with one step of processing and the names of its parents.

`dsl` makes them, `describe` prints them, `compile` turns them into a query. A client of the package brings conditions,
choices of topics and a language of its own by implementing `RecordCondition`, `TopicChoice` and `TextLanguage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeAlias

from pyspark.sql import Column

from engine.streams.row import Row

__all__ = [
    "Branch",
    "Fail",
    "Filter",
    "Map",
    "Merge",
    "Node",
    "RecordCondition",
    "RowFunction",
    "SelectKey",
    "SinkNode",
    "SourceNode",
    "Split",
    "TextLanguage",
    "TopicChoice",
    "children",
]


RowFunction: TypeAlias = Callable[[Row], Column]
"""A function from a row to a Column: a condition (boolean; NULL counts as false), a key, a topic or a text."""


class RecordCondition(ABC):
    """Condition on a record alone, whatever branches it took.

    If all conditions of a split have one class, the class evaluates them together.
    """

    @abstractmethod
    def __call__(self, row: Row) -> Column:
        """Boolean Column; NULL counts as false."""

    @classmethod
    @abstractmethod
    def first(cls, conditions: Sequence[Self], row: Row) -> Column:
        """Index (int) of the first condition that is true; NULL if none is."""


class TopicChoice(ABC):
    """Function from a row to a topic, one of those that are known before the topology runs."""

    @property
    @abstractmethod
    def topics(self) -> Mapping[str, str]:
        """The topics, each under the label that a drawing of the topology shows beside it."""

    @abstractmethod
    def __call__(self, row: Row) -> Column:
        """Name of the topic; NULL for a record that is not published."""

    @abstractmethod
    def __str__(self) -> str:
        """The choice as the description of the topology shows it."""

    @abstractmethod
    def faults(self, splits: Mapping[str, Sequence[str]]) -> Iterable[str]:
        """Faults of the choice in a topology with these splits, each with the names of its branches."""


class TextLanguage(Protocol):
    """Language of the conditions and keys that a builder is given as text; both methods may raise BridgeError."""

    def condition(self, text: str) -> RowFunction:
        """The condition that the text means."""

    def key(self, text: str) -> RowFunction:
        """The key that the text means, as text or binary."""


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

    condition: RowFunction = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Map(Node):
    """Passes each record as changed by a function."""

    change: Callable[[Row], Row] = field(kw_only=True)
    apart: bool = field(default=False, kw_only=True)
    """Whether Spark computes the change apart from the rest: few records come here, and the change is a lot of code."""


@dataclass(frozen=True, slots=True)
class SelectKey(Node):
    """Passes each record with another key."""

    key: RowFunction = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Split(Node):
    """Passes each record to the first of its branches whose condition accepts it; other records end here."""


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """Branch of a split."""

    condition: RowFunction | None = field(kw_only=True)
    """Condition of the records that the branch takes; None for the default branch, which takes all others."""


@dataclass(frozen=True, slots=True)
class Merge(Node):
    """Passes the records of several streams as one."""


@dataclass(frozen=True, slots=True)
class SinkNode(Node):
    """Publishes each record to its topic, constant or chosen; a record whose topic is NULL is not published."""

    topic: str | RowFunction = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Fail(Node):
    """Stops the query at the first record, with an error whose text is made from the record."""

    message: RowFunction = field(kw_only=True)


def children(nodes: Iterable[Node]) -> Mapping[str, Sequence[Node]]:
    """The nodes that consume the records of each node, by its name; without those whose records no node consumes."""
    found: dict[str, list[Node]] = {}
    for node in nodes:
        for parent in dict.fromkeys(node.parents):
            found.setdefault(parent, []).append(node)
    return found
