"""The sink publishes records as they were read: the bytes that the columns of the routed frame say, in both modes."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from engine.embedded import EmbeddedKafka
from engine.errors import HardFailureError
from engine.message import BODY, ORIGIN, POSITION, TYPES
from engine.router import Routed, route
from engine.router.kafka_io import KafkaIO
from engine.router.row_counters import RowCounters
from engine.spark.failures import query_failure
from routes.config import loads
from routes.model import Config
from tests.conftest import TopicFactory
from tests.integration.router.bench import wait_for
from tests.spark.router.conftest import known
from tests.topic_records import committed_records, ordered_producer

HEAD = """\
bridge.id=b1
kafka.bootstrap.servers={bootstrap}
journal.topic={journal}
router.mode={mode}
router.interval=5s
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routing.dead-letter-topic={dlt}
sink.n.type=nats
sink.n.url=nats://127.0.0.1:1
sink.n.topic={n}
"""
TABLES = {
    "text": """\
routing.on-unmatched=dead-letter
routing.on-soft-failure=dead-letter
routing.non-durable=drop
routes.red.in.include=color = 'red' AND (amount > 5 OR size IS NULL)
routes.red.out.topic={red}
routes.red.conv.key=msg.header.CorrelationId
routes.json.in.include=color LIKE 'g%'
routes.json.out.topic={green}
routes.json.conv.body=json
routes.json.on-soft-failure=skip
routes.sink.in.include=size BETWEEN 2 AND 4
routes.sink.out.topic=n:orders.${{msg.header.color}}
routes.rest.in.include=color IS NOT NULL
routes.rest.out.topic={rest}
routes.rest.conv.key=msg.header.color
""",
    "typed": """\
routing.headers=typed
routing.on-soft-failure=dead-letter
routes.red.in.include=color = 'red'
routes.red.out.topic={red}
routes.sink.in.include=size BETWEEN 2 AND 4
routes.sink.out.topic=n:orders
routes.rest.in.include=TRUE
routes.rest.out.topic={rest}
routes.rest.conv.key=msg.header.color
""",
    "small": """\
routing.on-soft-failure=dead-letter
routes.red.in.include=color = 'red'
routes.red.out.topic={red}
routes.rest.in.include=size > 1
routes.rest.out.topic={rest}
routes.rest.on-soft-failure=skip
""",
}
"""Route tables by name; they have every feature of routes that changes what is published."""
LIMITS = {"small": {"red": 2500, "dlt": 1500}}
"""Sizes that topics take, by table and topic."""
NAMES = ("red", "green", "rest", "n", "dlt")
RECORDS = 400
KEYS = (None, b"", b"key", b"k\xff")
VALUES = (None, b"", b"text", b'{"a": 1}', bytes(range(256)), b"x" * 3000)
COLORS = ("red", "green", "grey", "", "bl\u00fce", "a\nb")


def headers(chance: random.Random) -> list[tuple[str, bytes | None]]:
    """Headers of a random message, in random order: some missing, some twice, some without a value or no UTF-8."""
    found: list[tuple[str, bytes | None]] = [("jms.JMSMessageID", b"ID:%d" % chance.randrange(1000))]
    choices: list[tuple[float, str, bytes | None]] = [
        (0.8, "jms.color", chance.choice(COLORS).encode()),
        (0.6, "jms.amount", b"%d" % chance.randrange(10)),
        (0.4, "jms.size", b"%d" % chance.randrange(6)),
        (0.6, "jms.JMSCorrelationID", chance.choice((b"c-1", b"not\xff", b"a b", b"c-2"))),
        (0.8, TYPES, b"amount=int,size=long"),
        (0.5, BODY, chance.choice((b"text", b"bytes", b"map", b"object"))),
        (0.1, "jms.JMSExpiration", chance.choice((b"0", b"1", b"99999999999999", b"x"))),
        (0.1, "jms.JMSDeliveryMode", chance.choice((b"PERSISTENT", b"NON_PERSISTENT"))),
        (0.05, ORIGIN, chance.choice((b"b1", b"other"))),
        (0.05, POSITION, b"other:0:1"),
        (0.1, "jms.color", None),
        (0.1, "", b"nameless"),
        (0.1, f"name-{chance.randrange(40)}\u2713", bytes(range(256))),
    ]
    found += [(name, value) for share, name, value in choices if chance.random() < share]
    chance.shuffle(found)
    return found if chance.random() > 0.03 else []


class World:
    """A journal of one partition with random records, and the topics of the tables."""

    def __init__(self, kafka: EmbeddedKafka, topic: TopicFactory, records: int = RECORDS) -> None:
        self.bootstrap, self.journal = kafka.bootstrap, topic("journal")
        self.topics = {name: topic(name) for name in NAMES}
        chance = random.Random(20)  # noqa: S311 # data of a test
        producer = ordered_producer(self.bootstrap)
        for _ in range(records):
            given: Any = headers(chance)
            producer.produce(self.journal, chance.choice(VALUES), chance.choice(KEYS), 0, headers=given)
        assert producer.flush(60) == 0

    def config(self, table: str, mode: str, folder: Path) -> Config:
        names = {"bootstrap": self.bootstrap, "journal": self.journal, "mode": mode, **self.topics}
        return known(loads((HEAD + TABLES[table]).format(**names), base=folder))

    def published(self) -> list[tuple[Any, ...]]:
        """Records of all topics but the journal, in order."""
        records = committed_records(self.bootstrap, *self.topics.values())
        found = [(str(record.topic()), record.key(), record.value(), record.headers() or []) for record in records]
        return sorted(found, key=lambda record: list(self.topics.values()).index(record[0]))


def wanted(rows: list[Row], topics: Mapping[str, str]) -> list[tuple[Any, ...]]:
    """The records that the columns of routed rows say, as `World.published`."""

    def plain(value: Any) -> Any:
        return None if value is None else bytes(value)

    return [
        (topic, plain(row.key), plain(row.value), [(item.key, plain(item.value)) for item in row.headers or ()])
        for topic in topics.values()
        for row in rows
        if row.topic == topic
    ]


@pytest.mark.parametrize("mode", ["realtime", "batch"])
@pytest.mark.parametrize("table", TABLES)
def test_what_is_published_by_reference_equals_what_the_columns_say(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, table: str, mode: str
) -> None:
    world = World(kafka, topic)
    config = world.config(table, mode, tmp_path)
    limits = {world.topics[name]: limit for name, limit in LIMITS.get(table, {}).items()}
    kafka_io, counters = KafkaIO(spark, config), RowCounters(spark)
    counters.reset()

    def routed_by(frame: DataFrame) -> Routed:
        return route(frame, config, limits, F.lit(1_000))

    journal = kafka_io.range({world.journal: {0: 0}}, {world.journal: {0: RECORDS}}, committed=True)
    rows = routed_by(journal).frame.collect()
    routed = routed_by(kafka_io.follow({0: 0}))
    counters.begin(routed.outcomes, len(config.routes))
    query = kafka_io.start(routed, tmp_path / "checkpoint")
    try:
        wait_for(lambda: query.exception() is not None or counters.read().processed == {0: RECORDS - 1}, 240)
        assert query.exception() is None
        wait_for(lambda: counters.read().settled, 60)
    finally:
        query.stop()
        reading = counters.read()
        counters.reset()
        kafka_io.close()
    assert world.published() == wanted(rows, world.topics)
    outcomes = [0] * len(routed.outcomes)
    for row in rows:
        outcomes[row.outcome] += 1
    assert [sum(each) for each in reading.counts] == outcomes
    failed = [(row.journal_offset, row.failed_message or "") for row in rows if row.failed_message is not None]
    assert [(note.offset, note.message) for note in reading.notes if note.message] == [
        (offset, message) for offset, message in failed if message
    ][: len(reading.notes)]


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (lambda frame: frame.repartition(2), "RepartitionByExpression|Repartition"),
        (lambda frame: frame.dropDuplicates(["journal_offset"]), "Deduplicate"),
        (
            lambda frame: frame.withColumn("key", F.udf(lambda key: key, "binary", useArrow=False)("key")),
            "a Python function",
        ),
    ],
)
def test_a_plan_that_may_keep_rows_back_is_refused_at_the_start(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, change: Any, step: str
) -> None:
    config = World(kafka, topic, records=0).config("small", "batch", tmp_path)
    kafka_io = KafkaIO(spark, config)
    routed = route(kafka_io.follow({0: 0}), config, {}, F.lit(1_000))
    with pytest.raises(IllegalArgumentException, match=f"the plan has (the step )?({step}), which may keep rows back"):
        kafka_io.start(Routed(change(routed.frame), routed.outcomes), tmp_path / "checkpoint")


def test_batches_of_small_records_are_not_larger_than_their_topic_takes(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    world = World(kafka, topic, records=0)
    world.topics["rest"] = topic("rest", config={"max.message.bytes": "6000"})
    small: Any = [("jms.JMSMessageID", b"ID:1"), ("jms.size", b"5"), (TYPES, b"size=int")]
    producer = ordered_producer(world.bootstrap)
    for _ in range(100):
        producer.produce(world.journal, b"x" * 100, headers=small)
    assert producer.flush(60) == 0
    config = world.config("small", "batch", tmp_path)
    kafka_io, counters = KafkaIO(spark, config), RowCounters(spark)
    counters.reset()
    routed = route(kafka_io.follow({0: 0}), config, {world.topics["rest"]: 6000}, F.lit(1_000))
    counters.begin(routed.outcomes, len(config.routes))
    query = kafka_io.start(routed, tmp_path / "checkpoint")
    try:
        wait_for(lambda: query.exception() is not None or counters.read().acknowledged == 100, 60)
        assert query.exception() is None
    finally:
        query.stop()
        counters.reset()
        kafka_io.close()


def test_a_record_that_kafka_does_not_take_ends_the_query_with_its_reason(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    world = World(kafka, topic, records=0)
    world.topics["rest"] = topic("rest", config={"max.message.bytes": "500"})
    large: Any = [("jms.JMSMessageID", b"ID:1"), ("jms.size", b"5"), (TYPES, b"size=int")]
    producer = ordered_producer(world.bootstrap)
    producer.produce(world.journal, b"x" * 3000, headers=large)
    assert producer.flush(60) == 0
    config = world.config("small", "batch", tmp_path)
    kafka_io, counters = KafkaIO(spark, config), RowCounters(spark)
    counters.reset()
    routed = route(kafka_io.follow({0: 0}), config, {}, F.lit(1_000))
    counters.begin(routed.outcomes, len(config.routes))
    query = kafka_io.start(routed, tmp_path / "checkpoint")
    try:
        wait_for(lambda: query.exception() is not None, 120)
        failure = query_failure(query)
        assert isinstance(failure, HardFailureError)
        assert "because of its size" in str(failure)
    finally:
        query.stop()
        counters.reset()
        kafka_io.close()
