"""Runs a topology on a few records without a broker, for tests and for trying things out.

    driver = TopologyTestDriver(topology, spark)
    output = driver.run({"orders": [Record(b"k", b"v", ())]})
    assert output["orders-large"] == [Record(b"k", b"v", ())]

Needs a Spark session, local is enough; what it runs is the very query that runs against Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from engine.message import Record
from engine.topology.compile import compile_topology
from engine.topology.dsl import Topology

__all__ = ["RECORD_SCHEMA", "TopologyTestDriver", "records_frame"]

RECORD_SCHEMA = (
    "key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "topic string, partition int, offset bigint, timestamp timestamp"
)
"""The columns of Spark's Kafka source, with headers."""


def records_frame(spark: SparkSession, topics: Mapping[str, Iterable[Record]]) -> DataFrame:
    """Records as Spark's Kafka source would give them: partition 0, offsets from 0, timestamp now."""
    rows = [
        (record.key, record.value, _headers(record), topic, 0, offset)
        for topic, records in topics.items()
        for offset, record in enumerate(records)
    ]
    schema = RECORD_SCHEMA.rpartition(", ")[0]
    return spark.createDataFrame(rows, schema).withColumn("timestamp", F.current_timestamp())


class TopologyTestDriver:
    """Holds a compiled topology's session; each `run` is a batch of its own."""

    def __init__(self, topology: Topology, spark: SparkSession) -> None:
        self._topology = topology
        self._spark = spark

    def run(self, topics: Mapping[str, Iterable[Record]]) -> dict[str, list[Record]]:
        """What the topology publishes for these records: by topic, in the order of the input.

        Raises:
            ValueError: for a topic that the topology does not read.
            pyspark.errors.PySparkException: when the topology fails, with `fail` or by its own functions.
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
