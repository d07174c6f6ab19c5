"""Journal positions in output records, and offsets in Spark's form.

Each output record holds the journal position it was made from (`engine.message.POSITION`), so the outputs tell which
messages have been published. `engine.spark.recovery` uses this module to decide which messages to publish.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from engine.message import ORIGIN, POSITION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

__all__ = ["spark_offsets", "with_positions"]


def spark_offsets(topics: Mapping[str, Mapping[int, int]]) -> str:
    """Offsets in the form of Spark's options `startingOffsets` and `endingOffsets`."""
    return json.dumps({topic: {str(partition): at for partition, at in each.items()} for topic, each in topics.items()})


def with_positions(frame: DataFrame, journal: str, bridge_id: str) -> DataFrame:
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
