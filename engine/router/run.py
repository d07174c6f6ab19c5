"""Run of one generation: its figures, checks of its query, its notes in Kafka, and its clean stop."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.offsets import offset_summary
from engine.router.query_failures import MessagesRefusedError, query_failure, send_failure
from engine.spark.cluster import check_executors
from engine.spark.session import running_tasks

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.kafka.offsets import Offsets
    from engine.router.generation import Generation
    from engine.router.lag import LagSampler
    from engine.router.meter import Meter
    from engine.router.position_store import PositionStore
    from engine.router.row_counters import RowCounters, RowCounts

__all__ = ["Run"]

_DRAIN_SECONDS, _FLUSH_SECONDS, _POLL_SECONDS = 5.0, 10.0, 0.1
_NOTE_SECONDS = 3.0
_REPORT_SECONDS = 3.0
"""Time in which executors report the failure that ended the query."""

_log = structlog.get_logger(__name__)


class Run:
    """Generation whose query is running."""

    def __init__(
        self,
        spark: SparkSession,
        generation: Generation,
        query: StreamingQuery,
        sampler: LagSampler,
        counters: RowCounters,
        meter: Meter,
        store: PositionStore,
    ) -> None:
        self._spark = spark
        self._generation = generation
        self._query = query
        self._sampler = sampler
        self._counters = counters
        self._meter = meter
        self._store = store
        self._noted = -1
        self._noted_at = 0.0
        self._acknowledged = 0
        self._acknowledged_at = time.monotonic()

    def measure(self) -> RowCounts:
        """Reads the present figures, publishes them as metrics, and returns them."""
        reading = self._counters.read()
        self._meter.update(reading)
        self._meter.lag(self._sampler.lag(self._next(reading), reading.times_ms))
        if reading.acknowledged != self._acknowledged or not self._counters.under_way():
            self._acknowledged, self._acknowledged_at = reading.acknowledged, time.monotonic()
        return reading

    @property
    def unanswered_seconds(self) -> float:
        """Seconds for which Kafka has confirmed no record although some are under way, as of the last `measure`."""
        return time.monotonic() - self._acknowledged_at

    def check(self, reading: RowCounts) -> None:
        """Raises the error for which the query cannot continue, if there is one."""
        failure = query_failure(self._query)
        if failure and not reading.refused:
            _wait(self._counters.has_all_reports, _REPORT_SECONDS)
            reading = self._counters.read()
        if reading.refused:
            raise MessagesRefusedError(reading.refused)
        if failure:
            raise failure
        if not self._query.isActive:
            msg = "Spark's query ended by itself"
            raise RuntimeError(msg)
        check_executors(self._spark)
        if reading.failure:
            # Spark itself notices only at the next record of the same partition or at the end of the interval.
            raise send_failure(reading.failure)

    def note(self) -> None:
        """Notes Spark's committed positions in Kafka, every few seconds; a note that fails is sent at a later call."""
        now, commits = time.monotonic(), self._generation.commits()
        if commits != self._noted and now - self._noted_at > _NOTE_SECONDS:
            self._noted, self._noted_at = commits, now
            self._store.note(self._generation.committed())
        self._write_note()

    def stop(self, *, drain: bool) -> None:
        """Stops the query, and records its positions if Kafka has everything that it decided.

        `drain` first waits, for a few seconds at most, until the query has routed all of the journal.
        """
        if drain:
            _wait(self._drained, _DRAIN_SECONDS)
        _wait(lambda: self._counters.read().settled, _DRAIN_SECONDS)
        self._query.stop()
        _wait(lambda: not running_tasks(self._spark), _FLUSH_SECONDS)
        self._counters.refresh()
        _wait(lambda: not self._counters.under_way(), _FLUSH_SECONDS)
        is_complete, reading = self._counters.has_all_reports(), self.measure()
        if is_complete and reading.settled and not running_tasks(self._spark) and query_failure(self._query) is None:
            positions = self._next(reading)
            decided = {partition: at - 1 for partition, at in positions.items()}
            self._generation.stop(decided)
            self._store.note(self._generation.committed(), decided)
            _wait(self._write_note, _DRAIN_SECONDS)
            _log.info("router stopped", **offset_summary(positions))
        else:
            _log.warning("router stopped with records under way; the next start finds out which have arrived")

    def _write_note(self) -> bool:
        """Sends pending notes; returns True if Kafka has all notes."""
        try:
            self._store.write()
        except KafkaUnavailableError as error:
            _log.debug("the router's progress is not noted yet", why=str(error))
            return False
        return True

    def _drained(self) -> bool:
        self._sampler.sample()
        reading = self._counters.read()
        return self._sampler.lag(self._next(reading), reading.times_ms).total == 0

    def _next(self, reading: RowCounts) -> Offsets:
        """The offset after the last routed one, by journal partition."""
        seen = {partition: at + 1 for partition, at in reading.processed.items()}
        return {**self._generation.start.positions, **seen}


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    """Waits until a condition holds, for `seconds` at most."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
