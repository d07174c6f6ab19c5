"""Records as the frame from which the router's plan reads them, without a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from engine.record import Record

__all__ = ["RECORD_SCHEMA", "records_frame"]

RECORD_SCHEMA = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "topic string, partition int, offset bigint, timestamp timestamp"
)
"""Schema of Spark's Kafka source with headers."""


def records_frame(spark: SparkSession, topics: Mapping[str, Iterable[Record]]) -> DataFrame:
    """Records as a frame of Spark's Kafka source: partition 0, offsets from 0, the current time as timestamp."""
    rows = [
        (record.key, record.value, list(record.headers) or None, topic, 0, offset)
        for topic, records in topics.items()
        for offset, record in enumerate(records)
    ]
    schema = RECORD_SCHEMA.rpartition(", ")[0]
    return spark.createDataFrame(rows, schema).withColumn("timestamp", F.current_timestamp())
