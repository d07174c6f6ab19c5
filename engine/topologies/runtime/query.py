"""Spark query of a topology: its start, its figures every few seconds, and its stop."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from py4j.protocol import Py4JNetworkError

from engine.spark import session
from engine.spark.cluster import check_executors
from engine.spark.failures import query_failure
from engine.spark.settings import is_cluster
from engine.telemetry.metrics import RETENTION
from engine.topologies.library.program import JVM_ERRORS, Program, reason_of
from engine.topologies.runtime.kept import KeptState
from engine.topologies.runtime.lag_trend import LagTrend

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from threading import Event

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.kafka.settings import JavaClients
    from engine.spark.checkpoint_lock import CheckpointLock
    from engine.topologies.runtime.inputs import InputWatch
    from engine.topologies.runtime.layout import Layout
    from engine.topologies.runtime.settings import Mode, TopologySettings

__all__ = ["TopologyFigures", "TopologyQuery"]

_MOST_RECORDS = 500_000
"""Most records of a partition in one batch: a batch is one transaction, and a restart repeats it."""
_COMMIT_MS = 100
_NEVER_MS = 1 << 40
_TRANSACTION_MS = 600_000
_READ_SECONDS, _POLL_SECONDS = 1.0, 0.05
_FINISH_SECONDS, _TASKS_SECONDS = 12.0, 10.0
"""Time that the batch or the interval under way may take to end at a stop, and its tasks if it is given up. Together
they are less than a part of a bridge has."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TopologyFigures:
    """Figures of a running topology since its start."""

    topology: str
    mode: Mode
    records: int
    """Records processed, those of internal topics included."""
    lag: int
    """Records of its topics that are not processed yet."""
    state_bytes: int
    """Bytes of its state in local files and in memory, as of the last commit."""
    passed_over: Mapping[tuple[str, str], int]
    """Records that nodes did not process, under node and reason, such as `("totals", "late_records")`."""
    trouble: str = ""
    """Reason, in one line, why the topology does not do all its work although it runs; empty if it does."""

    @property
    def remarks(self) -> str:
        """The lag, the unprocessed records and the cause of a wait, each after a comma; empty without any."""
        passed = [f"{node} {reason}: {number:,}" for (node, reason), number in sorted(self.passed_over.items())]
        waits = [self.trouble] if self.trouble else []
        return "".join(f", {each}" for each in [*([f"{self.lag:,} behind"] if self.lag else []), *passed, *waits])


class TopologyQuery:
    """Query of a topology, which it runs in the JVM from its start to its end."""

    def __init__(
        self,
        java: JavaClients,
        settings: TopologySettings,
        spark: SparkSession,
        program: Program,
        kept: KeptState,
        layout: Layout,
        mode: Mode,
        lock: CheckpointLock,
        watch: InputWatch,
        refused: Sequence[str],
        marks: Path,
        tables: Path,
    ) -> None:
        self._spark = spark
        self._program = program
        self._mode = mode
        self._lock = lock
        self._watch = watch
        self._trend = LagTrend()
        self._readers = layout.readers
        self._gaps: dict[str, int] = {}
        self._folder = folder = lock.root
        order = layout.order
        self._id = uuid.uuid4().hex
        jvm: Any = spark._jvm
        self._java = jvm.jmsbridge.streams.TopologyRun
        is_batch, is_exact = mode == "batch", settings.guarantee == "exactly_once"
        self._seconds = settings.interval_seconds or (30.0 if mode == "realtime" else 1.0)
        ticks = mode == "realtime" and is_exact
        is_local = not is_cluster(spark.sparkContext.master)
        self._java.open(
            self._id,
            jvm.jmsbridge.streams.RunSettings(
                program.java,
                is_exact,
                dict(kept.partitions),
                _consumer_settings(java.consumer, is_batch=is_batch),
                _producer_settings(java.producer, is_batch=is_batch, is_exact=is_exact, waits=bool(order.bounds)),
                (folder / "state").absolute().as_uri(),
                _MOST_RECORDS,
                _COMMIT_MS if ticks else _NEVER_MS,
                list(kept.dropped),
                list(refused),
                kept.shares_later,
                KeptState.skipped(folder),
                str(marks.absolute()) if is_local else None,
                str(tables.absolute()) if is_local else None,
                jvm.jmsbridge.streams.ReadOrder(
                    list(order.feeders), list(order.followers), [list(each) for each in order.bounds], is_local
                ),
            ),
        )

    def follow(self, stop: Event, report: Callable[[TopologyFigures], None] | None) -> str:
        """Starts the query, and watches it until it ends or shall end; returns why it is to start again, or nothing."""
        query = self._start()
        self._watch.start()
        reason = ""
        name = self._program.topology.name
        _log.info("topology runs", topology=name, mode=self._mode, state=str(self._folder))
        try:
            while not (reason or stop.wait(_READ_SECONDS)):
                self._lock.check()
                if failure := query_failure(query):
                    self._watch.look()
                    self._watch.check()
                    raise failure
                self._watch.check()
                if not query.isActive:
                    msg = "Spark's query ended by itself"
                    raise RuntimeError(msg)
                check_executors(self._spark)
                figures = self._figures()
                if report is not None:
                    report(figures)
                self._java.maintain()
                reason = self._watch.restart()
            self._finish(query)
        finally:
            self._watch.close()
            self._stop(query)
        _log.info("topology stopped", topology=name)
        return reason

    def _finish(self, query: StreamingQuery) -> None:
        """Lets the batch or the interval under way end and commit its state, so that the next run repeats nothing."""
        deadline = time.monotonic() + _FINISH_SECONDS
        try:
            self._java.finish(self._id)
            while query.isActive and not self._has_finished(query):
                if time.monotonic() > deadline:
                    _log.warning(
                        "the batch under way is given up, and the next start repeats it",
                        topology=self._program.topology.name,
                        after_seconds=_FINISH_SECONDS,
                    )
                    return
                time.sleep(_POLL_SECONDS)
        except (Py4JNetworkError, ConnectionError) as error:
            _log.warning("not stopped in order", topology=self._program.topology.name, why=str(error))

    def _has_finished(self, query: StreamingQuery) -> bool:
        if self._mode == "realtime":
            return bool(self._java.hasFinished(self._id))
        return not query.status["isTriggerActive"]

    def _stop(self, query: StreamingQuery) -> None:
        """Stops the query, and closes clients and state in the JVM.

        Failures there are logged and not raised: the next run goes on from the last commit, as after a kill.
        """
        try:
            query.stop()
            _wait_for_tasks(self._spark)
            # What was lost since the figures were last read is not lost again, so that the next run cannot tell of it.
            self._lost(dict(self._java.gaps(self._id)))
            self._java.close(self._id)
        except (*JVM_ERRORS, Py4JNetworkError, ConnectionError) as error:
            why = reason_of(error) if isinstance(error, JVM_ERRORS) else "the JVM has ended"
            _log.warning("not stopped in order", topology=self._program.topology.name, why=why)

    def _start(self) -> StreamingQuery:
        rows = self._spark.readStream.format("jmsbridge.streams.TopologySource").option("run", self._id).load()
        writer: Any = rows.writeStream.format("jmsbridge.streams.TopologySink").option("run", self._id)
        writer = writer.option("checkpointLocation", str((self._folder / "spark").absolute())).outputMode("update")
        writer = writer.queryName(self._program.topology.name)
        milliseconds = f"{round(self._seconds * 1000)} milliseconds"
        if self._mode == "realtime":
            writer = writer.option("asyncProgressTrackingEnabled", "false").trigger(realTime=milliseconds)
        else:
            writer = writer.trigger(processingTime=milliseconds)
        query: StreamingQuery = writer.start()
        return query

    def _figures(self) -> TopologyFigures:
        java, run = self._java, self._id
        counts: dict[tuple[str, str], int] = {}
        for name, number in java.counts(run).items():
            node, _, reason = name.partition("\t")
            counts[node, reason] = number
        for topic, number in self._lost(dict(java.gaps(run))).items():
            counts[self._readers[topic], RETENTION] = number
        records, lag, size = java.records(run), java.lag(run), java.stateBytes(run)
        trouble = "; ".join(filter(None, (self._watch.trouble(), self._falls_behind(records, lag), java.trouble(run))))
        return TopologyFigures(self._program.topology.name, self._mode, records, lag, size, counts, trouble)

    def _falls_behind(self, records: int, lag: int) -> str:
        was_behind = self._trend.reason
        reason = self._trend.update(time.monotonic(), records, lag)
        if bool(reason) != bool(was_behind):
            log = _log.warning if reason else _log.info
            log("the topology is slower than its input", topology=self._program.topology.name, why=reason or "no more")
        return reason

    def _lost(self, gaps: Mapping[str, int]) -> dict[str, int]:
        """Number of records by topic that Kafka removed before they were read. Each gap is logged once."""
        lost: dict[str, int] = {}
        for place, end in sorted(gaps.items()):
            topic, partition, first = place.split("\t")
            lost[topic] = lost.get(topic, 0) + end - int(first)
            if self._gaps.get(place) != end:
                self._gaps[place] = end
                _log.error(
                    "records are gone before the topology has read them, and are missing in its state and its results",
                    topology=self._program.topology.name,
                    topic=topic,
                    partition=int(partition),
                    from_offset=int(first),
                    to_offset=end - 1,
                    remedy="raise the retention of the topic",
                )
        return lost


def _wait_for_tasks(spark: SparkSession) -> None:
    deadline = time.monotonic() + _TASKS_SECONDS
    while session.running_tasks(spark) and time.monotonic() < deadline:
        time.sleep(0.1)


def _consumer_settings(configured: Mapping[str, str], *, is_batch: bool) -> dict[str, str]:
    """The settings of a share's consumer, as Kafka's Java client has them."""
    fixed = {"enable.auto.commit": "false", "auto.offset.reset": "none"}
    # Kafka's client waits for one answer at a time: one that a quiet topic delays holds up the records of the others.
    # Batches read only what is there.
    speed = {"max.poll.records": "500", "fetch.max.wait.ms": "100"}
    if is_batch:
        speed = {"max.poll.records": "2000", "fetch.max.wait.ms": "10", "max.partition.fetch.bytes": str(4 << 20)}
    return {**speed, **configured, **fixed}


def _producer_settings(configured: Mapping[str, str], *, is_batch: bool, is_exact: bool, waits: bool) -> dict[str, str]:
    """The settings of a share's producer; `waits` if shares wait for one another."""
    # Shares that wait for one another do so until their records are sent.
    linger_ms = 0 if not is_batch else 5 if waits else 20
    speed = {"linger.ms": str(linger_ms), "batch.size": str(256 * 1024)}
    return {**speed, **configured, **({"transaction.timeout.ms": str(_TRANSACTION_MS)} if is_exact else {})}
