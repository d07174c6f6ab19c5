"""What the router reads from Kafka and writes to it, with settings measured to be fast and the user's on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.kafka import spark_options
from engine.spark.positions import spark_offsets
from engine.spark.tally import INTERCEPTOR
from routes.model import RouterMode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.spark.positions import Offsets, Topics
    from routes.model import Config

__all__ = ["Pipes", "patience_ms"]

_SOURCE = "jmsbridge.kafka.RecordSource"
"""Spark's Kafka source with a leaner reader, in `jvm/spark`."""
_INTERCEPTORS = "kafka.interceptor.classes"

_CONSUMER = {
    # More is no faster: what waits to be routed then outlives collections of the heap, which copy it each time.
    "kafka.max.partition.fetch.bytes": str(2 * 1024 * 1024),
    # Few enough to be in the processor's cache still when they are routed, which takes a tenth less CPU.
    "kafka.max.poll.records": "200",
}
_LONGER_SECONDS = 60.0
_REQUEST_TIMEOUT_MS = 30_000
"""Kafka's default."""
_PRODUCER = {"kafka.batch.size": str(256 * 1024)}
_LINGER = {RouterMode.REALTIME: {"kafka.linger.ms": "0"}, RouterMode.BATCH: {"kafka.linger.ms": "100"}}
# A batch of the whole of a long backlog would have to be compared with the outputs as a whole after a crash, shorter
# ones cost throughput: about as many records as real-time mode routes between two commits.
_BATCH_RECORDS = "20000000"


@dataclass(frozen=True, slots=True)
class Pipes:
    """Reads the journal and outputs, writes outputs."""

    spark: SparkSession
    config: Config

    def follow(self, positions: Offsets) -> DataFrame:
        """The journal as a stream from these positions on; every partition must be named."""
        journal = self.config.journal.topic
        options = {
            "subscribe": journal,
            "startingOffsets": spark_offsets({journal: positions}),
            "failOnDataLoss": "true",
        }
        if self.config.router.mode is RouterMode.BATCH:
            options["maxOffsetsPerTrigger"] = _BATCH_RECORDS
        source = self._source(committed=True)
        return self.spark.readStream.format(_SOURCE).options(**source, **options).load()

    def range(self, starts: Topics, ends: Topics, *, committed: bool) -> DataFrame:
        """What topics hold between two offsets, the second one left out.

        `committed`: without the records of open and aborted transactions, whoever wrote them.
        """
        options = {
            "subscribe": ",".join(starts),
            "startingOffsets": spark_offsets(starts),
            "endingOffsets": spark_offsets(ends),
            # Retention may be at work while this reads.
            "failOnDataLoss": "false",
        }
        source = self._source(committed=committed)
        return self.spark.read.format(_SOURCE).options(**source, **options).load()

    def write(self, frame: DataFrame) -> None:
        """Publishes a frame of key, value, headers and topic; returns when Kafka has it all."""
        frame.write.format("kafka").options(**self._sink()).save()

    def start(self, frame: DataFrame, checkpoint: Path) -> StreamingQuery:
        """Starts to publish a stream, in the configured mode."""
        writer: Any = frame.writeStream.format("kafka").options(**self._sink()).queryName("jms-bridge")
        writer = writer.option("checkpointLocation", str(checkpoint.absolute()))
        milliseconds = f"{round(self.config.router.interval_seconds * 1000)} milliseconds"
        if self.config.router.mode is RouterMode.REALTIME:
            writer = writer.outputMode("update").trigger(realTime=milliseconds)
        else:
            writer = writer.trigger(processingTime=milliseconds)
        query: StreamingQuery = writer.start()
        return query

    def _source(self, *, committed: bool) -> Mapping[str, str]:
        level = "read_committed" if committed else "read_uncommitted"
        fixed = {"kafka.isolation.level": level, "includeHeaders": "true"}
        return {**_CONSUMER, **spark_options(self.config, "consumer"), **fixed}

    def _sink(self) -> Mapping[str, str]:
        # A record that is given up ends the process (`jmsbridge.Sends`); a Kafka that is gone ends it sooner, in order.
        options = {**_PRODUCER, **_LINGER[self.config.router.mode], **spark_options(self.config, "producer")}
        options.setdefault("kafka.delivery.timeout.ms", str(patience_ms(self.config, options)))
        theirs = options.get(_INTERCEPTORS)
        return {**options, _INTERCEPTORS: f"{theirs},{INTERCEPTOR}" if theirs else INTERCEPTOR}


def patience_ms(config: Config, options: Mapping[str, str]) -> int:
    """For how long the router's producers try; not less than Kafka asks for beside their other options."""
    least = int(options["kafka.linger.ms"]) + int(options.get("kafka.request.timeout.ms", _REQUEST_TIMEOUT_MS))
    wanted = round((config.router.outage_timeout_seconds + _LONGER_SECONDS) * 1000)
    return max(wanted, least)
