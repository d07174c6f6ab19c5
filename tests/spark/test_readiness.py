"""A query that is ready routes what comes now: nothing is left to compile, and its tasks read the journal."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pyspark.sql import DataFrame, SparkSession

from engine.embedded import EmbeddedKafka
from engine.message import Message
from engine.router import Routed, route
from engine.router.kafka_io import KafkaIO
from engine.router.row_counters import RowCounters
from engine.router.vitals import Readiness
from engine.router.warm_up import compile_routing, warming
from engine.telemetry.meters import SparkMetrics
from routes.config import loads
from routes.properties import Property
from tests.conftest import TopicFactory
from tests.integration.router.bench import wait_for
from tests.topic_records import ordered_producer

TEXT = """\
bridge.id=b
kafka.bootstrap.servers={bootstrap}
journal.topic={journal}
router.mode={mode}
router.interval=5s
routes.a.in.include=color LIKE 'r%' AND amount > 5
routes.a.out.topic={out}
"""


def compiled(spark: SparkSession) -> int:
    """How many classes Spark has made so far."""
    jvm: Any = spark._jvm
    return int(jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())


@pytest.mark.parametrize("mode", ["realtime", "batch"])
def test_a_record_that_comes_when_the_query_is_ready_waits_for_no_code(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, mode: str
) -> None:
    journal, out = topic("journal", 2), topic("out", 1)
    config = loads(TEXT.format(bootstrap=kafka.bootstrap, journal=journal, out=out, mode=mode), base=tmp_path)
    kafka_io, counters, positions = KafkaIO(spark, config), RowCounters(spark), {0: 0, 1: 0}
    counters.reset()

    def routed_by(frame: DataFrame) -> Routed:
        return route(frame, config, now=counters.now())

    routed = routed_by(kafka_io.follow(positions))
    counters.begin(routed.outcomes, 1)
    readiness = Readiness(SparkMetrics(CollectorRegistry()), positions, time.monotonic())
    readiness.update(counters.read())
    assert not readiness.ready
    at_first = compiled(spark)
    if mode == "batch":
        compile_routing(kafka_io, routed_by, positions)
    query = kafka_io.start(routed, tmp_path / "checkpoint")
    try:

        def is_ready() -> bool:
            readiness.update(counters.read())
            return readiness.ready

        wait_for(is_ready, 240)
        assert counters.read().looked == (mode == "batch")
        before = compiled(spark)
        # Once for driver and tasks together, or never if an earlier query had the same code.
        assert before - at_first <= 1
        producer = ordered_producer(kafka.bootstrap)
        properties = {"color": Property("red"), "amount": Property("6")}
        record = Message(b"1", headers={"JMSMessageID": "ID:1"}, properties=properties).to_record()
        headers: Any = list(record.headers)
        for partition in positions:
            producer.produce(journal, record.value, record.key, partition, headers=headers)
        assert producer.flush(60) == 0
        wait_for(lambda: counters.read().acknowledged == 2, 120)
        assert compiled(spark) == before
    finally:
        query.stop()
        kafka_io.close()
        counters.reset()


def test_the_end_of_a_warm_up_cancels_no_other_job(
    spark: SparkSession, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path
) -> None:
    journal, out = topic("journal", 2), topic("out", 1)
    config = loads(TEXT.format(bootstrap=kafka.bootstrap, journal=journal, out=out, mode="batch"), base=tmp_path)
    tracker = spark.sparkContext.statusTracker()
    with ThreadPoolExecutor() as threads:
        other = threads.submit(spark.range(500_000_000).selectExpr("max(hash(id) % 7) AS most").collect)
        wait_for(lambda: bool(tracker.getActiveJobsIds()), 30)
        with warming(spark, config, lambda _: None):
            assert not other.done()
        assert other.result()[0]["most"] == 6
