"""The journal positions that outputs hold, as bitmaps: millions of them in a few hundred kilobytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from engine.spark.positions import with_positions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from engine.spark.positions import Offsets

__all__ = ["Published", "find"]

_BITS = 32768
"""Positions in one of Spark's bitmaps."""
_SCHEMA = "known_partition int, bucket bigint, bitmap binary, highest bigint"


@dataclass(frozen=True, slots=True)
class Published:
    """What was found in the outputs, from some position of each journal partition on."""

    rows: tuple[Row, ...]
    """For each journal partition and bucket of positions: its bitmap, and the highest position in it."""

    @property
    def count(self) -> int:
        """How many positions there are."""
        return sum(int.from_bytes(row.bitmap).bit_count() for row in self.rows)

    @property
    def highest(self) -> Offsets:
        """The highest position by journal partition; partitions without one are missing."""
        found: Offsets = {}
        for row in self.rows:
            found[row.known_partition] = max(row.highest, found.get(row.known_partition, -1))
        return found

    def missing_in(self, frame: DataFrame) -> DataFrame:
        """The rows of a journal frame whose position is not among these, in unchanged order in each partition."""
        known = F.broadcast(frame.sparkSession.createDataFrame(list(self.rows), _SCHEMA))
        same = (F.col("partition") == F.col("known_partition")) & (F.expr(f"offset div {_BITS}") == F.col("bucket"))
        byte = F.conv(F.hex(F.substring("bitmap", _byte() + 1, F.lit(1))), 16, 10).cast("int")
        is_set = F.getbit(byte, (F.col("offset") % 8).cast("int")) == 1
        joined = frame.join(known, same, "left").where(~F.coalesce(is_set, F.lit(False)))
        return joined.select(*frame.columns)


def find(outputs: DataFrame, journal: str, bridge_id: str, since: Offsets) -> Published:
    """The positions that a frame of output records names, at or behind `since`. Reads the frame once."""
    found = with_positions(outputs, journal, bridge_id)
    first = F.create_map(*(F.lit(value) for pair in since.items() for value in pair))
    rows = (
        found.where(F.col("offset") >= F.try_element_at(first, F.col("partition")))
        .groupBy(F.col("partition").alias("known_partition"), F.expr(f"offset div {_BITS}").alias("bucket"))
        .agg(F.bitmap_construct_agg(F.col("offset") % _BITS).alias("bitmap"), F.max("offset").alias("highest"))
        .collect()
    )
    return Published(tuple(rows))


def _byte() -> Column:
    return F.expr(f"cast(offset % {_BITS} div 8 as int)")
