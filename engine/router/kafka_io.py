"""Spark's Kafka sources and sinks of the router, with fast settings that the configuration overrides."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from engine.kafka.settings import java_settings
from engine.router.plan.language import JMS_PREFIX
from engine.router.row_counters import INTERCEPTOR
from engine.topologies.library.casts import HEADERS, cast
from routes.model import RouterMode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.kafka.offsets import Offsets, Topics
    from engine.kafka.settings import Role
    from engine.router.plan.route import Routed
    from engine.spark.stored_files import Folder
    from routes.model import Config

__all__ = ["RUN_CHARACTERS", "KafkaIO", "Seal", "batch_bytes", "delivery_timeout_ms"]

_SOURCE = "jmsbridge.kafka.RecordSource"
"""Spark's Kafka source with a faster reader, in `jvm/spark`."""
_SINK = "jmsbridge.kafka.RecordSink"
"""Sink that publishes the records which a query has read, and counts its rows, in `jvm/spark`."""
_INTERCEPTORS = "kafka.interceptor.classes"

RUN_CHARACTERS = 8
"""Number of characters of a run's id with which its seals begin."""
_CONSUMER = {
    # More is not faster: records that wait to be routed would survive garbage collections, which copy them each time.
    "kafka.max.partition.fetch.bytes": str(2 * 1024 * 1024),
    # So few records are still in the processor's cache when they are routed, which takes a tenth less CPU.
    "kafka.max.poll.records": "200",
}
_LONGER_SECONDS = 60.0
_REQUEST_TIMEOUT_MS = 30_000
"""Kafka's default of `request.timeout.ms`."""
_BATCH_SIZE = "kafka.batch.size"
_LARGEST_BATCH_BYTES, _LEAST_BATCH_BYTES = 256 * 1024, 16 * 1024
_LINGER = {RouterMode.REALTIME: {"kafka.linger.ms": "0"}, RouterMode.BATCH: {"kafka.linger.ms": "100"}}
# Records of a batch, at most. After a crash, recovery compares a whole batch with the outputs, so a batch must not hold
# all of a long backlog; smaller batches cost throughput.
_BATCH_RECORDS = "20000000"


@dataclass(frozen=True, slots=True)
class Seal:
    """Seal of the records that one run publishes; `jmsbridge.kafka.Seal` makes it."""

    key: bytes = field(repr=False)
    """16 bytes, see `engine.seals.SealKeys.of_records`."""
    run: str
    """Id of the run, `engine.router.generation.Start.run`."""


@dataclass(frozen=True, slots=True)
class KafkaIO:
    """Reader of the journal and outputs, and writer of outputs, for one configuration."""

    spark: SparkSession
    config: Config

    def follow(self, positions: Offsets) -> DataFrame:
        """The journal as a stream from `positions` on, which must name every partition."""
        journal = self.config.journal.topic
        options = {
            "subscribe": journal,
            "startingOffsets": _spark_offsets({journal: positions}),
            "failOnDataLoss": "true",
        }
        if self.config.router.mode is RouterMode.BATCH:
            options["maxOffsetsPerTrigger"] = _BATCH_RECORDS
        source = self._source(committed=True)
        return self.spark.readStream.format(_SOURCE).options(**source, **options).load()

    def range(self, starts: Topics, ends: Topics, *, committed: bool) -> DataFrame:
        """Records of topics from `starts` up to `ends`, which is excluded.

        `committed` leaves out records of open and aborted transactions of any producer.
        """
        options = {
            "subscribe": ",".join(starts),
            "startingOffsets": _spark_offsets(starts),
            "endingOffsets": _spark_offsets(ends),
            # Retention may remove records during the read.
            "failOnDataLoss": "false",
        }
        # A task for each partition makes a consumer, and to register its hundred metrics in JMX takes most of the time.
        source = {"kafka.metric.reporters": "", **self._source(committed=committed)}
        return self.spark.read.format(_SOURCE).options(**source, **options).load()

    def write(self, routed: Routed, topics: Collection[str], partitions: int = 1, seal: Seal | None = None) -> None:
        """Counts the rows of a batch and publishes those with one of the topics; returns when Kafka has all records.

        `partitions` is the number of partitions of all these topics together; without a `seal` records have none.
        """
        rows = routed.frame.select(
            F.when(F.col("topic").isin(*topics), F.col("topic")),
            "key",
            F.lit(0),
            "value",
            "headers",
            cast(F.lit(None), HEADERS),
            *_counted(),
            "failed_message",
        )
        self._jvm.RecordSink.write(rows._jdf, self._sink(routed.limit, partitions), self._seal(seal))

    def published(self, routed: Routed) -> DataFrame:
        """The rows of a stream for the sink, which takes unchanged parts from the records as they are read."""
        return routed.frame.select("topic", "key", "kept", "new_value", "new_headers", "trail", *_counted())

    def start(
        self, routed: Routed, checkpoint: Folder, partitions: int = 1, seal: Seal | None = None
    ) -> StreamingQuery:
        """Starts a query that counts the rows of a stream and publishes those with a topic, in the configured mode.

        `partitions` is the number of partitions of all output topics together; without a `seal` records have none.

        Raises:
            pyspark.errors.IllegalArgumentException: the plan does more than to map, filter and copy rows one by one.
        """
        rows, jvm = self.published(routed), self._jvm
        self.compile_once()
        jvm.OneStage.check(rows._jdf)
        jvm.RecordSink.sealWith(self._seal(seal))
        planned = DataFrame(jvm.StreamPlan.optimised(rows._jdf), self.spark)
        writer: Any = planned.writeStream.format(_SINK).options(**self._sink(routed.limit, partitions))
        writer = writer.queryName("jms-bridge").option("checkpointLocation", str(checkpoint.absolute()))
        milliseconds = f"{round(self.config.router.interval_seconds * 1000)} milliseconds"
        if self.config.router.mode is RouterMode.REALTIME:
            # Recovery relies on commits that are written at the end of each interval, not later by another thread.
            writer = writer.option("asyncProgressTrackingEnabled", "false")
            writer = writer.outputMode("update").trigger(realTime=milliseconds)
        else:
            writer = writer.trigger(processingTime=milliseconds)
        query: StreamingQuery = writer.start()
        return query

    def is_sealed(self, key: bytes, seal: Column, position: Column, topic: Column) -> Column:
        """True for a seal (binary) that was made with the key for a position (binary) and a topic; NULL for none."""
        given: tuple[Any, ...] = (seal, position, topic)
        make: Any = Column
        made: Column = make(self._jvm.Seal.isValid(key, *(each._jc for each in given)))
        return made

    def compile_once(self) -> None:
        """Makes queries that this thread runs compile their code for the driver and the tasks together."""
        jvm: Any = self.spark._jvm
        jvm.jmsbridge.SparkProcess.useLoaderOfTasks()

    def close(self) -> None:
        """Closes the sink's producers, in the background; to be called when no query runs."""
        self._jvm.Producers.close()

    def give_up(self, seconds: float) -> None:
        """Closes the sink's producers, which give up records that they cannot deliver in this time.

        That is right for records of a topic that is gone. To be called when no query runs.
        """
        self._jvm.Producers.close(round(seconds * 1000))

    def _seal(self, seal: Seal | None) -> Any:
        """The seal in Java; no setting, which Spark would show in its plans."""
        return None if seal is None else self._jvm.Seal(seal.key, seal.run)

    @property
    def _jvm(self) -> Any:
        """The Java package `jmsbridge.kafka`."""
        jvm: Any = self.spark._jvm
        return jvm.jmsbridge.kafka

    def _options(self, role: Role) -> dict[str, str]:
        """The settings of a client as options of Spark's Kafka source or sink."""
        return {f"kafka.{name}": value for name, value in java_settings(self.config.kafka_access, role).items()}

    def _source(self, *, committed: bool) -> Mapping[str, str]:
        level = "read_committed" if committed else "read_uncommitted"
        fixed = {"kafka.isolation.level": level, "includeHeaders": "true"}
        return {**_CONSUMER, **self._options("consumer"), **fixed}

    def _sink(self, limit: int | None, partitions: int) -> Mapping[str, str]:
        # A record that a producer gives up ends the process abruptly (`jmsbridge.figures.Sends`). So producers try for
        # longer than `router.outage-timeout`, after which the process ends in good order.
        router = self.config.router
        options = {**_LINGER[router.mode], **self._options("producer")}
        options.setdefault(_BATCH_SIZE, str(batch_bytes(int(options["kafka.buffer.memory"]), partitions)))
        options.setdefault(
            "kafka.delivery.timeout.ms", str(delivery_timeout_ms(self.config.router.outage_timeout_seconds, options))
        )
        if limit is not None:
            # A batch of several records that is too large for its topic would be split to this size and sent for ever.
            options[_BATCH_SIZE] = str(min(int(options[_BATCH_SIZE]), limit))
        options |= {"origin": self.config.bridge_id, "message": f"{JMS_PREFIX}JMSMessageID"}
        theirs = options.get(_INTERCEPTORS)
        return {**options, _INTERCEPTORS: f"{theirs},{INTERCEPTOR}" if theirs else INTERCEPTOR}


def _counted() -> tuple[Column | str, ...]:
    """The columns of a routed row that the sink counts."""
    time = F.unix_micros("journal_timestamp")
    return "outcome", "publication", "journal_partition", "journal_offset", time, "copy"


def batch_bytes(buffer_bytes: int, partitions: int) -> int:
    """The producers' `batch.size`: the buffer has room for two batches of each partition, one of them on its way.

    With larger ones, batches that have just begun would fill the buffer, and a producer with a full buffer sends them
    almost empty. At least Kafka's default.
    """
    return max(_LEAST_BATCH_BYTES, min(_LARGEST_BATCH_BYTES, buffer_bytes // (2 * max(partitions, 1))))


def delivery_timeout_ms(outage_timeout_seconds: float, options: Mapping[str, str]) -> int:
    """The producers' `delivery.timeout.ms`: longer than `router.outage-timeout`, and at least Kafka's minimum."""
    least = int(options["kafka.linger.ms"]) + int(options.get("kafka.request.timeout.ms", _REQUEST_TIMEOUT_MS))
    wanted = round((outage_timeout_seconds + _LONGER_SECONDS) * 1000)
    return max(wanted, least)


def _spark_offsets(topics: Mapping[str, Mapping[int, int]]) -> str:
    """Offsets in the form of Spark's options `startingOffsets` and `endingOffsets`."""
    return json.dumps({topic: {str(partition): at for partition, at in each.items()} for topic, each in topics.items()})
