"""Journal positions found in the outputs, as bitmaps: millions of positions in a few hundred kilobytes.

A message with several publications is in the outputs with a copy for each; each copy has bitmaps of its own.

Outputs are read in slices, one after the other, so that memory and the time between two reports of progress stay
bounded. Others may write to these topics too: `Proof` tells the router's own records from theirs, which are counted
and change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from engine.message import ORIGIN, POSITION
from engine.record import SEAL
from engine.topologies.library.casts import BINARY, STRING, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, DataFrame

    from engine.kafka.offsets import Offsets, Topics

__all__ = ["Bucket", "ForeignRecords", "Proof", "Published", "find", "records", "slices"]

_BITS = 32768
"""Number of positions in one of Spark's bitmaps."""
_NEVER = 2**63 - 1
"""Greater than any offset that Kafka gives."""
_STAGE, _SINK = "__connect.errors.stage", "sink "
"""Header of dead letters, and how it begins in those that a sink wrote: they have the position of the routed record."""
_SCHEMA = "known_partition int, bucket bigint, bitmap binary, highest bigint, known_copy int"


class Bucket(NamedTuple):
    """Bitmap of the found positions of a journal partition from `bucket * 32768` up to `(bucket + 1) * 32768 - 1`."""

    known_partition: int
    bucket: int
    bitmap: bytes
    highest: int
    """The highest position in the bitmap."""
    known_copy: int = 0
    """Number of the copies of messages that were found at these positions."""


class ForeignRecords(NamedTuple):
    """Records of one topic that name this bridge and its journal, but that the router did not write."""

    topic: str
    records: int
    """Number of them."""
    partition: int
    """Partition of the first of them."""
    offset: int
    """Offset of the first of them, in the lowest partition."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The records of outputs that count as written by the last run, and the positions in them that are believed."""

    journal: str
    bridge_id: str
    since: Offsets
    """First position that is believed, by journal partition; those of other partitions are not."""
    until: Offsets
    """First position that is not believed any more: the end of the journal when the last run had ended."""
    is_own: Callable[[Column, Column, Column], Column]
    """True for an own record, by its last seal, its last position (both binary, may be NULL) and its topic."""
    letter_topic: str = ""
    """Topic of dead letters: those of sinks name the position of a record that the router wrote elsewhere."""


@dataclass(frozen=True, slots=True)
class Published:
    """Journal positions found in the outputs."""

    rows: tuple[Bucket, ...] = ()
    foreign: tuple[ForeignRecords, ...] = ()

    def __or__(self, other: Published) -> Published:
        """The positions found in either or both."""
        rows = {(row.known_partition, row.bucket, row.known_copy): row for row in self.rows}
        for row in other.rows:
            key = row.known_partition, row.bucket, row.known_copy
            rows[key] = _merged(rows[key], row) if key in rows else row
        foreign = {each.topic: each for each in self.foreign}
        for each in other.foreign:
            foreign[each.topic] = _joined(foreign[each.topic], each) if each.topic in foreign else each
        return Published(tuple(rows.values()), tuple(foreign.values()))

    @property
    def count(self) -> int:
        """Number of positions, once for each copy."""
        return sum(int.from_bytes(row.bitmap).bit_count() for row in self.rows)

    @property
    def highest(self) -> Offsets:
        """The highest position by journal partition; partitions without a position are left out."""
        offsets: Offsets = {}
        for row in self.rows:
            offsets[row.known_partition] = max(row.highest, offsets.get(row.known_partition, -1))
        return offsets

    def missing_in(self, frame: DataFrame) -> DataFrame:
        """Rows of a journal frame whose positions were not found, in unchanged order within each partition."""
        return self._missing(frame, "partition", "offset", F.lit(0))

    def missing_copies_in(self, frame: DataFrame) -> DataFrame:
        """Rows of copies that were not found, of a frame with `source_partition`, `source_offset` and `copy`."""
        return self._missing(frame, "source_partition", "source_offset", F.col("copy"))

    def _missing(self, frame: DataFrame, partition: str, offset: str, copy: Column) -> DataFrame:
        known = F.broadcast(frame.sparkSession.createDataFrame(list(self.rows), _SCHEMA))
        same = (F.col(partition) == F.col("known_partition")) & (F.expr(f"{offset} div {_BITS}") == F.col("bucket"))
        same &= F.col("known_copy") == copy
        byte = F.conv(F.hex(F.substring("bitmap", _byte(offset) + 1, F.lit(1))), 16, 10).cast("int")
        is_set = F.getbit(byte, (F.col(offset) % 8).cast("int")) == 1
        joined = frame.join(known, same, "left").where(~F.coalesce(is_set, F.lit(False)))
        return joined.select(*frame.columns)


def find(outputs: DataFrame, proof: Proof) -> Published:
    """Positions in a frame of output records, with the columns of Spark's Kafka source; reads the frame once."""
    offset = F.col("at")
    rows = (
        _with_positions(outputs, proof)
        .groupBy("foreign", F.col("in").alias("known_partition"), F.expr(f"at div {_BITS}").alias("bucket"), "copy")
        .agg(
            F.bitmap_construct_agg(offset % _BITS).alias("bitmap"),
            F.max(offset).alias("highest"),
            F.count("*").alias("count"),
            F.min(F.struct("partition", "offset")).alias("first"),
        )
        .collect()
    )
    found = [
        Bucket(each.known_partition, each.bucket, bytes(each.bitmap), each.highest, each["copy"])
        for each in rows
        if not each.foreign
    ]
    foreign = [ForeignRecords(each.foreign, each["count"], *each.first) for each in rows if each.foreign is not None]
    return Published(tuple(found), tuple(foreign))


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


def _with_positions(frame: DataFrame, proof: Proof) -> DataFrame:
    """Own records of outputs, with their journal position in the columns `in` and `at`, and foreign ones.

    Foreign records have their topic in the column `foreign`, and no position. Records that do not name this bridge and
    its journal are left out. A record that passed several bridges has several positions, of which the last bridge wrote
    the last.
    """
    origin = F.struct(F.lit(ORIGIN).alias("key"), cast(F.lit(proof.bridge_id), BINARY).alias("value"))
    begin = f"{proof.journal}:"
    # `get` gives NULL for a missing part: Spark may move these conditions before the check of the size.
    parts = F.split(F.substring("position", len(begin) + 1, 1 << 30), ":")
    partition, offset = F.get(parts, 0).try_cast("int"), F.get(parts, 1).try_cast("bigint")
    copy = F.when(F.size(parts) == 3, F.get(parts, 2).try_cast("int")).otherwise(0)
    is_position = F.size(parts).between(2, 3) & partition.isNotNull() & offset.isNotNull() & (copy >= 0)
    is_own = is_position & proof.is_own(F.col("seal"), cast(F.col("position"), BINARY), F.col("topic"))
    size = max(proof.since, default=0) + 1
    is_there = offset < F.get(_by_partition(proof.until, size, 0), partition)
    is_new = offset >= F.get(_by_partition(proof.since, size, _NEVER), partition)
    is_sinks = (F.col("topic") == proof.letter_topic) & F.col("stage").startswith(_SINK)
    return (
        frame.where(F.array_contains("headers", origin))
        .select(
            "topic",
            "partition",
            "offset",
            cast(_last_header("headers", POSITION), STRING).alias("position"),
            _last_header("headers", SEAL).alias("seal"),
            F.when(F.col("topic") == proof.letter_topic, cast(_last_header("headers", _STAGE), STRING)).alias("stage"),
        )
        .where(F.col("position").startswith(begin))
        .withColumn("is_own", F.coalesce(is_own & is_there, F.lit(False)))
        .where(F.when(F.col("is_own"), is_new).otherwise(~F.coalesce(is_sinks, F.lit(False))))
        .select(
            F.when(~F.col("is_own"), F.col("topic")).alias("foreign"),
            F.when(F.col("is_own"), partition).alias("in"),
            F.when(F.col("is_own"), offset).alias("at"),
            F.when(F.col("is_own"), copy).alias("copy"),
            "partition",
            "offset",
        )
    )


def _by_partition(offsets: Offsets, size: int, other: int) -> Column:
    """Array with the offset of each partition at its index, `other` for one without."""
    # From one text: Spark searches a map from its beginning for each record, and an expression for each partition takes
    # seconds to make.
    texts = F.lit(",".join(str(offsets.get(each, other)) for each in range(size)))
    return F.split(texts, ",").cast("array<bigint>")


def _last_header(headers: str, name: str) -> Column:
    """Value of the last header of a name, binary; NULL without one."""
    value = F.try_element_at(F.filter(headers, lambda item: item["key"] == name), F.lit(-1))["value"]
    # Routed records have these headers at the end, where no search is needed.
    for at in (-2, -1):
        item = F.try_element_at(F.col(headers), F.lit(at))
        value = F.when(item["key"] == name, item["value"]).otherwise(value)
    return value


def _cut(starts: Topics, ends: Topics, number: int, count: int) -> Topics:
    return {
        topic: {each: at + (ends[topic][each] - at) * number // count for each, at in offsets.items()}
        for topic, offsets in starts.items()
        if offsets != ends[topic]
    }


def _merged(first: Bucket, second: Bucket) -> Bucket:
    bits = int.from_bytes(first.bitmap) | int.from_bytes(second.bitmap)
    return first._replace(bitmap=bits.to_bytes(len(first.bitmap)), highest=max(first.highest, second.highest))


def _joined(first: ForeignRecords, second: ForeignRecords) -> ForeignRecords:
    partition, offset = min((each.partition, each.offset) for each in (first, second))
    return ForeignRecords(first.topic, first.records + second.records, partition, offset)


def _byte(offset: str) -> Column:
    return F.expr(f"cast({offset} % {_BITS} div 8 as int)")
