"""Batches with few records each: all topics come to the same time in each batch, so that none makes the others late."""

from __future__ import annotations

import json as texts
import random
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from engine.embedded import EmbeddedKafka
from engine.streams import StreamsBuilder, TimeWindows, json, plan
from engine.topologies.runtime.layout import lay_out
from tests.conftest import TopicFactory
from tests.topic_records import committed_records, ordered_producer

BEGIN_MS = 1_700_000_000_000
MOST_RECORDS = 20
SECONDS = 100


def run(
    spark: SparkSession,
    kafka: EmbeddedKafka,
    builder: StreamsBuilder,
    folder: Path,
    partitions: int = 1,
    most_records: int = MOST_RECORDS,
) -> dict[str, int]:
    """Runs a topology over what is in its topics, which have so many partitions each; gives its counts."""
    jvm: Any = spark._jvm
    runs = jvm.jmsbridge.streams.TopologyRun
    topology = builder.build()
    layout = lay_out(topology, {source.topic: partitions for source in topology.sources})
    clients = {"bootstrap.servers": kafka.bootstrap}
    places = {"enable.auto.commit": "false", "auto.offset.reset": "none"}
    consumer = {**clients, **places, "isolation.level": "read_committed"}
    order = layout.order
    admin = AdminClient({**clients, "log_level": 0})
    for name in layout.internal:
        admin.create_topics([NewTopic(name, partitions, 1, config={"retention.ms": "-1"})])[name].result(30)
    settings = jvm.jmsbridge.streams.RunSettings(
        plan(topology, spark).java,
        False,
        dict(layout.partitions),
        consumer,
        clients,
        (folder / "state").as_uri(),
        most_records,
        0,
        [],
        [],
        {},
        [],
        None,
        None,
        jvm.jmsbridge.streams.ReadOrder(
            list(order.feeders), list(order.followers), [list(each) for each in order.bounds], True
        ),
    )
    runs.open("ends", settings)
    try:
        rows = spark.readStream.format("jmsbridge.streams.TopologySource").option("run", "ends").load()
        sink = rows.writeStream.format("jmsbridge.streams.TopologySink").option("run", "ends").outputMode("update")
        query = sink.option("checkpointLocation", str(folder / "spark")).trigger(processingTime="0 seconds").start()
        query.processAllAvailable()
        query.stop()
        return dict(runs.counts("ends"))
    finally:
        runs.close("ends")


def send(kafka: EmbeddedKafka, topic: str, times: list[int], keys: list[int]) -> None:
    producer = ordered_producer(kafka.bootstrap)
    for number, (at, key) in enumerate(zip(times, keys, strict=True)):
        value = texts.dumps({"n": number, "key": str(key)})
        producer.produce(topic, value, str(key), timestamp=BEGIN_MS + at, partition=0)
    assert producer.flush(30) == 0


def read(kafka: EmbeddedKafka, topic: str) -> list[dict[str, Any]]:
    return [texts.loads(record.value() or b"") for record in committed_records(kafka.bootstrap, topic)]


@pytest.mark.parametrize("is_rekeyed", [False, True], ids=["direct", "rekeyed"])
def test_a_join_loses_nothing_between_a_busy_topic_and_a_quiet_one(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, *, is_rekeyed: bool
) -> None:
    # The records are from 2023.
    left, right, out = (topic(name, config={"retention.ms": "-1"}) for name in ("left", "right", "out"))
    chance = random.Random(8)  # noqa: S311
    times = {left: sorted(chance.sample(range(400_000), 200)), right: sorted(chance.sample(range(400_000), 40))}
    keys = {each: [chance.randrange(3) for _ in times[each]] for each in times}
    for each, own in times.items():
        send(kafka, each, own, keys[each])
    builder = StreamsBuilder(f"ends-{uuid.uuid4().hex[:8]}")
    busy = builder.stream(left, value=json("n int, key string"))
    quiet = builder.stream(right, value=json("n int"))
    keyed = busy.select_key("key") if is_rekeyed else busy
    keyed.join(quiet, within="9 s", prefix="right_").to(out)
    assert run(spark, kafka, builder, tmp_path) == {}
    expected = [
        (one, other)
        for one, at in enumerate(times[left])
        for other, its in enumerate(times[right])
        if keys[left][one] == keys[right][other] and abs(at - its) <= 9_000
    ]
    assert sorted((each["n"], each["right_n"]) for each in read(kafka, out)) == expected


def open_transaction(kafka: EmbeddedKafka, topic: str, partition: int) -> Producer:
    """Writes a record for each second to a partition; its transaction is still open."""
    own = {"bootstrap.servers": kafka.bootstrap, "transactional.id": uuid.uuid4().hex, "log_level": 0}
    producer = Producer(own)
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(SECONDS):
        value = texts.dumps({"n": number})
        producer.produce(topic, value, "k", timestamp=BEGIN_MS + number * 1_000, partition=partition)
    assert producer.flush(30) == 0
    return producer


def test_transactions_that_end_one_after_the_other_make_no_record_late(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    source, out = (topic(name, partitions=2, config={"retention.ms": "-1"}) for name in ("source", "out"))
    first, second = (open_transaction(kafka, source, partition) for partition in range(2))
    builder = StreamsBuilder(f"ends-{uuid.uuid4().hex[:8]}")
    records = builder.stream(source, value=json("n int"))
    windows = records.group_by("'all'").windowed_by(TimeWindows.of("10 s", grace="1 s"))
    windows.count(name="counts").suppress().to_stream().to(out)
    first.commit_transaction(30)
    later = threading.Timer(1.0, second.commit_transaction, [30])
    later.start()
    counts = run(spark, kafka, builder, tmp_path, partitions=2, most_records=10_000)
    later.join()
    assert counts == {}
    assert [each["count"] for each in read(kafka, out)] == [20] * (SECONDS // 10 - 1)
