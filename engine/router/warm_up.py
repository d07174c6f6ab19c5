"""Warm-up of Spark: runs a router's first steps once and discards the results, because Spark is slow at first.

A standby runs recovery and routing on a few records. That loads the classes and compiles the code that a takeover
needs, which shortens the takeover by ten seconds and more on two cores. A router in batch mode with nothing to route
yet compiles its routing before it reports that it is ready; Spark would otherwise do so at the first record. No record
is written.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets
from engine.kafka.topics import BridgeTopics
from engine.router.kafka_io import KafkaIO
from engine.router.plan.route import route
from engine.router.published import Proof, find
from engine.router.recovery import outputs
from engine.seals import SealKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from engine.kafka.offsets import Offsets, Topics
    from engine.router.plan.route import Routed
    from routes.model import Config

__all__ = ["compile_routing", "warming"]

_RECORDS = 10
"""Number of records that the warm-up reads from each partition."""
_JOBS = "warm-up"
"""Group of the jobs of the warm-up, which are cancelled together and without the session's own."""
_log = structlog.get_logger(__name__)


@contextmanager
def warming(spark: SparkSession, config: Config, report: Callable[[str], None]) -> Iterator[None]:
    """Warms Spark up in a thread until the context ends, which cancels the warm-up.

    `report` is called in that thread with lines for users about its progress.
    """
    ended = Event()

    def run() -> None:
        report("warming Spark up")
        spark.sparkContext.setJobGroup(_JOBS, "warm-up of a router that stands by")
        _warm(spark, config, ended)
        report("waiting to lead")

    thread = Thread(target=run, name="warming", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        spark.sparkContext.cancelJobGroup(_JOBS)
        thread.join()


def compile_routing(kafka_io: KafkaIO, routed_by: Callable[[DataFrame], Routed], positions: Offsets) -> None:
    """Compiles the code of a query that begins at `positions` of the journal, by running it on no records."""
    kafka_io.compile_once()
    journal = {kafka_io.config.journal.topic: positions}
    published = kafka_io.published(routed_by(kafka_io.range(journal, journal, committed=True)))
    published.write.format("noop").mode("overwrite").save()


def _warm(spark: SparkSession, config: Config, ended: Event) -> None:
    """Runs recovery's search and the routing on a few records, which takes some seconds.

    Failures are only logged: they recur in the real run, which reports them.
    """
    try:
        config = replace(config, routes=BridgeTopics(config).routes(ANSWER_SECONDS))
        kafka_io, kafka = KafkaIO(spark, config), KafkaOffsets(KafkaClients(config.kafka_access))
        kafka_io.compile_once()
        journal = config.journal.topic
        if (topics := outputs(config.routes, config.letter_topic)) and not ended.is_set():
            is_own = partial(kafka_io.is_sealed, SealKeys(b"", config.bridge_id).of_records(journal, ""))
            proof = Proof(journal, config.bridge_id, {0: 0}, {0: 0}, is_own, config.letter_topic)
            find(kafka_io.range(*_last(kafka, topics), committed=False), proof)
        frame = kafka_io.range(*_last(kafka, [journal]), committed=True)
        routed = route(frame, config, BridgeTopics(config).limits(ANSWER_SECONDS), F.lit(0))
        if ended.is_set():
            return
        routed.frame.where("topic IS NOT NULL").write.format("noop").mode("overwrite").save()
    except (KafkaUnavailableError, HardFailureError, PySparkException, Py4JJavaError) as error:
        _log.debug("not warmed", why=str(error))


def _last(kafka: KafkaOffsets, topics: list[str]) -> tuple[Topics, Topics]:
    """Starts and ends of the last records in each partition, before any open transaction."""
    starts, ends = kafka.starts(topics), kafka.ends(topics, committed=True)
    return {
        topic: {each: max(starts[topic][each], end - _RECORDS) for each, end in offsets.items()}
        for topic, offsets in ends.items()
    }, ends
