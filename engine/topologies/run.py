"""Run of a topology: its checks, its Spark query, its figures every few seconds, and its stop."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import structlog
from py4j.protocol import Py4JError, Py4JNetworkError

from engine.errors import ServerEndedError, SetupError, UsageError
from engine.kafka.errors import KafkaUnavailableError
from engine.kafka.retry import Outage
from engine.kafka.settings import spark_options
from engine.kafka.topology_topics import ensure_topology_topics, partition_counts
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.spark.cluster import check_executors, task_slots, wait_for_slots
from engine.spark.failures import query_failure, spark_failure
from engine.spark.hadoop_path import StorageUnavailableError, opened
from engine.spark.launch import Launch, checkpoint_settings, log_file
from engine.streams.nodes import GlobalTableNode
from engine.streams.program import JVM_ERRORS, Program, reason_of
from engine.topologies.deaths import Deaths
from engine.topologies.definition import find, read
from engine.topologies.kept import KeptState
from engine.topologies.layout import Layout, lay_out
from engine.topologies.registry import planned
from engine.topologies.state_reader import StateReader
from routes.spark_master import is_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from threading import Event

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from engine.spark.stored_files import Folder
    from engine.streams.topology import Topology
    from routes.model import Config

__all__ = [
    "Guarantee",
    "Mode",
    "TopologyFigures",
    "TopologySettings",
    "run_topology",
    "state_folder",
]

Mode = Literal["auto", "realtime", "batch"]
Guarantee = Literal["exactly_once", "at_least_once"]

_MOST_SHARES = 60
_MOST_RECORDS = 500_000
"""Most records of a partition in one batch: a batch is one transaction, and what a restart repeats."""
_COMMIT_MS = 100
_NEVER_MS = 1 << 40
_READ_SECONDS, _POLL_SECONDS = 1.0, 0.05
_MAINTENANCE_SECONDS = 30.0
_LOCK_SECONDS = 20.0
_TRANSACTION_MS = 600_000
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
    """What happens with a record that cannot be read or computed: `dead-letter`, `skip` or `stop`."""
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

    @property
    def remarks(self) -> str:
        """The lag and what was not processed, each after a comma; empty if there is neither."""
        passed = [f"{node} {reason}: {number:,}" for (node, reason), number in sorted(self.passed_over.items())]
        return "".join(f", {each}" for each in [*([f"{self.lag:,} behind"] if self.lag else []), *passed])


def state_folder(config: Config, spark: SparkSession, name: str) -> Folder:
    """Folder of the state and the checkpoint of a topology."""
    return opened(spark, config.topology_folder) / name


def run_topology(
    config: Config,
    settings: TopologySettings,
    stop: Event,
    report: Callable[[TopologyFigures], None] | None = None,
    begin: Callable[[Topology, StateReader], None] = lambda *_: None,
    degraded: Callable[[str], None] | None = None,
) -> None:
    """Runs a topology until `stop` is set.

    If Kafka or the file system of the state is away, the query is started again until `router.outage-timeout` is over.

    Args:
        config: the configuration, for Kafka's address and login, Spark's settings and the data folder.
        settings: the topology and how it runs.
        stop: set from another thread or a signal handler.
        report: called about every second with the figures.
        begin: called with the topology and its state before it runs.
        degraded: called with a line for users before a new start; without it the first start has to succeed.

    Raises:
        UsageError: there is no such function, or the mode does not fit the topology.
        TopologyError: the topology has faults.
        HardFailureError: a topic is missing, or Kafka refuses something.
        SetupError: the state is of another topology, or another process works with it.
        UnreachableError: Kafka, the file system of the state or the schema registry has been away for too long.
        ServerEndedError: Spark's JVM has ended, or an executor of its cluster.
    """
    find(settings.build)
    log = log_file(config).with_name(f"{settings.name}.log")
    launched = Launch(
        config.embedded.data / "spark", log, {**checkpoint_settings(config.topology_folder), **config.spark}
    )
    with _told_deaths(config) as names, session.opened(config, _MOST_SHARES, launched) as spark:
        topology = read(settings.build)
        names.append(topology.name)
        outage, has_begun = Outage(config), False

        def begin_once(state: StateReader) -> None:
            nonlocal has_begun
            outage.over()
            if not has_begun:
                begin(topology, state)
            has_begun = True

        while not stop.is_set():
            try:
                _run(config, settings, spark, topology, stop, report, begin_once)
                return
            except (KafkaUnavailableError, StorageUnavailableError) as error:
                is_final = isinstance(error, StorageUnavailableError) and outage.is_too_long
                if is_final or not (has_begun or degraded):
                    raise
                seconds = outage.goes_on(error)
                _log.warning("query starts again", topology=topology.name, reason=str(error), after_seconds=seconds)
                if degraded is not None:
                    degraded(f"trying again: {error}")
                stop.wait(seconds)


def _run(
    config: Config,
    settings: TopologySettings,
    spark: SparkSession,
    topology: Topology,
    stop: Event,
    report: Callable[[TopologyFigures], None] | None,
    begin: Callable[[StateReader], None],
) -> None:
    """Runs the topology by one query; raises as `run_topology`, and at once if Kafka or the file system is away."""
    program = planned(config.schema, topology, spark, settings.on_failure, config.function_timeout_seconds)
    topics = [source.topic for source in topology.sources if not isinstance(source, GlobalTableNode)]
    partition_counts(config, topology.name, [source.topic for source in topology.sources])
    layout = lay_out(topology, partition_counts(config, topology.name, topics))
    mode = _mode(settings, layout)
    if not _has_slots(spark, topology.name, layout.shares, stop):
        return
    ensure_topology_topics(config, topology.name, layout.internal, layout.compacted, program.dead_letters)
    folder = state_folder(config, spark, topology.name)
    lock = CheckpointLock(spark, config, folder, _LOCK_SECONDS)
    try:
        kept = _checked(folder, program, layout)
        kept.write(folder)
        kept.place(program)
        begin(StateReader(spark, program, kept, folder))
        deaths = Deaths(config, topology.name)
        if said := deaths.note():
            _log.warning("the run before ended in the middle of a record", topology=topology.name, what=said)
        _Query(config, settings, spark, program, kept, mode, lock, deaths.marks).follow(stop, report)
        deaths.forget()
    except JVM_ERRORS as error:
        raise spark_failure(error) from error
    finally:
        lock.release()


@contextmanager
def _told_deaths(config: Config) -> Iterator[list[str]]:
    """Adds the record under way to the error of a JVM that has ended or is about to; takes the topology's name."""
    names: list[str] = []
    try:
        yield names
    except (ServerEndedError, RuntimeError, Py4JError) as error:
        said = "".join(Deaths(config, name).note() for name in names)
        if not said:
            raise
        # A call that a JVM cuts off while it ends fails with nothing but its own name.
        what = "Spark's Java process has ended" if isinstance(error, Py4JError) else error
        msg = f"{what}; {said}"
        raise ServerEndedError(msg) from error


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
        config: Config,
        settings: TopologySettings,
        spark: SparkSession,
        program: Program,
        kept: KeptState,
        mode: Mode,
        lock: CheckpointLock,
        marks: Path,
    ) -> None:
        self._spark = spark
        self._program = program
        self._mode = mode
        self._lock = lock
        self._folder = folder = lock.root
        self._id = uuid.uuid4().hex
        jvm: Any = spark._jvm
        self._java = jvm.jmsbridge.streams.TopologyRun
        is_exact = settings.guarantee == "exactly_once"
        self._seconds = settings.interval_seconds or (30.0 if mode == "realtime" else 1.0)
        ticks = mode == "realtime" and is_exact
        self._java.open(
            self._id,
            jvm.jmsbridge.streams.RunSettings(
                program.java,
                is_exact,
                dict(kept.partitions),
                _consumer(config, mode),
                _producer(config, mode, is_exact=is_exact),
                (folder / "state").absolute().as_uri(),
                _MOST_RECORDS,
                _COMMIT_MS if ticks else _NEVER_MS,
                list(kept.dropped),
                KeptState.skipped(folder),
                None if is_cluster(spark.sparkContext.master) else str(marks.absolute()),
            ),
        )

    def follow(self, stop: Event, report: Callable[[TopologyFigures], None] | None) -> None:
        """Starts the query, and watches it until it ends or shall end."""
        query = self._start()
        name = self._program.topology.name
        _log.info("topology runs", topology=name, mode=self._mode, state=str(self._folder))
        maintained = time.monotonic()
        try:
            while not stop.wait(_READ_SECONDS):
                self._lock.check()
                if failure := query_failure(query):
                    raise failure
                if not query.isActive:
                    msg = "Spark's query ended by itself"
                    raise RuntimeError(msg)
                check_executors(self._spark)
                if report is not None:
                    report(self._figures())
                if time.monotonic() - maintained > _MAINTENANCE_SECONDS:
                    maintained = time.monotonic()
                    self._java.maintain()
            self._finish(query)
        finally:
            self._stop(query)
        _log.info("topology stopped", topology=name)

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

        What goes wrong there is logged and not raised: the next run goes on from the last commit, as after a kill.
        """
        try:
            query.stop()
            _wait_for_tasks(self._spark)
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
        records, lag, size = java.records(run), java.lag(run), java.stateBytes(run)
        return TopologyFigures(self._program.topology.name, self._mode, records, lag, size, counts)


def _wait_for_tasks(spark: SparkSession) -> None:
    deadline = time.monotonic() + _TASKS_SECONDS
    while session.running_tasks(spark) and time.monotonic() < deadline:
        time.sleep(0.1)


def _mode(settings: TopologySettings, layout: Layout) -> Mode:
    """The mode in which the topology runs; UsageError for one that would break its guarantee."""
    if settings.mode == "realtime":
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
    if settings.mode == "batch" or layout.python or (settings.guarantee == "exactly_once" and layout.mixes_inputs):
        return "batch"
    return "realtime"


def _checked(folder: Folder, program: Program, layout: Layout) -> KeptState:
    """The state with which the topology goes on.

    Raises:
        SetupError: the state in the folder cannot be used; the text names the nodes and the ways out.
    """
    before = KeptState.read(folder)
    now = KeptState.of(program, layout.partitions, before)
    misfits = [] if before is None else before.misfits(now)
    if misfits:
        msg = (
            f"the state in {folder} does not fit the topology any more ({'; '.join(misfits)}). Four ways out: "
            "undo the change; keep the state of all other nodes with `jms-bridge topology migrate`; "
            "give StreamsBuilder a new name, which begins with empty state; or throw the state away with "
            f"`jms-bridge topology reset {folder.name}` and read the topics from their beginning again"
        )
        raise SetupError(msg)
    return now


def _consumer(config: Config, mode: Mode) -> dict[str, str]:
    own = _plain(spark_options(config, "consumer"))
    fixed = {"enable.auto.commit": "false", "auto.offset.reset": "none"}
    # Kafka's client waits for one answer at a time: one that a quiet topic delays holds up the records of the others.
    # Batches read only what is there.
    speed = {"max.poll.records": "500", "fetch.max.wait.ms": "100"}
    if mode == "batch":
        speed = {"max.poll.records": "2000", "fetch.max.wait.ms": "10", "max.partition.fetch.bytes": str(4 << 20)}
    return {**speed, **own, **fixed}


def _producer(config: Config, mode: Mode, *, is_exact: bool) -> dict[str, str]:
    own = _plain(spark_options(config, "producer"))
    speed = {"linger.ms": "0" if mode == "realtime" else "20", "batch.size": str(256 * 1024)}
    return {**speed, **own, **({"transaction.timeout.ms": str(_TRANSACTION_MS)} if is_exact else {})}


def _plain(options: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix("kafka."): value for name, value in options.items()}
