"""The Kafka of a benchmark: the project's embedded one, with data of its own that is removed afterwards."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from engine.embedded import EmbeddedKafka, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bench.processes import ProcessTree

__all__ = ["PARTITIONS", "Broker", "broker", "committed_records"]

PARTITIONS = 4
_HEAP_MEGABYTES = 1024
_POLL_SECONDS = 0.25
_SETTLE_SECONDS = 2.0
_LEADER_SECONDS = 30.0


class Broker:
    """Topics of a running Kafka."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = _client(bootstrap)
        self._partitions: dict[str, int] = {}

    def create(
        self,
        *topics: str,
        bound_bytes: int = -1,
        timestamps: str = "LogAppendTime",
        partitions: int = PARTITIONS,
    ) -> None:
        """New topics whose records carry the time at which the broker appended them: one clock for all contestants.

        `bound_bytes` is what a partition may keep before its oldest records go; `timestamps` is "CreateTime" for
        topics whose records keep the times that they are sent with.
        """
        settings = {
            "message.timestamp.type": timestamps,
            "retention.ms": "-1",
            "retention.bytes": str(bound_bytes),
            "segment.bytes": str(128 * 1024 * 1024),
        }
        wanted = [NewTopic(topic, partitions, 1, config=settings) for topic in topics]
        for created in self._admin.create_topics(wanted).values():
            created.result()
        self._partitions |= dict.fromkeys(topics, partitions)
        self._await_leaders(topics)

    def delete(self, *topics: str) -> None:
        """The broker removes the data soon afterwards."""
        for deleted in self._admin.delete_topics(list(topics)).values():
            deleted.result()

    def count(self, topics: Sequence[str]) -> int:
        """Records that were ever written to the topics together."""
        return sum(self.counts(topics).values())

    def counts(self, topics: Sequence[str]) -> dict[str, int]:
        """Records that were ever written to each of the topics, which this object has created."""
        end = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        latest = {TopicPartition(topic, each): end for topic in topics for each in range(self._partitions[topic])}
        counts = dict.fromkeys(topics, 0)
        for partition, found in self._admin.list_offsets(latest).items():
            counts[partition.topic] += found.result().offset
        return counts

    def await_count(self, topics: Sequence[str], count: int, writer: ProcessTree, wait_seconds: float) -> None:
        """Returns when the topics hold exactly `count` records and stay at that.

        RuntimeError when there are more, when the `writer` ends, or when the time is over.
        """
        self.await_least(topics, count, writer, wait_seconds)
        time.sleep(_SETTLE_SECONDS)
        if (found := self.count(topics)) != count:
            msg = f"{found} records instead of {count}, see {writer.log}"
            raise RuntimeError(msg)

    def await_still(self, topics: Sequence[str], count: int, writer: ProcessTree, wait_seconds: float) -> None:
        """Returns when the topics hold `count` records, markers of transactions included, and then no more come.

        RuntimeError when the `writer` ends or the time is over.
        """
        self.await_least(topics, count, writer, wait_seconds)
        before = -1
        while (found := self.count(topics)) != before:
            before = found
            writer.check()
            time.sleep(_SETTLE_SECONDS)

    def await_least(self, topics: Sequence[str], count: int, writer: ProcessTree, wait_seconds: float) -> None:
        """Returns when the topics hold `count` records; RuntimeError when the `writer` ends or the time is over."""
        deadline = time.monotonic() + wait_seconds
        while (found := self.count(topics)) < count:
            writer.check()
            if time.monotonic() > deadline:
                msg = f"{found} of {count} records after {wait_seconds:.0f} s, see {writer.log}"
                raise RuntimeError(msg)
            time.sleep(_POLL_SECONDS)

    def _await_leaders(self, topics: Sequence[str]) -> None:
        """Right after its creation a partition may have none yet."""
        deadline = time.monotonic() + _LEADER_SECONDS
        while True:
            try:
                self.count(topics)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_SECONDS)
                # A client that has found no leader once does not look again.
                self._admin = _client(self.bootstrap)
            else:
                return


@contextmanager
def broker(folder: Path, jars: Path) -> Iterator[Broker]:
    """A Kafka on a free port for the time of the block; its data in `folder` is removed at the end."""
    (port,) = free_ports(1)
    kafka = EmbeddedKafka(folder, port, jars, heap_megabytes=_HEAP_MEGABYTES)
    try:
        kafka.start()
        yield Broker(kafka.bootstrap)
    finally:
        kafka.stop()
        shutil.rmtree(folder, ignore_errors=True)


def committed_records(bootstrap: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of the committed records of a topic, in the order of each partition."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(PARTITIONS)])
    records = []
    ended = 0
    while ended < PARTITIONS:
        for record in consumer.consume(10_000, 1.0):
            if (error := record.error()) is None:
                records.append((record.key(), record.value()))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended += 1
            else:
                raise RuntimeError(error.str())
    consumer.close()
    return records


def _client(bootstrap: str) -> AdminClient:
    # `log_level` 0: that the broker has gone at the end of a run is not news.
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
