"""Journal positions found in the outputs, as bitmaps: millions of positions in a few hundred kilobytes.

Outputs are read in slices, one after the other, so that memory and the time between two reports of progress stay
bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from engine.message import ORIGIN, POSITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from engine.kafka.offsets import Offsets, Topics

__all__ = ["Bucket", "Published", "find", "records", "slices"]

_BITS = 32768
"""Number of positions in one of Spark's bitmaps."""
_NEVER = 2**63 - 1
"""Greater than any offset that Kafka gives."""
_SCHEMA = "known_partition int, bucket bigint, bitmap binary, highest bigint"


class Bucket(NamedTuple):
    """Bitmap of the found positions of a journal partition from `bucket * 32768` up to `(bucket + 1) * 32768 - 1`."""

    known_partition: int
    bucket: int
    bitmap: bytes
    highest: int
    """The highest position in the bitmap."""


@dataclass(frozen=True, slots=True)
class Published:
    """Journal positions found in the outputs."""

    rows: tuple[Bucket, ...] = ()

    def __or__(self, other: Published) -> Published:
        """The positions found in either or both."""
        found = {(row.known_partition, row.bucket): row for row in self.rows}
        for row in other.rows:
            at = row.known_partition, row.bucket
            found[at] = _merged(found[at], row) if at in found else row
        return Published(tuple(found.values()))

    @property
    def count(self) -> int:
        """Number of positions."""
        return sum(int.from_bytes(row.bitmap).bit_count() for row in self.rows)

    @property
    def highest(self) -> Offsets:
        """The highest position by journal partition; partitions without a position are left out."""
        found: Offsets = {}
        for row in self.rows:
            found[row.known_partition] = max(row.highest, found.get(row.known_partition, -1))
        return found

    def missing_in(self, frame: DataFrame) -> DataFrame:
        """Rows of a journal frame whose positions were not found, in unchanged order within each partition."""
        known = F.broadcast(frame.sparkSession.createDataFrame(list(self.rows), _SCHEMA))
        same = (F.col("partition") == F.col("known_partition")) & (F.expr(f"offset div {_BITS}") == F.col("bucket"))
        byte = F.conv(F.hex(F.substring("bitmap", _byte() + 1, F.lit(1))), 16, 10).cast("int")
        is_set = F.getbit(byte, (F.col("offset") % 8).cast("int")) == 1
        joined = frame.join(known, same, "left").where(~F.coalesce(is_set, F.lit(False)))
        return joined.select(*frame.columns)


def find(outputs: DataFrame, journal: str, bridge_id: str, since: Offsets) -> Published:
    """Positions in a frame of output records, from those in `since` on, by journal partition; reads the frame once."""
    found = _with_positions(outputs, journal, bridge_id)
    # An array from one text: Spark searches a map from its beginning for each record, and an expression for each
    # partition takes seconds to make.
    first = F.split(F.lit(",".join(str(since.get(each, _NEVER)) for each in range(max(since) + 1))), ",")
    rows = (
        found.where(F.col("offset") >= F.get(first.cast("array<bigint>"), F.col("partition")))
        .groupBy(F.col("partition").alias("known_partition"), F.expr(f"offset div {_BITS}").alias("bucket"))
        .agg(F.bitmap_construct_agg(F.col("offset") % _BITS).alias("bitmap"), F.max("offset").alias("highest"))
        .collect()
    )
    return Published(tuple(Bucket(row.known_partition, row.bucket, bytes(row.bitmap), row.highest) for row in rows))


def records(starts: Topics, ends: Topics) -> int:
    """Number of offsets from `starts` up to `ends`, over all topics and partitions."""
    return sum(ends[topic][each] - at for topic, offsets in starts.items() for each, at in offsets.items())


def slices(starts: Topics, ends: Topics, most: int, of_partition: int) -> Iterator[tuple[Topics, Topics]]:
    """Cuts the range from `starts` to `ends` into slices, each with a part of every partition that is not empty.

    A slice has about `most` records, or `of_partition` for each of these partitions if that is more: Spark makes a task
    for every partition of a slice. Yields the starts and ends of each slice.
    """
    partitions = sum(ends[topic][each] > at for topic, offsets in starts.items() for each, at in offsets.items())
    count = -(-records(starts, ends) // max(most, of_partition * partitions))
    for number in range(count):
        yield _cut(starts, ends, number, count), _cut(starts, ends, number + 1, count)


def _with_positions(frame: DataFrame, journal: str, bridge_id: str) -> DataFrame:
    """Journal positions in a frame of output records, as columns `partition` and `offset`.

    Records that this bridge did not make from this journal are left out. A record that passed several bridges has
    several positions, of which the last bridge wrote the last.
    """
    own = F.struct(F.lit(ORIGIN).alias("key"), F.lit(bridge_id).cast("binary").alias("value"))
    parts = F.split(_last_header("headers", POSITION), ":")
    # The name of a topic has no colon. `get` gives NULL for a missing part: Spark may move these conditions before the
    # check of the size.
    topic, partition, offset = (F.get("parts", index) for index in range(3))
    return (
        frame.where(F.array_contains("headers", own))
        .select(parts.alias("parts"))
        .where((F.size("parts") == 3) & (topic == journal))
        .select(partition.try_cast("int").alias("partition"), offset.try_cast("bigint").alias("offset"))
        .where("partition IS NOT NULL AND offset IS NOT NULL")
    )


def _last_header(headers: str, name: str) -> Column:
    last = F.try_element_at(headers, F.lit(-1))
    # Routed records have the header at the end, where no search is needed.
    named = F.filter(headers, lambda item: item["key"] == name)
    found = F.when(last["key"] == name, last["value"]).otherwise(F.try_element_at(named, F.lit(-1))["value"])
    return found.cast("string")


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
