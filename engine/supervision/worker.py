"""The child's side: runs one part of the bridge and tells the supervisor how it is.

The main thread does the part's work; one thread listens to the supervisor. What a part does is elsewhere: this module
prepares it (waits for what it needs, checks the topics), hands it an event that says when to stop, and turns whatever
it raises into a last word and an exit status.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread, Timer
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from engine.errors import UnreachableError
from engine.jars import jars
from engine.supervision.child import GO
from engine.supervision.parts import ARTEMIS, KAFKA, NATS, ROUTER
from engine.telemetry import logging
from engine.telemetry.status import Reporter, State
from routes import config as configuration
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.embedded.server import EmbeddedServer
    from routes.model import Config

__all__ = ["STOP_SECONDS", "Orders", "run", "serve"]

STOP_SECONDS = 30.0
"""After this long a part that was asked to stop ends itself the hard way."""

_ALIVE_SECONDS = 0.5
_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 1.0
_PROMPT_SECONDS = 0.5
_OBJECTS_BEFORE_A_SEARCH = 20_000
_log = structlog.get_logger(__name__)


class _ServerEndedError(Exception):
    """An embedded server was killed or died. Started again by the supervisor, which says so, it goes on."""


@dataclass(frozen=True, slots=True)
class Orders:
    """What the supervisor has said so far."""

    go: Event = field(default_factory=Event)
    """The part may begin; also set when it is to stop instead, so that nobody waits in vain."""
    stop: Event = field(default_factory=Event)


def run(config_path: Path, only: str, worker: int, status_fd: int) -> int:
    """Runs the part `only` of a configuration as a child of a supervisor; returns the exit status of this process."""
    name = only if worker == 1 else f"{only}/{worker}"

    def work(status: Reporter, orders: Orders) -> None:
        config = configuration.load(config_path)
        logging.setup(config)
        structlog.contextvars.bind_contextvars(component=name)
        _part(config, only, worker, status, orders)

    return serve(name, status_fd, work)


def serve(name: str, status_fd: int, work: Callable[[Reporter, Orders], None]) -> int:
    """Does any work as the child of a supervisor, until it returns or raises; returns the exit status."""
    orders = Orders()
    with Reporter(os.dup(status_fd), name, CollectorRegistry()) as status:
        _listen(status_fd, orders)
        try:
            work(status, orders)
        except BridgeError as error:
            status.error(error)
            return error.exit_code
        except _ServerEndedError as error:
            status.error(error, foreseen=True)
            return 1
        except Exception as error:
            _log.exception("ended by an unforeseen error")
            status.error(error)
            return 1
        status.state(State.STOPPING)
    return 0


def _part(config: Config, only: str, worker: int, status: Reporter, orders: Orders) -> None:
    # What one part needs is not imported into the others: each is a process, and starts in a fraction of a second.
    if only == KAFKA:
        from engine.embedded import EmbeddedKafka

        embedded = config.embedded
        kafka = EmbeddedKafka(embedded.data, embedded.kafka_port, jars())
        _serve(kafka, f"{kafka.bootstrap}, data in {kafka.folder}", status, orders.stop)
    elif only == ARTEMIS:
        from engine.embedded import EmbeddedArtemis

        embedded = config.embedded
        ports = embedded.artemis_port, embedded.stomp_port, embedded.amqp_port
        artemis = EmbeddedArtemis(embedded.data, *ports, jars())
        where = f"{artemis.stomp_url}, {artemis.amqp_url}, {artemis.core_url}, data in {artemis.folder}"
        _serve(artemis, where, status, orders.stop)
    elif only == NATS:
        from engine.embedded import EmbeddedNats

        nats = EmbeddedNats(config.embedded.data, config.embedded.nats_port)
        _serve(nats, f"{nats.url}, data in {nats.folder}", status, orders.stop)
    elif only == ROUTER:
        _route(config, status, orders)
    else:
        _connector(config, only, worker, status, orders)


def _serve(server: EmbeddedServer, where: str, status: Reporter, stop: Event) -> None:
    try:
        server.start()
        status.state(State.READY, where)
        while not stop.wait(_ALIVE_SECONDS):
            if not server.alive():
                message = f"embedded {server.title} ended by itself; see {server.log}"
                raise _ServerEndedError(message)
        status.state(State.STOPPING)
    finally:
        server.stop()


def _route(config: Config, status: Reporter, orders: Orders) -> None:
    from engine import topics
    from engine.spark import runtime, session

    # A Kafka that is there already is looked at first, so that a missing topic is told at once. An embedded one takes
    # seconds to start, and so does Spark: at the same time.
    if not orders.go.wait(_PROMPT_SECONDS):
        status.state(State.STARTING, "starting Spark")
        session.start(config)
    status.state(State.STARTING, f"waiting for Kafka at {config.bootstrap_servers}")
    orders.go.wait()
    steps = topics.ensure_journal, topics.ensure_sink_topics, topics.create_missing, topics.check_topics
    if _prepared(steps, config, status, orders.stop):
        runtime.run_router(config, status, orders.stop)


def _connector(config: Config, only: str, worker: int, status: Reporter, orders: Orders) -> None:
    from engine import topics

    # What is under way is made of many small objects without cycles; searching them for some took a tenth of the time
    # of a source, and a quarter of that of a sink.
    gc.set_threshold(_OBJECTS_BEFORE_A_SEARCH, *gc.get_threshold()[1:])
    kind, _, name = only.partition(":")
    status.state(State.STARTING, "waiting for its brokers")
    orders.go.wait()
    if kind == "source":
        from engine.connectors.source_loop import run_source

        if _prepared((topics.ensure_journal,), config, status, orders.stop):
            run_source(config, name, worker, status, orders.stop)
    elif _prepared((topics.ensure_journal, topics.ensure_sink_topics), config, status, orders.stop):
        from engine.connectors.sink_loop import run_sink

        run_sink(config, name, worker, status, orders.stop)


def _prepared(
    steps: Iterable[Callable[[Config, float], object]], config: Config, status: Reporter, stop: Event
) -> bool:
    """Whether all steps were done, Kafka being waited for; False when the part is to stop instead."""
    deadline = time.monotonic() + config.router.outage_timeout_seconds
    while not stop.is_set():
        try:
            for step in steps:
                step(config, _ANSWER_SECONDS)
        except UnreachableError as error:
            if time.monotonic() > deadline:
                raise
            status.state(State.DEGRADED, str(error))
            stop.wait(_PAUSE_SECONDS)
        else:
            return True
    return False


def _listen(fd: int, orders: Orders) -> None:
    """Obeys the supervisor and SIGTERM from now on, in threads."""

    def obey() -> None:
        # A supervisor that was killed before it had read everything resets the connection.
        with suppress(ConnectionError):
            while os.read(fd, 1) == GO:
                orders.go.set()
        _stop(orders)

    Thread(target=obey, name="orders", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        signal.signal(number, lambda *_: Thread(target=_stop, args=(orders,), daemon=True).start())


def _stop(orders: Orders) -> None:
    orders.stop.set()
    orders.go.set()
    last_resort = Timer(STOP_SECONDS, _end_at_once)
    last_resort.daemon = True
    last_resort.start()


def _end_at_once() -> None:
    _log.error("did not stop in time and is ended", seconds=STOP_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
