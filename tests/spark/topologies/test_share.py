"""A share that reads again what it has read, as when it comes back to an executor, goes on with its counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from engine.embedded import EmbeddedKafka
from engine.streams import StreamsBuilder, json, plan
from tests.conftest import TopicFactory
from tests.topic_records import ordered_producer


def test_counts_of_a_share_that_comes_back_do_not_fall(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    read, written = topic("in"), topic("out")
    builder = StreamsBuilder("counted")
    builder.stream(read, value=json("n int"), name="in").to(written)
    producer = ordered_producer(kafka.bootstrap)
    for value in ('{"n": 1}', "{", '{"n": 2}'):
        producer.produce(read, value, "key")
    assert producer.flush(30) == 0

    jvm: Any = spark._jvm
    runs = jvm.jmsbridge.streams.TopologyRun
    clients = {"bootstrap.servers": kafka.bootstrap}
    program = plan(builder.build(), spark, on_failure="skip").java
    folder = (tmp_path / "state").as_uri()
    consumer = {**clients, "enable.auto.commit": "false", "auto.offset.reset": "none"}
    settings = jvm.jmsbridge.streams.RunSettings(program, False, {read: 1}, consumer, clients, folder, 10, 0, [])
    runs.open("run", settings)
    try:
        for times in (1, 2):
            # A checkpoint of its own begins at the first record, where the share was before.
            rows = spark.readStream.format("jmsbridge.streams.TopologySource").option("run", "run").load()
            sink = rows.writeStream.format("jmsbridge.streams.TopologySink").option("run", "run").outputMode("update")
            query = sink.option("checkpointLocation", str(tmp_path / str(times))).trigger(availableNow=True).start()
            assert query.awaitTermination(60)
            assert runs.records("run") == 3 * times
            assert dict(runs.counts("run")) == {"in\trejected_records": times}
    finally:
        runs.close("run")
