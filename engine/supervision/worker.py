"""The process of one part: runs the part and reports its status to the supervisor.

The main thread does the part's work; one thread listens to the supervisor. The work itself is in other packages: this
module prepares it (waits for resources of the part, checks the topics), hands it an event that says when to stop, and
turns an exception into a last status and an exit status.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Condition, Event, Thread, Timer
from typing import TYPE_CHECKING, Any

import structlog
from prometheus_client import CollectorRegistry

from engine.errors import ClientEndedError, HardFailureError, ServerEndedError, UnreachableError, UsageError
from engine.jars import jars
from engine.spark.section import SparkConfig
from engine.spark.settings import is_cluster
from engine.supervision.child import ASK, GO, GO_ON, REVISION, UNTIL
from engine.supervision.parts import ARTEMIS, KAFKA, NATS, ROUTER, topology_of
from engine.supervision.revision import given
from engine.telemetry import logging
from engine.telemetry.status import Reporter, State
from engine.topologies.section import TopologiesConfig
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.embedded.server import EmbeddedServer
    from engine.spark.launch import Launch
    from engine.topologies.library.topology import Topology
    from engine.topologies.runtime.code import TopologyCode
    from engine.topologies.runtime.query import TopologyFigures
    from engine.topologies.runtime.state_reader import StateReader
    from routes.config.snapshot import Snapshot
    from routes.kafka_access import KafkaAccess
    from routes.model import Config

__all__ = ["STOP_SECONDS", "ControlMessages", "GivenRevisions", "run", "serve"]

STOP_SECONDS = 30.0
"""Time after which a part that was asked to stop kills itself."""

_ALIVE_SECONDS = 0.5
_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_ELECTION_SECONDS = 3.0
"""Time for which the router waits to lead before it warms up: without another bridge, an election takes half a second,
and a warm-up that has begun would delay the routing."""
_OBJECTS_BEFORE_A_SEARCH = 20_000
_BUFFER_BYTES = 64 * 1024
_MOST_FILES = 4
_log = structlog.get_logger(__name__)


class WorkLease:
    """The lease of this process: at its end, a thread kills the process and all that it has started.

    No order to end could be obeyed as fast: a process that stood still (SIGSTOP, a virtual machine that was moved) goes
    on where it was, and another bridge does its work by then.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._until: float | None = None

    def extend(self, until: float) -> None:
        """Moves the end of the lease to a `time.monotonic` time; the first call starts the lease."""
        with self._changed:
            if self._until is None:
                Thread(target=self._watch, name="lease", daemon=True).start()
            self._until = until
            self._changed.notify()

    def until(self) -> float | None:
        """Returns the end of the lease as known now; None if there is no lease."""
        return self._until

    def _watch(self) -> None:
        with self._changed:
            while self._until is None or (seconds := self._until - time.monotonic()) > 0:
                self._changed.wait(seconds)
        _kill()


class GivenRevisions:
    """The configurations that the supervisor has sent so far: the first one, and newer ones. Safe from any thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._newest: tuple[int, Snapshot] | None = None
        self.codes: Mapping[str, TopologyCode] = {}
        """The code of each topology of the newest configuration."""
        self._taken = 0
        self._closed = False

    def put(self, number: int, snapshot: Snapshot, codes: Mapping[str, TopologyCode]) -> None:
        """Sets the newest configuration."""
        with self._changed:
            self._newest = number, snapshot
            self.codes = codes
            self._changed.notify_all()

    def close(self) -> None:
        """Wakes a caller of `first`, since the part is to stop."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def first(self) -> tuple[int, Snapshot] | None:
        """Waits for the first configuration; returns its number and snapshot, or None if the part is to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._newest or self._closed)
        return self.newer()

    def newer(self) -> tuple[int, Snapshot] | None:
        """Returns number and snapshot of the newest configuration; None if it was returned before."""
        with self._changed:
            if self._newest is None or self._newest[0] == self._taken:
                return None
            self._taken = self._newest[0]
            return self._newest


@dataclass(frozen=True, slots=True)
class ControlMessages:
    """The supervisor's messages so far."""

    go: Event = field(default_factory=Event)
    """Set when the part may begin; also set when it is to stop instead, so that no thread waits in vain."""
    is_at_work: Event = field(default_factory=Event)
    """Set before `go` if the bridge is at work already, so that no refusal by a system may end it."""
    stop: Event = field(default_factory=Event)
    lease: WorkLease = field(default_factory=WorkLease)
    given: GivenRevisions = field(default_factory=GivenRevisions)
    questions: SimpleQueue[tuple[int, dict[str, Any]]] = field(default_factory=SimpleQueue)
    """Questions, each with the number for its answer. Only parts that run a topology take them."""


class _Revisions:
    """Newer configurations for a router that runs; reports to the supervisor which one is in force."""

    def __init__(self, name: str, given: GivenRevisions, status: Reporter, environment: Mapping[str, str]) -> None:
        self._name = name
        self._given = given
        self._status = status
        self.environment = environment
        self._number = 0

    def newer(self) -> Config | None:
        if (revision := self._given.newer()) is None:
            return None
        self._number, snapshot = revision
        config = snapshot.load(self.environment)
        logging.setup(config, self._name)
        return config

    def in_force(self) -> None:
        self._status.works_by(self._number)


def run(only: str, worker: int, status_fd: int, launched: Launch | None = None) -> int:
    """Runs the part `only` as a child of a supervisor, which sends the configuration; returns the exit status.

    `launched` is the JVM of a router's session, if it is starting already.
    """
    name = only if worker == 1 else f"{only}/{worker}"

    def work(status: Reporter, messages: ControlMessages) -> None:
        if (first := messages.given.first()) is None:
            return
        number, snapshot = first
        environment = dict(os.environ)
        config = snapshot.load(environment)
        logging.setup(config, name)
        status.works_by(number)
        for variable in config.secret_variables:
            # Removed from the environment that JVMs and servers inherit, where other users could read a secret.
            os.environ.pop(variable, None)
        revisions = _Revisions(name, messages.given, status, environment)
        _part(config, only, worker, status, messages, revisions, launched)

    return serve(name, status_fd, work)


def serve(name: str, status_fd: int, work: Callable[[Reporter, ControlMessages], None]) -> int:
    """Runs `work` as the child of a supervisor, until it returns or raises; returns the exit status."""
    messages = ControlMessages()
    with Reporter(os.dup(status_fd), name, CollectorRegistry()) as status:
        _listen(status_fd, messages)
        try:
            work(status, messages)
        except BridgeError as error:
            status.error(error)
            return error.exit_code
        except (ClientEndedError, ServerEndedError) as error:
            status.error(error, foreseen=True)
            return 1
        except Exception as error:
            _log.exception("ended by an unexpected error")
            status.error(error)
            return 1
        status.state(State.STOPPING)
    return 0


def _part(
    config: Config,
    only: str,
    worker: int,
    status: Reporter,
    messages: ControlMessages,
    revisions: _Revisions,
    launched: Launch | None,
) -> None:
    # The imports of one part are not made in the others: each is a process, and starts in a fraction of a second.
    if only == KAFKA:
        from engine.embedded import EmbeddedKafka

        embedded = config.embedded
        kafka = EmbeddedKafka(embedded.data, embedded.kafka_port, jars())
        _serve(kafka, f"{kafka.bootstrap}, data in {kafka.folder}", status, messages.stop)
    elif only == ARTEMIS:
        from engine.embedded import EmbeddedArtemis

        embedded = config.embedded
        ports = embedded.artemis_port, embedded.stomp_port, embedded.amqp_port
        artemis = EmbeddedArtemis(embedded.data, *ports, jars())
        where = f"{artemis.stomp_url}, {artemis.amqp_url}, {artemis.core_url}, data in {artemis.folder}"
        _serve(artemis, where, status, messages.stop)
    elif only == NATS:
        from engine.embedded import EmbeddedNats

        nats = EmbeddedNats(config.embedded.data, config.embedded.nats_port)
        _serve(nats, f"{nats.url}, data in {nats.folder}", status, messages.stop)
    elif only == ROUTER:
        _route(launched, config, status, messages, revisions)
    elif (topology := topology_of(only)) is not None:
        _topology(config, topology, status, messages)
    else:
        _connector(config, only, worker, status, messages)


def _serve(server: EmbeddedServer, where: str, status: Reporter, stop: Event) -> None:
    try:
        server.start()
        status.state(State.READY, where)
        while not stop.wait(_ALIVE_SECONDS):
            if not server.alive():
                message = f"embedded {server.title} ended by itself; see {server.log}"
                raise ServerEndedError(message)
        status.state(State.STOPPING)
    finally:
        server.stop()


def _route(
    launched: Launch | None, config: Config, status: Reporter, messages: ControlMessages, revisions: _Revisions
) -> None:
    from engine.router.last_progress import is_refusal_likely
    from engine.spark.launch import launch

    # First of all, since what follows takes about as long as Spark's start; but nothing of Spark is started for a start
    # that the checks below are likely to refuse.
    if launched is None and not (is_refusal_likely(config) or _is_on_cluster(config.section(SparkConfig))):
        launched = launch(config)
    try:
        _route_in(launched, config, status, messages, revisions)
    finally:
        if launched is not None:
            launched.abandon()


def _route_in(
    launched: Launch | None, config: Config, status: Reporter, messages: ControlMessages, revisions: _Revisions
) -> None:
    from engine.kafka.topics import BridgeTopics
    from engine.router import runtime
    from engine.router.last_progress import is_refusal_likely
    from engine.router.warm_up import warming
    from engine.spark import session
    from engine.spark.launch import log_file

    partitions: list[int] = []
    topics = BridgeTopics(config)

    def journal(seconds: float) -> None:
        partitions.append(topics.ensure_journal(seconds))

    steps = journal, topics.ensure_sink_topics, topics.create_missing, topics.check
    # A Kafka that is not embedded is looked at before the session is used, so that a missing topic or a damaged
    # checkpoint is reported at once, also by a bridge that stands by. An embedded Kafka takes seconds to start, and so
    # does Spark: they start at the same time, unless the start looks like being refused.
    status.state(State.STARTING, f"waiting for Kafka at {config.bootstrap_servers}")
    is_checked = not config.embedded_kafka or is_refusal_likely(config)
    access = config.kafka_access
    if is_checked and not (_prepared(steps, access, status, messages.stop) and _can_continue(config, status, messages)):
        return
    if _is_on_cluster(config.section(SparkConfig)) and not messages.go.is_set():
        # Executors of a bridge that stands by would take the slots of the one that leads.
        status.state(State.STARTING, "waiting to lead")
        messages.go.wait()
    session.leave_out_numpy()
    with session.foreseen_end(log_file(config.embedded.data)):
        if not config.embedded_kafka and not messages.go.wait(_ELECTION_SECONDS):
            status.state(State.STARTING, "starting Spark")
            spark = session.start(config, partitions[-1] if partitions else None, launched)
            with warming(spark, config, lambda what: status.state(State.STARTING, what)):
                messages.go.wait()
        messages.go.wait()
        if is_checked or _prepared(steps, access, status, messages.stop):
            status.state(State.STARTING, "starting Spark")
            runtime.run_router(config, status, messages.stop, messages.lease.until, revisions, launched)


def _is_on_cluster(spark: SparkConfig) -> bool:
    return is_cluster(spark.get("spark.master"))


def _can_continue(config: Config, status: Reporter, messages: ControlMessages) -> bool:
    """Checks that the router can go on from where the last run ended; returns False if the part is to stop instead.

    A refusal counts only for a bridge that leads: on one that stands by, the router of another bridge may be writing
    into the same checkpoint just now.
    """
    from engine.kafka.topics import BridgeTopics
    from engine.router.last_progress import check_progress

    topics = BridgeTopics(config)
    steps = (topics.ensure_state_topic, lambda _: check_progress(config, leads=messages.go.is_set()))
    while True:
        leads = messages.go.is_set()
        try:
            return _prepared(steps, config.kafka_access, status, messages.stop)
        except HardFailureError as error:
            if leads:
                raise
            status.state(State.DEGRADED, f"could not take over: {error}")
            messages.go.wait(_PAUSE_SECONDS)


def _topology(config: Config, name: str, status: Reporter, messages: ControlMessages) -> None:
    from engine.kafka.topics import BridgeTopics
    from engine.telemetry.amounts import size
    from engine.telemetry.meters import TopologyMetrics
    from engine.topologies.graph import write_graph
    from engine.topologies.library.describe import records
    from engine.topologies.library.topology import TopologyError
    from engine.topologies.question import StateQuestion
    from engine.topologies.runtime.run import run_topology
    from engine.topologies.runtime.settings import TopologySettings

    meter = TopologyMetrics(status.registry, name)
    (declared,) = (each for each in config.section(TopologiesConfig) if each.name == name)
    status.state(State.STARTING, "waiting for Kafka, or to lead")
    messages.go.wait()
    if not _prepared((BridgeTopics(config).ensure_journal,), config.kafka_access, status, messages.stop):
        return
    status.state(State.STARTING, "starting Spark")
    settings = TopologySettings(
        declared.build,
        declared.mode.value,
        declared.guarantee.value,
        declared.interval_seconds,
        declared.on_failure.value,
        name,
    )

    def report(figures: TopologyFigures) -> None:
        meter.update(figures.records, figures.lag, figures.state_bytes, figures.passed_over)
        if figures.trouble:
            status.state(State.DEGRADED, figures.trouble)
            return
        state = f"state of {size(figures.state_bytes)}"
        text = f"{figures.mode}, {declared.guarantee}, {figures.records:,} records, {state}{figures.remarks}"
        status.state(State.READY, text)

    def begin(topology: Topology, state: StateReader) -> None:
        write_graph(config.embedded.data, name, topology.name, records(topology.nodes))

        def answer() -> None:
            while True:
                number, fields = messages.questions.get()
                status.answer(number, json.dumps(state.answer(StateQuestion(**fields)).fields))

        Thread(target=answer, name="questions", daemon=True).start()

    def degraded(what: str) -> None:
        status.state(State.DEGRADED, what)

    code = messages.given.codes.get(name)
    try:
        run_topology(config, settings, messages.stop, report, begin, degraded, code)
    except (TopologyError, UsageError) as error:
        # Without a reload the part is started again with the same files.
        raise TopologyError([f"{str(error).rstrip('; ')}; correct it, then `jms-bridge reload`"]) from error


def _connector(config: Config, only: str, worker: int, status: Reporter, messages: ControlMessages) -> None:
    from engine.kafka.topics import BridgeTopics

    # Messages under way are many small objects without cycles; the search for cycles took a tenth of the time of a
    # source, and a quarter of that of a sink.
    gc.set_threshold(_OBJECTS_BEFORE_A_SEARCH, *gc.get_threshold()[1:])
    kind, _, name = only.partition(":")
    status.state(State.STARTING, "waiting for its brokers, or to lead")
    messages.go.wait()
    is_first = not messages.is_at_work.is_set()
    topics, access = BridgeTopics(config), config.kafka_access
    if kind == "source":
        from engine.delivery.source_loop import run_source

        if _prepared((topics.ensure_journal,), access, status, messages.stop):
            run_source(config, name, worker, status, messages.stop, is_first=is_first)
    elif _prepared((topics.ensure_journal, topics.ensure_sink_topics), access, status, messages.stop):
        from engine.delivery.sink_loop import run_sink

        run_sink(config, name, worker, status, messages.stop, is_first=is_first)


def _prepared(steps: Iterable[Callable[[float], object]], access: KafkaAccess, status: Reporter, stop: Event) -> bool:
    """Carries out all steps, waiting for Kafka; returns False if the part is to stop instead.

    Raises:
        UnreachableError: Kafka does not answer for `router.outage-timeout`.
    """
    from engine.kafka.retry import Outage

    outage = Outage(access)
    while not stop.is_set():
        try:
            for step in steps:
                step(_ANSWER_SECONDS)
        except UnreachableError as error:
            if outage.is_too_long:
                raise
            status.state(State.DEGRADED, str(error))
            stop.wait(_PAUSE_SECONDS)
        else:
            return True
    return False


def _listen(fd: int, messages: ControlMessages) -> None:
    """Starts to obey the supervisor and SIGTERM, in threads."""

    def obey() -> None:
        # A supervisor that was killed before it had read everything resets the connection.
        with suppress(ConnectionError):
            for line, file in _lines(fd):
                if line == GO_ON:
                    messages.is_at_work.set()
                    messages.go.set()
                elif line == GO:
                    messages.go.set()
                elif line.startswith(ASK):
                    number, _, question = line.removeprefix(ASK).partition(b" ")
                    messages.questions.put((int(number), json.loads(question)))
                elif line.startswith(UNTIL):
                    messages.lease.extend(float(line.removeprefix(UNTIL)))
                elif line.startswith(REVISION) and file is not None:
                    messages.given.put(int(line.removeprefix(REVISION)), *given(_content(file)))
        _stop(messages)

    Thread(target=obey, name="supervisor", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        signal.signal(number, lambda *_: Thread(target=_stop, args=(messages,), daemon=True).start())


def _lines(fd: int) -> Iterator[tuple[bytes, int | None]]:
    """Yields the lines that come through the socket, each with the file descriptor that came with it."""
    received, files = b"", deque[int]()
    with socket.socket(fileno=os.dup(fd)) as supervisor:
        while True:
            data, fds, *_ = socket.recv_fds(supervisor, _BUFFER_BYTES, _MOST_FILES, socket.MSG_CMSG_CLOEXEC)
            if not data:
                return
            files.extend(fds)
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                yield line + b"\n", files.popleft() if line.startswith(REVISION) and files else None


def _content(file: int) -> bytes:
    """Returns all of a file and closes it.

    Other processes read it at the same time, so the file's position does not count.
    """
    try:
        content = b""
        while read := os.pread(file, _BUFFER_BYTES, len(content)):
            content += read
        return content
    finally:
        os.close(file)


def _stop(messages: ControlMessages) -> None:
    messages.stop.set()
    messages.given.close()
    messages.go.set()
    last_resort = Timer(STOP_SECONDS, _end_at_once)
    last_resort.daemon = True
    last_resort.start()


def _end_at_once() -> None:
    _log.error("did not stop in time and is ended", seconds=STOP_SECONDS)
    _kill()


def _kill() -> None:
    """Kills this process and all that it has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
