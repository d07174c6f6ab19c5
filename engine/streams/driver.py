"""Test driver: runs a topology on a few records without a broker.

    driver = TopologyTestDriver(topology, spark)
    output = driver.run({"orders": [Record(b"k", b"v", ())]})
    assert output["orders-large"] == [Record(b"k", b"v", ())]

The driver needs a Spark session, which may be local. It runs the query that the bridge runs against Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.record import Record
from engine.streams.compile import compile_topology
from engine.streams.dsl import Topology

__all__ = ["RECORD_SCHEMA", "TopologyTestDriver", "records_frame"]

RECORD_SCHEMA = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "topic string, partition int, offset bigint, timestamp timestamp"
)
"""Schema of Spark's Kafka source with headers."""


def records_frame(spark: SparkSession, topics: Mapping[str, Iterable[Record]]) -> DataFrame:
    """Records as a frame of Spark's Kafka source: partition 0, offsets from 0, the current time as timestamp."""
    rows = [
        (record.key, record.value, _headers(record), topic, 0, offset)
        for topic, records in topics.items()
        for offset, record in enumerate(records)
    ]
    schema = RECORD_SCHEMA.rpartition(", ")[0]
    return spark.createDataFrame(rows, schema).withColumn("timestamp", F.current_timestamp())


class TopologyTestDriver:
    """Runner of a topology in a Spark session; each `run` is an independent batch."""

    def __init__(self, topology: Topology, spark: SparkSession) -> None:
        self._topology = topology
        self._spark = spark

    def run(self, topics: Mapping[str, Iterable[Record]]) -> dict[str, list[Record]]:
        """Records that the topology publishes for the given ones: by topic, in the order of the input.

        Raises:
            ValueError: the topology does not read one of the topics.
            pyspark.errors.PySparkException: a `fail` node or a function of the topology failed.
        """
        unknown = topics.keys() - {source.topic for source in self._topology.sources}
        if unknown:
            raise ValueError(f"the topology does not read {', '.join(sorted(unknown))}")
        compiled = compile_topology(self._topology, records_frame(self._spark, topics))
        published = compiled.frame.where("topic IS NOT NULL").orderBy("source_topic", "source_offset")
        output: dict[str, list[Record]] = {}
        for row in published.select("topic", "key", "value", "headers").collect():
            output.setdefault(row.topic, []).append(_record(row))
        return output


def _headers(record: Record) -> list[tuple[str, bytes | None]] | None:
    return list(record.headers) or None


def _record(row: Any) -> Record:
    headers = tuple((item.key, _bytes(item.value)) for item in row.headers or ())
    return Record(_bytes(row.key), _bytes(row.value), headers)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
