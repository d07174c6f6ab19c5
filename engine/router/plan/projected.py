"""Projections over a frame, which Spark analyses all at once: analyses after each would take half of a plan's time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Projected"]


class Projected:
    """Frame that grows by projections."""

    def __init__(self, frame: DataFrame) -> None:
        self._session = frame.sparkSession
        jvm: Any = self._session._jvm
        self._plan = jvm.jmsbridge.kafka.Projected(frame._jdf)

    def select(self, *columns: Column) -> None:
        """Adds a projection to these columns alone."""
        named: tuple[Any, ...] = columns
        self._plan.select([column._jc for column in named])

    def add(self, columns: Mapping[str, Column]) -> None:
        """Adds new columns, by their names, beside the present ones."""
        if columns:
            self.select(F.col("*"), *(column.alias(name) for name, column in columns.items()))

    def frame(self) -> DataFrame:
        """The frame with all projections; AnalysisException if one refers to a column that is not there."""
        return DataFrame(self._plan.frame(), self._session)
