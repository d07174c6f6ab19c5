"""Runs the router until it is told to stop: recovery, the query, figures every second, and what to do when it fails.

Failures are of three kinds. What only a person can put right ends the router with an error that says so. What may pass
(Kafka gone, a partition without a leader) starts the query again through recovery, until it has lasted for
`router.outage-timeout`. Anything else ends the process as unforeseen; its supervisor starts it again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from engine.errors import HardFailureError
from engine.kafka import librdkafka
from engine.router import route
from engine.spark import session
from engine.spark.failures import StoppedByPolicyError, spark_failure
from engine.spark.generation import Generations
from engine.spark.lag import LagSampler
from engine.spark.lease import Lease
from engine.spark.meter import Meter
from engine.spark.outage import Outage
from engine.spark.pipes import Pipes
from engine.spark.positions import KafkaOffsets, KafkaUnavailableError
from engine.spark.recovery import Recovery, outputs
from engine.spark.run import Run
from engine.spark.tally import Tally
from engine.spark.topics import check_topics, limits, resolved
from engine.telemetry.meters import RouterMetrics
from engine.telemetry.status import State
from engine.topics import ensure_journal
from routes.model import RouterMode

if TYPE_CHECKING:
    from threading import Event

    from engine.spark.generation import Generation
    from engine.telemetry.status import Reporter
    from routes.model import Config

__all__ = ["run_router"]

_READ_SECONDS = 1.0
_SILENCE_SECONDS = 8.0
"""Without an answer from Kafka for so long, the router says that it is degraded."""
_HEALTHY_SECONDS = 15.0
"""A query that has run for so long has put an outage behind it."""
_LEASE_SECONDS = 30.0

_log = structlog.get_logger(__name__)


def run_router(config: Config, status: Reporter, stop: Event) -> None:
    """Routes the journal until `stop` is set, then ends in good order.

    Raises:
        BridgeError: what has to be put right before the router can run again; see `engine.errors`.
        RuntimeError: it ended for a reason that a new process may not meet.
    """
    spark = session.start(config, ensure_journal(config))
    try:
        lease = Lease(spark, config.router.checkpoint, _LEASE_SECONDS)
        _Router(config, status, Pipes(spark, config)).run(stop)
        lease.release()
    except Py4JNetworkError as error:
        msg = f"Spark's Java process has ended; {session.log_file(config)} may say why"
        raise RuntimeError(msg) from error
    finally:
        session.close(spark)


class _Router:
    """One run of the router, over any number of queries."""

    def __init__(self, config: Config, status: Reporter, pipes: Pipes) -> None:
        self._config = config
        self._status = status
        self._kafka = KafkaOffsets(librdkafka(config, "admin"))
        self._pipes = pipes
        self._tally = Tally(pipes.spark)
        self._metrics = RouterMetrics(status.registry, config)
        self._meter = Meter(self._metrics)
        self._outage = Outage(config)
        self._generations = Generations(config.router.checkpoint)

    def run(self, stop: Event) -> None:
        while not stop.is_set():
            try:
                self._status.state(State.STARTING, "finding out what the last run has published")
                config = resolved(self._config)
                self._route(config, self._recovered(config), stop)
            except (PySparkException, Py4JJavaError) as error:
                self._retry(spark_failure(error), stop)
            except (KafkaUnavailableError, StoppedByPolicyError) as error:
                self._retry(error, stop)

    def _recovered(self, config: Config) -> Generation:
        return Recovery(config, self._pipes, self._kafka, self._generations, self._tally, self._meter).run()

    def _retry(self, error: Exception, stop: Event) -> None:
        """Waits before the next attempt, if another one may help."""
        if isinstance(error, StoppedByPolicyError):
            self._meter.stopped(error)
        if not isinstance(error, KafkaUnavailableError):
            raise error from None
        seconds = self._outage.goes_on(error)
        self._metrics.connection(up=False)
        self._status.state(State.DEGRADED, f"trying again: {error}")
        _log.warning("query starts again", reason=str(error), after_seconds=seconds)
        stop.wait(seconds)

    def _route(self, config: Config, generation: Generation, stop: Event) -> None:
        start = generation.start
        check_topics(config)
        routed = route(self._pipes.follow(start.positions), config, limits(config), self._tally.now())
        self._tally.begin(routed.outcomes, len(config.routes))
        self._meter.begin(config, routed.outcomes)
        query = self._pipes.start(self._tally.counted(routed), generation.checkpoint)
        consumer = librdkafka(config, "consumer")
        sampler = LagSampler(self._kafka, consumer, config.journal.topic, outputs(config), start.positions)
        run = Run(self._pipes.spark, generation, query, sampler, self._tally, self._meter)
        try:
            begun = time.monotonic()
            while not stop.wait(_READ_SECONDS):
                run.check(run.measure())
                self._check(sampler)
                self._tell(sampler, settled=time.monotonic() - begun > _HEALTHY_SECONDS)
            self._status.state(State.STOPPING)
            run.stop(drain=config.router.mode is RouterMode.REALTIME)
        finally:
            sampler.close()
            query.stop()
            run.measure()

    def _check(self, sampler: LagSampler) -> None:
        """Raises what the query itself would notice late or never."""
        journal = self._config.journal.topic
        if isinstance(sampler.complaint, HardFailureError):
            raise sampler.complaint
        if journal in sampler.missing:
            msg = f"the journal {journal!r} was deleted while the router runs; restore it and start the bridge again"
            raise HardFailureError(msg)
        if sampler.missing:
            check_topics(self._config)
        if sampler.partitions > self._pipes.spark.sparkContext.defaultParallelism:
            msg = f"the journal has {sampler.partitions} partitions now; a start with more task slots is needed"
            raise RuntimeError(msg)

    def _tell(self, sampler: LagSampler, *, settled: bool) -> None:
        """Reports how the router is, from what Kafka answered last; `settled`: the query has run for a while."""
        up = time.monotonic() - sampler.contact < _SILENCE_SECONDS
        self._metrics.connection(up)
        if not up:
            self._outage.check(sampler.complaint)
            self._status.state(State.DEGRADED, f"waiting for Kafka at {self._config.bootstrap_servers}")
            return
        if settled:
            self._outage.over()
        count = len(self._config.own_routes)
        self._status.state(State.READY, f"{count} route{'s' * (count != 1)}, {self._config.router.mode}")
