"""Topics of Kafka, written and read to their ends by tests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from engine.kafka.errors import PASSING
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

__all__ = ["ORDERED", "committed_records", "ordered_producer", "transactions_have_ended"]

_SECONDS = 30
_MARKER_SECONDS = 10
"""How long Kafka takes at most from the commit of a transaction to its marker in each partition."""

ORDERED: Mapping[str, Any] = {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1}
"""Settings of a producer whose records are each written once, in order. Of several requests on their way, Kafka may
refuse the first, and librdkafka confirms it all the same."""

_MAXIMUM_BYTES = 64 * 1024 * 1024


def ordered_producer(bootstrap: str, settings: Mapping[str, Any] | None = None) -> Producer:
    """A producer that sends again without changing the order or the number of records.

    The first records for a new topic are often refused, and librdkafka by itself sends those behind them first.
    """
    return Producer({"bootstrap.servers": bootstrap, **ORDERED, "log_level": 0, **(settings or {})})


def committed_records(bootstrap: str, *topics: str) -> Iterator[Message]:
    """Yields all records that the topics have now, but for those of open and of aborted transactions.

    A topic that does not exist has none. Records of one partition are in order.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "test",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.message.max.bytes": _MAXIMUM_BYTES,
            # A broker with nothing more to give says so after this time.
            "fetch.wait.max.ms": 10,
            "log_level": 0,
        }
    )
    try:
        known = consumer.list_topics(timeout=_SECONDS).topics
        left = {(topic, partition) for topic in topics if topic in known for partition in known[topic].partitions}
        consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in sorted(left)])
        while left:
            record = consumer.poll(_SECONDS)
            assert record is not None, f"no answer of Kafka about {left}"
            if (error := record.error()) is None:
                yield record
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard((str(record.topic()), record.partition() or 0))
            elif not error.retriable():
                raise KafkaException(error)
    finally:
        consumer.close()


def transactions_have_ended(bootstrap: str, topic: str) -> None:
    """Waits until each record of the topic is committed or aborted.

    Kafka acknowledges a commit before it has written the marker of each partition. A transaction that nobody ends is
    waited for in vain, for as long as a marker may take.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def ends(level: IsolationLevel) -> list[int] | None:
        """Ends of the partitions; None while one of them has no leader."""
        partitions = admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        wanted = {TopicPartition(topic, partition): latest for partition in sorted(partitions)}
        offsets = admin.list_offsets(wanted, isolation_level=level, request_timeout=_SECONDS)
        try:
            return [offset.result(_SECONDS).offset for offset in offsets.values()]
        except KafkaException as error:
            if error.args[0].code() in PASSING:
                return None
            raise

    def ended() -> bool:
        committed, written = ends(IsolationLevel.READ_COMMITTED), ends(IsolationLevel.READ_UNCOMMITTED)
        return committed is not None and committed == written

    with contextlib.suppress(AssertionError):
        until(ended, _MARKER_SECONDS)
