"""The journal positions that outputs hold, as bitmaps: millions of them in a few hundred kilobytes.

Outputs are read in slices, one after the other, so that neither memory nor silence grows with what there is to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from engine.spark.positions import with_positions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from engine.spark.positions import Offsets, Topics

__all__ = ["Bucket", "Published", "find", "records", "slices"]

_BITS = 32768
"""Positions in one of Spark's bitmaps."""
_SCHEMA = "known_partition int, bucket bigint, bitmap binary, highest bigint"


class Bucket(NamedTuple):
    """The positions of a journal partition from `bucket * 32768` on, before those of the next one."""

    known_partition: int
    bucket: int
    bitmap: bytes
    highest: int
    """The highest position in it."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was found in the outputs, from some position of each journal partition on."""

    rows: tuple[Bucket, ...] = ()

    def __or__(self, other: Published) -> Published:
        """What is in either."""
        found = {(row.known_partition, row.bucket): row for row in self.rows}
        for row in other.rows:
            at = row.known_partition, row.bucket
            found[at] = _merged(found[at], row) if at in found else row
        return Published(tuple(found.values()))

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
    return Published(tuple(Bucket(row.known_partition, row.bucket, bytes(row.bitmap), row.highest) for row in rows))


def records(starts: Topics, ends: Topics) -> int:
    """How many offsets there are between the two."""
    return sum(ends[topic][each] - at for topic, offsets in starts.items() for each, at in offsets.items())


def slices(starts: Topics, ends: Topics, most: int) -> Iterator[tuple[Topics, Topics]]:
    """What is between the two in parts of about so many records, each with a share of every partition."""
    count = -(-records(starts, ends) // most)
    for number in range(count):
        yield _cut(starts, ends, number, count), _cut(starts, ends, number + 1, count)


def _cut(starts: Topics, ends: Topics, number: int, count: int) -> Topics:
    return {
        topic: {each: at + (ends[topic][each] - at) * number // count for each, at in offsets.items()}
        for topic, offsets in starts.items()
        if offsets != ends[topic]
    }


def _merged(one: Bucket, other: Bucket) -> Bucket:
    bits = int.from_bytes(one.bitmap) | int.from_bytes(other.bitmap)
    return one._replace(bitmap=bits.to_bytes(len(one.bitmap)), highest=max(one.highest, other.highest))


def _byte() -> Column:
    return F.expr(f"cast(offset % {_BITS} div 8 as int)")
