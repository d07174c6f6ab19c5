"""Run of a topology: its checks, its Spark query, its figures every few seconds, and its stop."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import structlog
from py4j.protocol import Py4JNetworkError

from engine.delivery.back_off import BackOff
from engine.errors import SetupError, UsageError
from engine.kafka.errors import KafkaUnavailableError, UnusableTopicError
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.retry import Outage
from engine.kafka.topology_topics import ensure_topology_topics, partition_counts
from engine.schemas.section import SchemaConfig
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.spark.cluster import check_executors, task_slots, wait_for_slots
from engine.spark.failures import RecordRefusedError, query_failure, spark_failure
from engine.spark.hadoop_path import StorageUnavailableError, opened
from engine.spark.launch import Launch, checkpoint_settings, log_file
from engine.spark.section import SparkConfig
from engine.spark.settings import is_cluster
from engine.telemetry.metrics import RETENTION
from engine.topologies.library.nodes import GlobalTableNode
from engine.topologies.library.program import JVM_ERRORS, Program, reason_of
from engine.topologies.library.served_modules import serve
from engine.topologies.runtime.clients import consumer_settings, producer_settings
from engine.topologies.runtime.code import read_code
from engine.topologies.runtime.deaths import Deaths, told_deaths
from engine.topologies.runtime.definition import find, read
from engine.topologies.runtime.inputs import InputWatch
from engine.topologies.runtime.kept import KeptState, check_first_start, check_half_reset
from engine.topologies.runtime.lag_trend import LagTrend
from engine.topologies.runtime.layout import Layout, fixed_inputs, lay_out
from engine.topologies.runtime.registry import planned
from engine.topologies.runtime.state_reader import StateReader
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from threading import Event

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.spark.stored_files import Folder
    from engine.topologies.library.topology import Topology
    from engine.topologies.runtime.code import TopologyCode
    from routes.kafka_access import KafkaAccess
    from routes.model import Config

__all__ = [
    "Guarantee",
    "Mode",
    "TopologyFigures",
    "TopologySettings",
    "mode_of",
    "run_topology",
    "state_folder",
]

Mode = Literal["auto", "realtime", "batch"]
Guarantee = Literal["exactly_once", "at_least_once"]

_MOST_SHARES = 60
_MOST_RECORDS = 500_000
"""Most records of a partition in one batch: a batch is one transaction, and a restart repeats it."""
_COMMIT_MS = 100
_MOST_REFUSED = 1000
"""Most records that a run remembers as refused by Kafka."""
_NEVER_MS = 1 << 40
_READ_SECONDS, _POLL_SECONDS = 1.0, 0.05
_LOCK_SECONDS = 20.0
_MINIMUM_REALTIME_SECONDS = 5.0
_FINISH_SECONDS, _TASKS_SECONDS = 12.0, 10.0
"""Time that the batch or the interval under way may take to end at a stop, and its tasks if it is given up. Together
they are less than a part of a bridge has."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """Settings of a topology's run."""

    build: str
    """The function that builds it, as `module:function`."""
    mode: Mode = "auto"
    guarantee: Guarantee = "exactly_once"
    interval_seconds: float | None = None
    """Time between two commits of the state; None: 1 second in batches, 30 in real-time mode."""
    on_failure: str = "dead-letter"
    """Treatment of a record that cannot be read or computed: `dead-letter`, `skip` or `stop`."""
    name: str = "topology"
    """Name of the log file of its JVM."""


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


def state_folder(place: Path | str, spark: SparkSession, name: str) -> Folder:
    """Folder of the state and the checkpoint of a topology; `place` is that of all of them."""
    return opened(spark, place) / name


def run_topology(
    config: Config,
    settings: TopologySettings,
    stop: Event,
    report: Callable[[TopologyFigures], None] | None = None,
    begin: Callable[[Topology, StateReader], None] = lambda *_: None,
    degraded: Callable[[str], None] | None = None,
    code: TopologyCode | None = None,
) -> None:
    """Runs a topology until `stop` is set, in all its processes on the source files as they are at the beginning.

    If Kafka or the file system of the state is away, the query is started again until `router.outage-timeout` is over.
    A record that Kafka refuses is set aside: the query is started again and treats it as `on_failure` says. With
    `degraded`, a topic that the topology lacks is waited for, without a limit.

    Args:
        config: the configuration, for Kafka's address and login, Spark's settings and the data folder.
        settings: the topology and how it runs.
        stop: set from another thread or a signal handler.
        report: called about every second with the figures.
        begin: called with the topology and its state before it runs.
        degraded: called with a line for users before a new start; without it the first start has to succeed.
        code: the source files of the topology; those on disk if left out.

    Raises:
        UsageError: there is no such function, or the mode does not fit the topology.
        TopologyError: the module cannot be imported, its function fails, or the topology has faults.
        UnusableTopicError: without `degraded`, a topic is missing.
        HardFailureError: Kafka refuses something.
        SetupError: the state is of another topology, or another process works with it.
        UnreachableError: Kafka, the file system of the state or the schema registry has been away for too long.
        ServerEndedError: Spark's JVM has ended, or an executor of its cluster.
    """
    serve((read_code(settings.build, Path.cwd()) if code is None else code).modules)
    find(settings.build)
    log = log_file(config.embedded.data).with_name(f"{settings.name}.log")
    launched = Launch(
        config.embedded.data / "spark",
        log,
        {**checkpoint_settings(config.section(TopologiesConfig).state), **config.section(SparkConfig)},
    )
    with told_deaths(config.embedded.data) as names, session.opened(config, _MOST_SHARES, launched) as spark:
        topology = read(settings.build)
        names.append(topology.name)
        outage = Outage(config.kafka_access)
        attempts = _Attempts(outage, topology.name, degraded)

        def begin_once(state: StateReader) -> None:
            is_first = not attempts.has_begun
            attempts.begun()
            if is_first:
                begin(topology, state)

        while not stop.is_set():
            try:
                if reason := _run(config, settings, spark, topology, stop, report, begin_once, attempts.refused):
                    attempts.again(reason)
            except (RecordRefusedError, UnusableTopicError, KafkaUnavailableError, StorageUnavailableError) as error:
                stop.wait(attempts.pause(error))


class _Attempts:
    """Attempts of one run: which errors another attempt may cure, and the pauses between them."""

    def __init__(self, outage: Outage, name: str, degraded: Callable[[str], None] | None) -> None:
        """Creates it before the first attempt; `degraded` is that of `run_topology`."""
        self._name = name
        self._degraded = degraded
        self._outage = outage
        self._lacking = BackOff()
        self._lacks = 0
        self.has_begun = False
        """True once a query was about to start."""
        self.refused: list[str] = []
        """The records that Kafka has refused, see `RecordRefusedError.refusal`."""

    def begun(self) -> None:
        """Takes note that Kafka has all that the topology needs."""
        self._outage.over()
        self._lacks, self.has_begun = 0, True

    def again(self, reason: str) -> None:
        """Reports why the query starts again at once."""
        _log.info("query starts again", topology=self._name, reason=reason)
        if self._degraded is not None:
            self._degraded(reason)

    def pause(self, error: Exception) -> float:
        """The seconds to wait before the next attempt; raises the error if that is useless or nobody waits for it."""
        if isinstance(error, RecordRefusedError):
            self.refused[:] = [*self.refused, error.refusal][-_MOST_REFUSED:]
            _log.warning("query starts again without a record", topology=self._name, reason=str(error))
            return 0.0
        if isinstance(error, UnusableTopicError):
            self._lacks += 1
            # Kafka may have missed for a moment only what it had at the start.
            is_final = self._degraded is None and (self._lacks > 1 or not self.has_begun)
        else:
            is_final = isinstance(error, StorageUnavailableError) and self._outage.is_too_long
            is_final = is_final or not (self.has_begun or self._degraded)
        if is_final:
            raise error
        seconds = self._seconds(error)
        _log.warning("query starts again", topology=self._name, reason=str(error), after_seconds=round(seconds, 1))
        return seconds

    def _seconds(self, error: Exception) -> float:
        """The pause after an error, which is reported; UnreachableError after `router.outage-timeout`."""
        if isinstance(error, UnusableTopicError):
            # Kafka is usable: it has answered.
            self._outage.over()
            seconds, what = self._lacking.next(), "waiting for a topic"
        else:
            seconds, what = self._outage.goes_on(error), "trying again"
        if self._degraded is not None:
            self._degraded(f"{what}: {error}")
        return seconds


def _run(
    config: Config,
    settings: TopologySettings,
    spark: SparkSession,
    topology: Topology,
    stop: Event,
    report: Callable[[TopologyFigures], None] | None,
    begin: Callable[[StateReader], None],
    refused: Sequence[str],
) -> str:
    """Runs the topology by one query; raises as `run_topology`, and at once if Kafka or the file system is away.

    Returns why the query is to start again, in one line; an empty text at the end. Raises RecordRefusedError for a
    record that Kafka refuses; `refused` holds the earlier ones.
    """
    access, data = config.kafka_access, config.embedded.data
    folder = state_folder(config.section(TopologiesConfig).state, spark, topology.name)
    before = _state_before(folder)
    pinned = {} if before is None else before.versions
    program = planned(
        config.section(SchemaConfig),
        topology,
        spark,
        settings.on_failure,
        config.section(TopologiesConfig).function_timeout_seconds,
        pinned,
    )
    counts = partition_counts(access, topology.name, [source.topic for source in topology.sources])
    kafka = KafkaOffsets(access)
    topics = [source.topic for source in topology.sources if not isinstance(source, GlobalTableNode)]
    partitions = {topic: counts[topic] for topic in topics}
    layout = lay_out(topology, partitions, None if before is None else before.partitions)
    mode = mode_of(settings, layout)
    if not _has_slots(spark, topology.name, layout.shares, stop):
        return ""
    lock = CheckpointLock(spark, data, folder, _LOCK_SECONDS)
    try:
        check_half_reset(folder)
        if before is None:
            # A run that was killed before its first commit has left its notes here, and no state.
            check_first_start(kafka, topology.name, settings.build, folder, layout)
        made = layout.internal, layout.compacted, program.dead_letters
        ensure_topology_topics(access, config.journal, topology.name, *made, topology.outputs)
        facts = kafka.topics([*layout.partitions, *counts])
        read = {topic: fact for topic, fact in facts.items() if topic in layout.partitions}
        kept = KeptState.continued(folder, program, layout, read)
        kept.write(folder)
        kept.place(program)
        begin(StateReader(spark, program, kept, folder))
        tables = {topic: fact for topic, fact in facts.items() if topic not in read}
        watch = InputWatch(kafka, topology.name, folder, read, tables, fixed_inputs(topology, kept.nodes))
        deaths = Deaths(data, topology.name)
        if said := deaths.note():
            _log.warning("the run before ended in the middle of a record", topology=topology.name, what=said)
        query = _Query(access, settings, spark, program, kept, layout, mode, lock, watch, refused, deaths.marks)
        again = query.follow(stop, report)
        deaths.forget()
        return again
    except JVM_ERRORS as error:
        raise spark_failure(error) from error
    finally:
        lock.release()


def _has_slots(spark: SparkSession, name: str, needed: int, stop: Event) -> bool:
    """Waits for executors with as many task slots as the topology needs; returns False if it is to stop instead.

    Raises:
        SetupError: the session is local and has too few.
    """
    slots = task_slots(spark)
    if slots < needed and not is_cluster(spark.sparkContext.master):
        msg = f"the topology needs {needed} task slots and Spark has {slots}"
        raise SetupError(f"{msg}: raise the number in spark.master")
    return wait_for_slots(spark, needed, stop, lambda what: _log.info(what, topology=name))


class _Query:
    def __init__(
        self,
        access: KafkaAccess,
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
        is_exact = settings.guarantee == "exactly_once"
        self._seconds = settings.interval_seconds or (30.0 if mode == "realtime" else 1.0)
        ticks = mode == "realtime" and is_exact
        is_local = not is_cluster(spark.sparkContext.master)
        self._java.open(
            self._id,
            jvm.jmsbridge.streams.RunSettings(
                program.java,
                is_exact,
                dict(kept.partitions),
                consumer_settings(access, is_batch=mode == "batch"),
                producer_settings(access, is_batch=mode == "batch", is_exact=is_exact, waits=bool(order.bounds)),
                (folder / "state").absolute().as_uri(),
                _MOST_RECORDS,
                _COMMIT_MS if ticks else _NEVER_MS,
                list(kept.dropped),
                list(refused),
                kept.shares_later,
                KeptState.skipped(folder),
                str(marks.absolute()) if is_local else None,
                jvm.jmsbridge.streams.ReadOrder(
                    list(order.feeders), list(order.followers), [list(each) for each in order.bounds], is_local
                ),
            ),
        )

    def follow(self, stop: Event, report: Callable[[TopologyFigures], None] | None) -> str:
        """Starts the query, and watches it until it ends or shall end; returns why it is to start again, or nothing."""
        query = self._start()
        self._watch.start()
        again = ""
        name = self._program.topology.name
        _log.info("topology runs", topology=name, mode=self._mode, state=str(self._folder))
        try:
            while not (again or stop.wait(_READ_SECONDS)):
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
                again = self._watch.restart()
            self._finish(query)
        finally:
            self._watch.close()
            self._stop(query)
        _log.info("topology stopped", topology=name)
        return again

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
            said = _log.warning if reason else _log.info
            said("the topology is slower than its input", topology=self._program.topology.name, why=reason or "no more")
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


def mode_of(settings: TopologySettings, layout: Layout) -> Mode:
    """The mode in which the topology runs; UsageError for one that would break its guarantee."""
    is_ahead = layout.clocked and len(layout.partitions) > 1
    if settings.mode == "realtime":
        if is_ahead:
            names = ", ".join(f"'{name}'" for name in layout.clocked)
            msg = (
                f"{names}: the clock could be ahead of records that the topology has not read from all of its topics "
                f"({', '.join(layout.partitions)}); use --mode batch, or read one topic alone, without a change of key"
            )
            raise UsageError(msg)
        for nodes, what, risk in (
            (layout.mixes_inputs, "records of several topics meet there", "meet them in another order"),
            (layout.python, "Python functions get many records at once", "cut them otherwise"),
        ):
            if settings.guarantee == "exactly_once" and nodes:
                names = ", ".join(f"'{name}'" for name in nodes)
                msg = (
                    f"{names}: {what}, and after a crash real-time mode could {risk}, so that it cannot be exactly "
                    "once; use --mode batch, or --guarantee at_least_once"
                )
                raise UsageError(msg)
        if settings.interval_seconds is not None and settings.interval_seconds < _MINIMUM_REALTIME_SECONDS:
            msg = f"the interval of real-time mode is at least {_MINIMUM_REALTIME_SECONDS:.0f} s"
            raise UsageError(msg)
        return "realtime"
    if (
        settings.mode == "batch"
        or layout.python
        or is_ahead
        or (settings.guarantee == "exactly_once" and layout.mixes_inputs)
    ):
        return "batch"
    return "realtime"


def _state_before(folder: Folder) -> KeptState | None:
    """The state that an earlier run has left; None if there is none."""
    try:
        return KeptState.read(folder)
    except JVM_ERRORS as error:
        raise spark_failure(error) from error
