"""Main loop of the router: recovery, the query, figures every second, and the handling of failures.

What Kafka does not take while the router runs, since its topic was deleted or for its own sake, becomes dead letters:
the query starts again and sends it no more. There are three kinds of failure. One that only the operator can repair
ends the router with an error that states the remedy. One that may pass (Kafka gone, a partition without a leader)
starts the query again through recovery, until it has lasted for `router.outage-timeout`. Any other failure ends the
process; the supervisor starts it again.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import structlog
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from engine.claims.section import ClaimCheckConfig
from engine.errors import HardFailureError, ServerEndedError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import KafkaUnavailableError, UnusableTopicError
from engine.kafka.offsets import ANSWER_SECONDS, KafkaOffsets
from engine.kafka.retry import Outage
from engine.kafka.topics import BridgeTopics
from engine.printable import listed
from engine.router.expired_bodies import removing_expired
from engine.router.generation import Generations
from engine.router.kafka_io import KafkaIO
from engine.router.lag import LagSampler
from engine.router.last_progress import last_progress, noted
from engine.router.meter import Meter
from engine.router.plan.failures import StoppedByPolicyError
from engine.router.plan.refusals import NO_REFUSALS, Refusals
from engine.router.plan.route import route
from engine.router.position_store import PositionStore
from engine.router.publish_deadline import limited
from engine.router.query_failures import MessagesRefusedError, error_failure
from engine.router.recovery import Recovery, outputs, seal_of
from engine.router.row_counters import RowCounters
from engine.router.run import Run
from engine.router.secret import present_keys
from engine.router.vitals import Readiness, Vitals, process_age
from engine.router.warm_up import compile_routing
from engine.schemas.jvm_registry import RegistryUnavailableError, registry_trouble
from engine.spark import session
from engine.spark.checkpoint_lock import CheckpointLock
from engine.spark.cluster import task_slots, wait_for_slots
from engine.spark.hadoop_path import StorageUnavailableError, opened
from engine.spark.settings import is_cluster
from engine.telemetry.meters import RouterMetrics, SparkMetrics
from engine.telemetry.status import State
from routes.model import RouterMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from threading import Event

    from pyspark.sql import DataFrame

    from engine.kafka.offsets import Offsets
    from engine.router.generation import Generation
    from engine.router.kafka_io import Seal
    from engine.router.plan.route import Routed
    from engine.spark.launch import Launch
    from engine.telemetry.status import Reporter
    from routes.model import Config, Target

__all__ = ["Revisions", "run_router"]

_READ_SECONDS = 1.0
_READY_SECONDS = 0.25
"""Shorter interval between two readings, used until the query is ready."""
_SILENCE_SECONDS = 8.0
"""Time without an answer from Kafka after which the router reports that it is degraded."""
_UNANSWERED_SECONDS = 10.0
"""Time without a confirmation of sent records after which the router reports that it is degraded."""
_HEALTHY_SECONDS = 15.0
"""Running time of a query after which an outage counts as over."""
_GIVE_UP_SECONDS = 10.0
"""Time that producers have for other records when a topic is gone."""
_LOOK_SECONDS = 5.0
"""Interval at which topics that take no records are looked at again."""
_REGISTRY_SECONDS = 2.0
"""Interval at which the schema registry is asked again for the schemas that routes name."""
_ALIVE_SECONDS = 0.1
"""Interval at which the process of the JVM is looked at."""
_LOCK_SECONDS = 30.0
"""Greatest time to wait for the lock of the checkpoint."""

_log = structlog.get_logger(__name__)


class Revisions(Protocol):
    """Source of newer configurations for a running router."""

    environment: Mapping[str, str]
    """Variables that configurations refer to; those of secrets are not among those that the JVM gets."""

    def newer(self) -> Config | None:
        """A configuration that is newer than the one returned before; None if there is none."""

    def in_force(self) -> None:
        """Called by the router when it routes by the configuration that `newer` returned last."""


class _NoRevisions:
    environment: Mapping[str, str] = os.environ

    def newer(self) -> None:
        return None

    def in_force(self) -> None:
        pass


def run_router(
    config: Config,
    status: Reporter,
    stop: Event,
    may_publish_until: Callable[[], float | None] = lambda: None,
    revisions: Revisions | None = None,
    launched: Launch | None = None,
) -> None:
    """Routes the journal until `stop` is set, then stops the query in good order.

    `launched` is a JVM that is opening a session; the first look at Kafka is beside that.

    The router asks `revisions` every second. A newer configuration takes effect with a new generation, which starts
    where the one before it ended. `may_publish_until` is described at `engine.router.publish_deadline.limited`.

    Raises:
        BridgeError: the operator has to repair something before the router can run again; see `engine.errors`.
        RuntimeError: the query ended for another reason, which a new process may not meet.
    """
    topics = BridgeTopics(config)
    topics.ensure_state_topic()
    spark = session.start(config, topics.ensure_journal(), launched)
    try:
        place, data = config.router.checkpoint, config.embedded.data

        def locked() -> CheckpointLock:
            return CheckpointLock(spark, data, opened(spark, place), _LOCK_SECONDS)

        if (lock := _awaited(locked, Outage(config.kafka_access), status, stop)) is None:
            return
        with limited(spark, may_publish_until), removing_expired(spark, config.section(ClaimCheckConfig)):
            _Router(config, status, KafkaIO(spark, config), lock, revisions or _NoRevisions()).run(stop)
        lock.release()
    finally:
        session.close(spark)


def _awaited(
    locked: Callable[[], CheckpointLock], outage: Outage, status: Reporter, stop: Event
) -> CheckpointLock | None:
    """The lock of the checkpoint, whose file system is waited for; None if the router is to stop instead."""
    while not stop.is_set():
        try:
            return locked()
        except StorageUnavailableError as error:
            if outage.is_too_long:
                raise
            status.state(State.DEGRADED, f"trying again: {error}")
            stop.wait(_READ_SECONDS)
    return None


def _stops(stop: Event, seconds: float) -> bool:
    """Waits for `stop`, for `seconds` and for the life of the JVM at most; returns True if it is set."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not session.has_ended():
        if stop.wait(min(left, _ALIVE_SECONDS)):
            return True
    return stop.is_set()


class _Router:
    """Run of the router in this process, over any number of queries."""

    def __init__(
        self,
        config: Config,
        status: Reporter,
        kafka_io: KafkaIO,
        lock: CheckpointLock,
        revisions: Revisions,
    ) -> None:
        self._config = config
        self._lock = lock
        self._generations = Generations(lock.root)
        self._revisions = revisions
        self._is_new = False
        self._status = status
        self._clients = KafkaClients(config.kafka_access)
        self._kafka = KafkaOffsets(self._clients)
        self._kafka_io = kafka_io
        self._counters = RowCounters(kafka_io.spark)
        self._metrics = RouterMetrics(status.registry, config)
        self._spark_metrics = SparkMetrics(status.registry)
        self._meter = Meter(self._metrics)
        self._outage = Outage(config.kafka_access)
        self._store = PositionStore(self._clients, config.bridge_id, config.journal)
        self._began = time.monotonic() - process_age()
        self._alone_since = time.monotonic()
        self._has_checked = False
        """True once all topics could be written: what is missing later was deleted while the router runs."""
        self._refused: dict[tuple[int, int, int], str] = {}
        self._resolved_topics: dict[str, set[str]] = {}
        """Topics that each template of topics has stood for so far."""
        self._seal: Seal | None = None

    def run(self, stop: Event) -> None:
        while not stop.is_set():
            try:
                self._renew()
                if not self._has_slots(stop):
                    return
                self._status.state(State.STARTING, "finding out what the last run has published")
                config = self._resolved(self._config)
                self._route(config, self._recovered(config), stop)
            except MessagesRefusedError as error:
                self._refused |= error.messages
                _log.warning("query starts again without messages", messages=len(error.messages), reason=str(error))
            except (PySparkException, Py4JJavaError) as error:
                self._retry(error_failure(error), stop)
            except (KafkaUnavailableError, StorageUnavailableError, StoppedByPolicyError, UnusableTopicError) as error:
                self._retry(error, stop)
            except RegistryUnavailableError as error:
                self._status.state(State.DEGRADED, f"trying again: {error}")
                stop.wait(_REGISTRY_SECONDS)
            self._began = time.monotonic()

    def _has_slots(self, stop: Event) -> bool:
        """Waits for executors with the task slots that a query needs; returns False if the router is to stop."""
        spark, journal = self._kafka_io.spark, self._config.journal.topic
        if not is_cluster(spark.sparkContext.master):
            return True
        needed = self._slots_needed(self._kafka.partitions([journal]).get(journal, 0))
        return wait_for_slots(spark, needed, stop, self._report_wait)

    def _slots_needed(self, partitions: int) -> int:
        """Number of tasks that have to run at once; in batches those of a cluster can wait for each other."""
        is_batch = self._config.router.mode is RouterMode.BATCH
        return 1 if is_batch and is_cluster(self._kafka_io.spark.sparkContext.master) else partitions

    def _renew(self) -> bool:
        """Takes a newer configuration, if there is one; returns True if the present one is not in force yet."""
        if (config := self._revisions.newer()) is not None:
            self._config, self._is_new = config, True
            self._metrics.prepare(config.routes, config.routing.on_unmatched)
        return self._is_new

    def _recovered(self, config: Config) -> Generation:
        began = time.monotonic()
        self._store.open()
        journal_id = self._kafka.identity(config.journal.topic)
        keys = present_keys(config.bridge_id, config.secret, self._lock.root)
        entry = noted(self._store, self._generations, journal_id, keys)
        last = last_progress(self._generations, entry, journal_id, keys)
        recovery = Recovery(
            config,
            self._kafka_io,
            self._kafka,
            self._generations,
            self._counters,
            self._meter,
            self._spark_metrics,
            keys,
            self._alone_since,
            self._report_progress,
            self._refused,
            self._resolved,
            self._revisions.environment,
        )
        generation = recovery.run(last)
        self._spark_metrics.recovered(time.monotonic() - began)
        self._seal = seal_of(generation.start, keys)
        self._store.begin(generation, keys[0])
        self._generations.remove_before(generation)
        return generation

    def _resolved(self, config: Config) -> Config:
        """The configuration with its templates of topics resolved, also to topics that were deleted meanwhile."""
        found = BridgeTopics(config).routes(ANSWER_SECONDS)
        routes = tuple(replace(route, targets=tuple(map(self._known, route.targets))) for route in found)
        return replace(config, routes=routes)

    def _known(self, resolved: Target) -> Target:
        if resolved.topic is not None:
            return resolved
        known = self._resolved_topics.setdefault(str(resolved), set())
        known.update(resolved.topics)
        return replace(resolved, topics=tuple(sorted(known)))

    def _report_progress(self, what: str) -> None:
        self._status.state(State.STARTING, what)

    def _report_wait(self, what: str) -> None:
        """Reports a wait for something outside the bridge, in the log as well."""
        _log.info(what)
        self._report_progress(what)

    def _retry(self, error: Exception, stop: Event) -> None:
        """Waits before the next attempt if that may succeed; otherwise raises the error."""
        if isinstance(error, StoppedByPolicyError):
            self._meter.stopped(error)
        if not isinstance(error, (KafkaUnavailableError, StorageUnavailableError, UnusableTopicError)):
            raise error from None
        if isinstance(error, StorageUnavailableError) and self._outage.is_too_long:
            raise error
        seconds = self._outage.goes_on(error)
        if isinstance(error, KafkaUnavailableError):
            self._metrics.connection(up=False)
        self._status.state(State.DEGRADED, f"trying again: {error}")
        _log.warning("query starts again", reason=str(error), after_seconds=seconds)
        stop.wait(seconds)

    def _route(self, config: Config, generation: Generation, stop: Event) -> None:
        start = generation.start
        topics = BridgeTopics(config)
        refusals = self._refusals(topics, start.positions)
        known = topics.limits(ANSWER_SECONDS)

        def routed_by(frame: DataFrame) -> Routed:
            return route(frame, config, known, self._counters.now(), refusals)

        routed = routed_by(self._kafka_io.follow(start.positions))
        self._counters.begin(routed.outcomes, len(config.publications))
        self._meter.begin(config.publications, config.journal.topic, routed.outcomes)
        if config.router.mode is RouterMode.BATCH and not self._has_records(start.positions):
            compile_routing(self._kafka_io, routed_by, start.positions)
        readiness = Readiness(self._spark_metrics, start.positions, self._began)
        query = self._kafka_io.start(routed, generation.checkpoint, sum(map(len, start.outputs.values())), self._seal)
        written = outputs(config.routes, config.letter_topic)
        sampler = LagSampler(self._kafka, self._clients, config.journal.topic, written, start.positions)
        run = Run(self._kafka_io.spark, generation, query, sampler, self._counters, self._meter, self._store)
        vitals = Vitals(self._kafka_io.spark, query, self._spark_metrics)
        if self._is_new:
            self._is_new = False
            self._revisions.in_force()
        try:
            begun = looked = time.monotonic()
            while not _stops(stop, _READ_SECONDS if readiness.ready else _READY_SECONDS):
                reading = run.measure()
                run.check(reading)
                self._lock.check()
                readiness.update(reading)
                run.note()
                vitals.measure(generation.commits())
                self._check(sampler, refusals)
                self._report(
                    sampler, run, refusals, ready=readiness.ready, settled=time.monotonic() - begun > _HEALTHY_SECONDS
                )
                is_due = bool(refusals.topics) and time.monotonic() - looked > _LOOK_SECONDS
                looked = time.monotonic() if is_due else looked
                if self._renew() or (is_due and self._has_changed(topics, refusals)):
                    # No drain: messages keep coming, and those still in the journal are routed by the new routes.
                    run.stop(drain=False)
                    return
            self._status.state(State.STOPPING)
            run.stop(drain=config.router.mode is RouterMode.REALTIME)
        finally:
            sampler.close()
            query.stop()
            if sampler.missing:
                self._kafka_io.give_up(_GIVE_UP_SECONDS)
            self._kafka_io.close()
            run.measure()

    def _refusals(self, topics: BridgeTopics, positions: Offsets) -> Refusals:
        """Topics and messages that Kafka does not take now; HardFailureError if a topic is missing at the start."""
        self._refused = {place: why for place, why in self._refused.items() if place[1] >= positions.get(place[0], 0)}
        if not self._has_checked:
            topics.check(ANSWER_SECONDS)
            self._has_checked = True
            return NO_REFUSALS
        for step in (topics.ensure_journal, topics.ensure_sink_topics, topics.create_missing):
            step(ANSWER_SECONDS)
        refusals = Refusals(topics.unwritable(ANSWER_SECONDS), dict(self._refused))
        for why in refusals.topics.values():
            _log.error("messages become dead letters until their topic can be written", why=why)
        return refusals

    def _has_changed(self, topics: BridgeTopics, refusals: Refusals) -> bool:
        """True if other topics cannot be written than `refusals` says."""
        try:
            return topics.unwritable(ANSWER_SECONDS) != refusals.topics
        except KafkaUnavailableError as error:
            _log.debug("topics are not looked at again", why=str(error))
            return False

    def _has_records(self, positions: Offsets) -> bool:
        """True if the journal has records from `positions` on: the first batch compiles the routing, and soon."""
        journal = self._config.journal.topic
        ends = self._kafka.ends([journal]).get(journal, {})
        return any(end > positions.get(partition, 0) for partition, end in ends.items())

    def _check(self, sampler: LagSampler, refusals: Refusals) -> None:
        """Raises errors that the query itself would notice late or never."""
        journal = self._config.journal.topic
        if isinstance(sampler.error, HardFailureError):
            raise sampler.error
        if journal in sampler.missing:
            msg = f"the journal {journal!r} was deleted while the router runs; restore it and start the bridge again"
            raise HardFailureError(msg)
        if missing := sorted(sampler.missing - refusals.topics.keys()):
            msg = f"topics were deleted while the router runs: {listed(missing)}"
            raise UnusableTopicError(msg)
        self._check_slots(sampler.partitions)

    def _check_slots(self, partitions: int) -> None:
        """Raises an error if the query has too few task slots; the next start waits for them, or has more."""
        slots, master = task_slots(self._kafka_io.spark), self._kafka_io.spark.sparkContext.master
        if slots >= self._slots_needed(partitions):
            return
        if is_cluster(master):
            msg = f"{slots} task slots are left at {master}, for {partitions} partitions of the journal"
            raise ServerEndedError(msg)
        msg = f"the journal has {partitions} partitions now; a start with more task slots is needed"
        raise RuntimeError(msg)

    def _report(self, sampler: LagSampler, run: Run, refusals: Refusals, *, ready: bool, settled: bool) -> None:
        """Reports the router's state, from Kafka's last answers; `settled`: the query has run for _HEALTHY_SECONDS."""
        up = time.monotonic() - sampler.contact < _SILENCE_SECONDS
        self._metrics.connection(up)
        if not up:
            self._outage.check(sampler.error)
            self._status.state(State.DEGRADED, f"waiting for Kafka at {self._config.bootstrap_servers}")
            return
        if run.unanswered_seconds > _UNANSWERED_SECONDS:
            error = KafkaUnavailableError("it does not confirm the records that the router has sent")
            self._outage.check(error)
            self._status.state(State.DEGRADED, f"Kafka at {self._config.bootstrap_servers}: {error}")
            return
        if settled:
            self._outage.over()
        if trouble := registry_trouble(self._kafka_io.spark):
            self._status.state(State.DEGRADED, trouble)
            return
        if hidden := sampler.hidden:
            self._status.state(State.DEGRADED, self._hidden(hidden))
            return
        if not ready:
            self._status.state(State.STARTING, "waiting for Spark to read the journal")
            return
        if refusals.topics:
            why = "; ".join(refusals.topics.values())
            self._status.state(State.DEGRADED, f"{why}: messages for it become dead letters")
            return
        count = len(self._config.own_routes)
        self._status.state(State.READY, f"{count} route{'s' * (count != 1)}, {self._config.router.mode}")

    def _hidden(self, offsets: Mapping[int, int]) -> str:
        journal = self._config.journal.topic
        where = listed([f"{journal}:{partition}:{offset}" for partition, offset in sorted(offsets.items())])
        return f"an open transaction hides the journal records after {where}: run-book JmsBridgeRouterStands"
