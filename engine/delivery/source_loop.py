"""Loop of one worker of a source: connects, reads, journals, acknowledges the messages in the journal, and starts over.

Written once for all systems. `ingress_pipeline` moves deliveries from the broker into the journal. The broker delivers
unacknowledged messages again when a connection ends; the next connection recognises those that the journal has
(`deduplication`).
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import Committing, Expiring, LoginEndsError, NotConnectedError, Positioned, Transactional
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.delivery.back_off import BackOff, Connecting
from engine.delivery.deduplication.deduplicator import Deduplicator
from engine.delivery.deduplication.safe_offsets import SafeOffsets
from engine.delivery.deduplication.tail import Tail
from engine.delivery.depth_watch import DepthWatch
from engine.delivery.ingress_pipeline import IngressPipeline
from engine.delivery.spans import SourceSpans
from engine.errors import HardFailureError
from engine.kafka.clients import KafkaClients
from engine.kafka.journal import Journal, JournalError
from engine.kafka.retry import KafkaRetry, StoppedError
from engine.telemetry import tracing
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import State, component_name
from engine.tracing_section import TracingConfig
from routes.immutable import immutable

if TYPE_CHECKING:
    from threading import Event

    from engine.connectors.base import Source
    from engine.telemetry.status import Reporter, StateReceiver
    from routes.model import Config

__all__ = ["SourceLoop", "SourceWorker", "run_source"]

_STALLED_SECONDS = 3.0
_log = structlog.get_logger(__name__)


def run_source(config: Config, name: str, worker: int, status: Reporter, stop: Event, *, is_first: bool = True) -> None:
    """Runs worker number `worker` (from 1) of `source.<name>` until `stop` is set, then leaves its broker in order.

    `is_first` is that of `Connecting`.

    Raises:
        BridgeError: the worker cannot go on, and no retry can help; see `engine.errors` for the kinds.
    """
    source = next(source for source in config.sources if source.name == name)
    metrics = SourceMetrics(status.registry, name, component_name(name, worker))
    identity = SourceWorker(name, worker, source.workers)
    endpoint, system = SystemEndpoint.of(config, source), connector(source.type)
    with ExitStack() as stack:
        traces = stack.enter_context(tracing.opened(config.section(TracingConfig), config.bridge_id, f"source:{name}"))
        states: StateReceiver = status
        # One answer is that of all workers.
        if source.count_waiting and worker == 1:
            watch = DepthWatch(lambda: system.make_depth(endpoint), name, metrics, status)
            states = stack.enter_context(watch)
        loop = SourceLoop(
            config,
            identity,
            system.make_source(endpoint, worker),
            metrics,
            states,
            None if traces is None else SourceSpans(traces, source),
            is_first=is_first,
        )
        loop.run(stop)


@immutable
class SourceWorker:
    """Identity of a worker: its source and its number."""

    source: str
    number: int
    """Number of the worker, from 1."""
    workers: int
    """Number of workers of the source."""


class SourceLoop:
    """Loop of one source worker and its journal; for one thread."""

    def __init__(
        self,
        config: Config,
        worker: SourceWorker,
        source: Source,
        metrics: SourceMetrics,
        status: StateReceiver,
        spans: SourceSpans | None = None,
        *,
        is_first: bool = True,
    ) -> None:
        """Creates the loop; `is_first` is that of `Connecting`."""
        self._config = config
        self._worker = worker
        self._source = source
        self._committing = source if isinstance(source, Committing) else None
        self._expiring = source if isinstance(source, Expiring) else None
        self._metrics = metrics
        self._status = status
        self._spans = spans
        self._connections = 0
        self._is_stalled = False
        self._back_off = BackOff()
        # What Kafka refuses concerns every part, and no source that is part of its cluster can go on.
        connecting = Connecting(source.connect, is_first=is_first)
        self._connect = source.connect if isinstance(source, Transactional) else connecting.attempt
        self._safe_offsets: SafeOffsets | None = None

    def run(self, stop: Event) -> None:
        """Runs until `stop` is set and all is in order; raises BridgeError as `run_source` does."""
        try:
            self._sessions(stop)
        finally:
            self._close_safe_offsets()

    def _close_safe_offsets(self) -> None:
        if self._safe_offsets is not None:
            self._safe_offsets.close()
            self._safe_offsets = None

    def _sessions(self, stop: Event) -> None:
        """Runs one connection after the other until `stop` is set."""
        while not stop.is_set():
            try:
                self._session(stop)
            except LoginEndsError as error:
                _log.info("connects again with a new login", where=self._source.address, why=str(error))
            except (NotConnectedError, JournalError) as error:
                if isinstance(error, JournalError):
                    # The failed Kafka client may be that of the safe offsets, so they are made anew.
                    self._close_safe_offsets()
                where = self._source.address if isinstance(error, NotConnectedError) else "the journal"
                wait = self._back_off.next(getattr(error, "back_off_seconds", None))
                self._status.state(State.DEGRADED, f"{where}: {error}")
                _log.warning("will try again", where=where, why=str(error), seconds=round(wait, 1))
                stop.wait(wait)

    def _session(self, stop: Event) -> None:
        """Runs one connection from beginning to end."""
        try:
            self._connect()
            self._connected()
            self._serve(stop)
        except StoppedError:
            pass  # the worker stops, so the awaited answer is not needed
        finally:
            self._source.close()
            self._metrics.connection(up=False)

    def _serve(self, stop: Event) -> None:
        """Moves deliveries into the journal until `stop` is set."""
        deduplicator, journal = self._deduplicator(stop), self._journal(stop)
        pipeline = IngressPipeline(self._config, self._source, journal, deduplicator, self._metrics, self._spans)
        try:
            if deduplicator is not None:
                deduplicator.begin()
            self._ready()
            self._move(pipeline, journal, stop)
            if deduplicator is not None and pipeline.is_settled:
                deduplicator.finish()
        finally:
            journal.close()
            # Only now, since closing the journal confirms records that were on their way.
            pipeline.count()

    def _journal(self, stop: Event) -> Journal:
        if isinstance(self._source, Transactional):
            return self._source.journal(stop, self._wait_for_room)
        config = self._config
        clients, tracing = KafkaClients(config.kafka_access), config.section(TracingConfig)
        return Journal(clients, config.journal.topic, tracing, stop, self._wait_for_room)

    def _deduplicator(self, stop: Event) -> Deduplicator | None:
        """Makes the redelivery detection of this connection; None for a source without redelivery."""
        redelivery = self._source.redelivery
        if redelivery is None:
            return None
        access, journal = self._config.kafka_access, self._config.journal.topic
        if self._safe_offsets is None:
            group = f"{self._config.bridge_id}.source.{self._worker.source}"
            workers = self._worker.number, self._worker.workers
            self._safe_offsets = SafeOffsets(KafkaClients(access), journal, group, *workers)
        tail = Tail(journal, self._worker.source, self._safe_offsets.consumer, self._reading)
        retry = KafkaRetry(access, journal, stop, self._source.tend, self._stalled)
        positioned = self._source if isinstance(self._source, Positioned) else None
        return Deduplicator(self._safe_offsets, tail, retry, redelivery, positioned)

    def _move(self, pipeline: IngressPipeline, journal: Journal, stop: Event) -> None:
        try:
            with suppress(StoppedError):
                self._steps(pipeline, journal, stop)
            self._status.state(State.STOPPING, "waiting for the journal")
            pipeline.settle()
        except HardFailureError:
            # Acknowledges the messages that the journal has, so that they are not delivered again.
            pipeline.settle_quietly()
            raise

    def _steps(self, pipeline: IngressPipeline, journal: Journal, stop: Event) -> None:
        while not stop.is_set():
            if pipeline.step():
                self._back_off.acknowledged()
            if self._expiring is not None:
                self._metrics.lost(self._expiring.removed)
            if max(journal.stalled_seconds, self._commits_stalled_seconds()) > _STALLED_SECONDS:
                self._stalled()
            elif self._is_stalled:
                self._ready()

    def _commits_stalled_seconds(self) -> float:
        return self._committing.stalled_seconds if self._committing else 0.0

    def _connected(self) -> None:
        self._connections += 1
        self._metrics.connection(up=True)
        if self._connections > 1:
            self._metrics.reconnected()
        self._back_off.connected()

    def _ready(self) -> None:
        self._is_stalled = False
        self._status.state(State.READY, self._source.address)

    def _reading(self, left: int) -> None:
        self._status.state(State.STARTING, f"reading the end of the journal: {left:,} records to go")

    def _wait_for_room(self) -> None:
        self._stalled()
        self._source.tend()

    def _stalled(self) -> None:
        self._is_stalled = True
        self._status.state(State.DEGRADED, f"waiting for Kafka at {self._config.bootstrap_servers}")
