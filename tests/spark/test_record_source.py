"""The source of our own reads what Spark's own Kafka source reads, from a real Kafka."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.errors import StreamingQueryException
from pyspark.sql import Row, SparkSession

from engine.embedded import EmbeddedKafka
from tests.conftest import TopicFactory
from tests.integration.router.bench import wait_for
from tests.topic_records import ORDERED

OURS, SPARKS = "jmsbridge.kafka.RecordSource", "kafka"
COMMITTED = {"kafka.isolation.level": "read_committed"}
ODD: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (None, None, []),
    (b"", b"", [("", b"")]),
    (b"key", b"value", [("name", b"text"), ("name", None), ("n\u00e4me \u2713", bytes(range(256)))]),
    (bytes(range(256)), b"1234567", [("seven", b"1234567"), ("eight", b"12345678"), ("nine", b"123456789")]),
    (None, b"x" * 900_000, [(f"header-{number}", b"v" * number) for number in range(300)]),
    (b"key", b"small again", [("name", b"text")]),
]


class Topic:
    """One topic with two partitions."""

    def __init__(self, name: str, bootstrap: str) -> None:
        self.name, self.bootstrap = name, bootstrap
        self._settings = {"bootstrap.servers": bootstrap, "log_level": 0}

    def send(self, count: int = 1, partition: int = 0) -> None:
        producer = Producer({**self._settings, "linger.ms": 0, **ORDERED})
        for _ in range(count):
            for key, value, headers in ODD:
                producer.produce(self.name, value, key, partition, headers=headers)
        assert producer.flush(60) == 0

    def send_in_transaction(self, *, abort: bool, partition: int = 0) -> None:
        producer = Producer({**self._settings, "transactional.id": f"{self.name}-{time.monotonic_ns()}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for key, value, headers in ODD:
            producer.produce(self.name, value, key, partition, headers=headers)
        if abort:
            producer.flush(30)
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)

    def remove_before(self, offset: int, partition: int = 0) -> None:
        admin = AdminClient(self._settings)
        for done in admin.delete_records([TopicPartition(self.name, partition, offset)]).values():
            done.result(30)

    def options(self, starts: dict[str, int], **others: str) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            "subscribe": self.name,
            "startingOffsets": json.dumps({self.name: starts}),
            "includeHeaders": "true",
            **others,
        }

    def read(self, spark: SparkSession, source: str, starts: Any, ends: Any, **others: str) -> list[Row]:
        options = self.options(starts, endingOffsets=json.dumps({self.name: ends}), **others)
        frame = spark.read.format(source).options(**options).load()
        return frame.orderBy("partition", "offset").collect()


@pytest.fixture
def odd(topic: TopicFactory, kafka: EmbeddedKafka) -> Topic:
    return Topic(topic("odd", 2), kafka.bootstrap)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_same_rows(spark: SparkSession, odd: Topic, level: str) -> None:
    odd.send(3)
    odd.send_in_transaction(abort=True)
    odd.send_in_transaction(abort=False)
    odd.send(1, partition=1)
    odd.send_in_transaction(abort=True)
    odd.send_in_transaction(abort=True, partition=1)
    # Each transaction leaves a marker that takes an offset, the last one that of the end.
    starts, ends = {"0": 1, "1": 0}, {"0": 18 + 3 * 7, "1": 6 + 7}
    options = {"kafka.isolation.level": level, "kafka.max.poll.records": "4"}
    ours, sparks = (odd.read(spark, source, starts, ends, **options) for source in (OURS, SPARKS))
    assert len(ours) == (17 + 6 + 6 if level == "read_committed" else 17 + 18 + 6 + 6)
    assert ours == sparks


def test_same_rows_without_headers(spark: SparkSession, odd: Topic) -> None:
    odd.send()
    ours, sparks = (
        odd.read(spark, source, {"0": 0, "1": 0}, {"0": 5, "1": 0}, includeHeaders="false") for source in (OURS, SPARKS)
    )
    assert len(ours) == 5
    assert ours == sparks


@pytest.mark.parametrize(("removed", "ends", "left"), [(4, 9, 5), (12, 9, 0)], ids=["some", "all"])
def test_leaves_out_what_was_removed_if_that_is_allowed(
    spark: SparkSession, odd: Topic, removed: int, ends: int, left: int
) -> None:
    odd.send(3)
    odd.remove_before(removed)
    rows = odd.read(spark, OURS, {"0": 0, "1": 0}, {"0": ends, "1": 0}, failOnDataLoss="false")
    assert [row.offset for row in rows] == list(range(ends - left, ends))


def test_offsets_must_be_numbers(spark: SparkSession, odd: Topic) -> None:
    with pytest.raises(Exception, match="must be numbers"):
        odd.read(spark, OURS, {"0": -2, "1": 0}, {"0": -1, "1": 0})


@pytest.fixture(params=["batch", "realtime"])
def follow(
    request: pytest.FixtureRequest, spark: SparkSession, odd: Topic, topic: TopicFactory, tmp_path: Path
) -> Iterator[Callable[..., Any]]:
    """Starts a query that copies the topic to another one, whose name it has as `queryName`."""
    queries = []

    def start(starts: dict[str, int], interval: str = "2 seconds") -> Any:
        copy = topic("copy", 1)
        stream = spark.readStream.format(OURS).options(**odd.options(starts, **COMMITTED)).load()
        writer: Any = stream.select("key", "value", "headers").writeStream.format("kafka").queryName(copy)
        writer = writer.options(**{"kafka.bootstrap.servers": odd.bootstrap, "topic": copy})
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).outputMode("update")
        pace = {"processingTime": "0 seconds"} if request.param == "batch" else {"realTime": interval}
        query = writer.trigger(**pace).start()
        queries.append(query)
        return query

    shortest = "spark.sql.streaming.realTimeMode.minBatchDuration"
    spark.conf.set(shortest, "1s")
    yield start
    spark.conf.unset(shortest)
    for query in queries:
        query.stop()


def _copied(odd: Topic, copy: str, count: int) -> list[tuple[Any, Any, list[tuple[str, bytes | None]]]]:
    """Key, value and headers of that many records of the copy."""
    consumer = Consumer({"bootstrap.servers": odd.bootstrap, "group.id": "none", "log_level": 0})
    consumer.assign([TopicPartition(copy, 0, 0)])
    found = consumer.consume(count, 60)
    consumer.close()
    assert len(found) == count
    return [(record.key(), record.value(), record.headers() or []) for record in found]


def _open_consumers(spark: SparkSession) -> set[str]:
    jvm: Any = spark._jvm
    names = jvm.javax.management.ObjectName("kafka.consumer:type=app-info,*")
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    # By its interface: the class behind it is not public.
    methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
    query = next(method for method in methods if method.getName() == "queryNames")
    gateway: Any = spark.sparkContext._gateway
    arguments = gateway.new_array(jvm.java.lang.Object, 2)
    arguments[0] = names
    return {name.getKeyProperty("id") for name in query.invoke(server, arguments)}


def test_follows_over_many_intervals_and_closes_its_consumers(
    spark: SparkSession, odd: Topic, follow: Callable[..., Any]
) -> None:
    before = _open_consumers(spark)
    odd.send(2)
    query = follow({"0": 3, "1": 0})
    for sent in range(3):
        odd.send(1)
        odd.send_in_transaction(abort=sent % 2 == 0)
        time.sleep(2)
    # The rest of the first rounds, then three more and one transaction.
    assert _copied(odd, query.name, 9 + 3 * 6 + 6) == ODD[3:] + ODD * 5
    query.stop()
    # Tasks in real-time mode end a moment after their query.
    wait_for(lambda: _open_consumers(spark) == before, 20)


@pytest.mark.parametrize("follow", ["realtime"], indirect=True)
def test_first_intervals_of_real_time_mode_are_short(
    spark: SparkSession, odd: Topic, follow: Callable[..., Any]
) -> None:
    jvm: Any = spark._jvm
    jvm.jmsbridge.kafka.ShortIntervals.reset()
    query = follow({"0": 0, "1": 0}, "1 hour")
    for _ in range(5):
        odd.send(1)
        time.sleep(0.5)
    wait_for(lambda: query.lastProgress is not None and query.lastProgress["batchId"] >= 11, 120)
    odd.send(1)
    # Between two boundaries, over several and behind the last one, nothing is left out or repeated.
    assert _copied(odd, query.name, 6 * len(ODD)) == ODD * 6
    # Spark reports an interval as committed while it plans one of the next two: those may be short as well.
    time.sleep(3)
    assert query.lastProgress["batchId"] <= 13


def test_what_was_removed_before_it_was_read_ends_the_query(
    spark: SparkSession, odd: Topic, follow: Callable[..., Any]
) -> None:
    odd.send(2)
    odd.remove_before(8)
    query = follow({"0": 5, "1": 0})
    with pytest.raises(StreamingQueryException) as failure:
        query.awaitTermination(60)
    assert re.search("OffsetOutOfRange|data may have been lost|KAFKA_DATA_LOSS", str(failure.value))
