"""Nodes of the router's plan alone; it also has some of `engine.topologies.library.nodes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Self

from pyspark.sql import Column

from engine.router.plan.row import PlanFunction, PlanRow
from engine.topologies.library.nodes import Node, Split

__all__ = ["CopyCondition", "CopySplit", "Fail", "Map", "RecordCondition"]


class RecordCondition(ABC):
    """Condition on a record alone, whatever branches it took.

    If all conditions of a split have one class, the class evaluates them together.
    """

    @abstractmethod
    def __call__(self, row: PlanRow) -> Column:
        """Boolean Column; NULL counts as false."""

    @classmethod
    @abstractmethod
    def first(cls, conditions: Sequence[Self], row: PlanRow) -> Column:
        """Index (int) of the first condition that is true; NULL if none is."""


class CopyCondition(RecordCondition):
    """Condition of a branch that gets a copy of a record, whichever other branches get one."""

    @classmethod
    @abstractmethod
    def every(cls, conditions: Sequence[Self], row: PlanRow) -> Column:
        """Indexes (array of int) of the conditions whose branches get a copy; -1 alone if there are none."""


@dataclass(frozen=True, slots=True)
class CopySplit(Split):
    """Passes copies of each record to its branches, to any number of them; their conditions are `CopyCondition`s."""


@dataclass(frozen=True, slots=True)
class Map(Node):
    """Passes each record as changed by a function."""

    change: Callable[[PlanRow], PlanRow] = field(kw_only=True)
    apart: bool = field(default=False, kw_only=True)
    """True if Spark computes the change apart from the rest: few records come here, and the change is a lot of code."""


@dataclass(frozen=True, slots=True)
class Fail(Node):
    """Stops the query at the first record, with an error whose text is made from the record."""

    is_end: ClassVar[bool] = True

    message: PlanFunction = field(kw_only=True)
