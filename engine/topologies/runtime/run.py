"""Run of a topology: its checks before a query, and the queries one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from engine.errors import SetupError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError, UnusableTopicError
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.retry import Outage
from engine.kafka.settings import java_clients
from engine.kafka.topology_topics import ensure_topology_topics, topology_inputs
from engine.schemas.section import SchemaConfig
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.spark.cluster import task_slots, wait_for_slots
from engine.spark.failures import RecordRefusedError, spark_failure
from engine.spark.hadoop_path import StorageUnavailableError
from engine.spark.launch import Launch, checkpoint_settings, log_file
from engine.spark.section import SparkConfig
from engine.spark.settings import is_cluster
from engine.spark.stored_files import numbered
from engine.topologies.library.nodes import GlobalTableNode
from engine.topologies.library.program import JVM_ERRORS
from engine.topologies.library.served_modules import serve
from engine.topologies.runtime.attempts import Attempts
from engine.topologies.runtime.code import read_code
from engine.topologies.runtime.deaths import Deaths, told_deaths
from engine.topologies.runtime.definition import find, read
from engine.topologies.runtime.inputs import InputWatch
from engine.topologies.runtime.kept import KeptState, check_first_start, check_half_reset, state_folder, tables_folder
from engine.topologies.runtime.layout import lay_out
from engine.topologies.runtime.query import TopologyQuery
from engine.topologies.runtime.registry import planned
from engine.topologies.runtime.settings import mode_of
from engine.topologies.runtime.state_reader import StateReader
from engine.topologies.section import TopologiesConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from pyspark.sql import SparkSession

    from engine.kafka.settings import JavaClients
    from engine.spark.stored_files import Folder
    from engine.topologies.library.topology import Topology
    from engine.topologies.runtime.code import TopologyCode
    from engine.topologies.runtime.query import TopologyFigures
    from engine.topologies.runtime.settings import TopologySettings
    from routes.model import Config

__all__ = ["run_topology"]

_LOCK_SECONDS = 20.0

_log = structlog.get_logger(__name__)


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
    with told_deaths(config.embedded.data) as names, session.opened_by(launched) as spark:
        topology = read(settings.build)
        names.append(topology.name)
        java = java_clients(config.kafka_access)
        outage = Outage(config.kafka_access)
        attempts = Attempts(outage, topology.name, degraded)

        def begin_once(state: StateReader) -> None:
            is_first = not attempts.has_begun
            attempts.begun()
            if is_first:
                begin(topology, state)

        while not stop.is_set():
            try:
                if reason := _run(config, settings, java, spark, topology, stop, report, begin_once, attempts.refused):
                    attempts.again(reason)
            except (RecordRefusedError, UnusableTopicError, KafkaUnavailableError, StorageUnavailableError) as error:
                stop.wait(attempts.pause(error))


def _run(
    config: Config,
    settings: TopologySettings,
    java: JavaClients,
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
    clients, data = KafkaClients(config.kafka_access), config.embedded.data
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
    sources = topology_inputs(clients, topology.name, [source.topic for source in topology.sources])
    topics = [source.topic for source in topology.sources if not isinstance(source, GlobalTableNode)]
    partitions = {topic: sources[topic].partitions for topic in topics}
    layout = lay_out(topology, partitions, None if before is None else before.partitions)
    mode = mode_of(settings, layout)
    if not _has_slots(spark, topology.name, layout.shares, stop):
        return ""
    kafka = KafkaOffsets(clients)
    lock = CheckpointLock(spark, data, folder, _LOCK_SECONDS)
    try:
        batch = max(numbered(folder / "spark" / "commits"), default=-1) + 1
        check_half_reset(folder)
        if before is None:
            # A run that was killed before its first commit has left its notes here, and no state.
            check_first_start(kafka, topology.name, settings.build, folder, layout)
        made = layout.internal, layout.compacted, program.dead_letters
        internal = ensure_topology_topics(clients, config.journal, topology.name, *made, topology.outputs)
        inputs = {**{topic: sources[topic] for topic in partitions}, **internal}
        kept = KeptState.continued(folder, program, layout, inputs, batch)
        kept.write(folder)
        kept.place(program)
        begin(StateReader(spark, program, kept, folder))
        tables = {topic: facts for topic, facts in sources.items() if topic not in inputs}
        watch = InputWatch(kafka, topology.name, folder, inputs, tables, kept.fixed_inputs(layout))
        deaths = Deaths(data, topology.name)
        if death := deaths.note():
            _log.warning("the run before ended in the middle of a record", topology=topology.name, what=death)
        copies = tables_folder(data, topology.name)
        query = TopologyQuery(
            java, settings, spark, program, kept, layout, mode, lock, watch, refused, deaths.marks, copies
        )
        reason = query.follow(stop, report)
        deaths.forget()
        return reason
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


def _state_before(folder: Folder) -> KeptState | None:
    """The state that an earlier run has left; None if there is none."""
    try:
        return KeptState.read(folder)
    except JVM_ERRORS as error:
        raise spark_failure(error) from error
