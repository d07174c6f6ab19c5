"""The supervisor of a bridge: starts its parts as processes, keeps them running, and ends them in the right order.

Of several bridges with one id only one is at work. The others stand by: their parts are started and wait (`election`).
A part that dies is started again, first at once if it was ready, then after a pause that doubles each time. So is an
embedded broker, since its data is on disk. A part that ends with a `BridgeError`, which no restart can help, ends the
bridge with the same line and exit code; so does a router or embedded broker that dies again and again before it was
ever ready. Trouble of one source or sink with its system, and of one topology with anything, ends nothing else
(`process_group`).

Elsewhere: the work of a part (`worker`), which parts there are (`parts`), how each is kept running
(`process_group`), changed configurations (`reload`), and the output for the user (`progress`).
"""

from __future__ import annotations

import json
import math
import signal
import sys
import termios
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import metadata
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from engine.java import find_java
from engine.limits import require_files
from engine.spark.launch import early_launch
from engine.supervision.child import Child, command
from engine.supervision.locks import hold
from engine.supervision.parts import ARTEMIS, KAFKA, ROUTER, Stage, stands_for_election, topology_part
from engine.supervision.pauses import Pauses
from engine.supervision.process_group import PartFailedError, ProcessGroup
from engine.supervision.revision import revision_of
from engine.telemetry import logging
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.meters import BridgeMetrics, DeadLetterMetrics, ProcessMetrics
from engine.telemetry.status import Merged, State, StatusBoard
from engine.topologies.question import StateAnswer
from routes.config.snapshot import Snapshot
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine.dead_letters.watch import DeadLetterWatch
    from engine.supervision.election import Election
    from engine.supervision.parts import Part
    from engine.supervision.progress import Progress
    from engine.supervision.reload import Reload
    from engine.supervision.revision import Revision
    from engine.topologies.question import StateQuestion
    from routes.model import Config

__all__ = ["Supervisor", "run"]

INTERRUPTED = 130
"""Exit status after a second Ctrl-C."""

_TICK_SECONDS = 0.1
_ANSWER_SECONDS = 10.0
_log = structlog.get_logger(__name__)


def run(config_path: Path, only: str | None = None) -> int:
    """Runs the bridge, or one part of it, until it is told to stop; returns the exit status.

    `only` is as for `parts.parts`.

    Raises:
        BridgeError: the bridge has ended for that reason; everything that it started is gone by then.
    """
    snapshot = Snapshot.take(config_path)
    config = snapshot.load()
    logging.setup(config)
    require_files()
    pauses = Pauses(config.embedded.data / "paused.json")
    if pauses.routes:
        snapshot = snapshot.with_paused(pauses.routes)
        config = snapshot.load()
    first = revision_of(1, snapshot, config, only)
    if any(part.name in (KAFKA, ARTEMIS, ROUTER) for part in first.parts):
        find_java()
    return _supervise(first, only, pauses)


class Supervisor:
    """The main loop over the processes of one bridge.

    `run` belongs to the main thread; `stop` is safe from any thread.
    """

    def __init__(
        self,
        group: ProcessGroup,
        board: StatusBoard,
        metrics: BridgeMetrics,
        progress: Progress,
        election: Election | None = None,
        reload: Reload | None = None,
    ) -> None:
        """Creates it without starting anything.

        With an `election`, all parts but brokers work only while this bridge leads.
        """
        self._group = group
        self._reload = reload
        self._board = board
        self._metrics = metrics
        self._progress = progress
        self._election = election
        self._led = False
        self._stop = Event()
        self._at_once = Event()

    def stop(self) -> None:
        """Ends the bridge in order; the second call ends it at once."""
        (self._at_once if self._stop.is_set() else self._stop).set()

    def reload(self) -> None:
        """Asks for the configuration to be read again."""
        if self._reload:
            self._reload.request()

    def run(self) -> int:
        """Runs the bridge until `stop`, or until a part's BridgeError, which it raises.

        No process is left when it ends.
        """
        self._progress.begin()
        try:
            while not self._stop.wait(_TICK_SECONDS):
                self._follow()
                self._tend()
                if self._reload:
                    self._reload.step()
                self._progress.show(self._board.all())
            self._progress.stopping()
        finally:
            self._progress.end()
            self._end()
        return INTERRUPTED if self._at_once.is_set() else 0

    def _tend(self) -> None:
        for member in self._group.members:
            try:
                member.tend(self._may_work_until(member.child))
            except BridgeError as error:
                if self._reload is not None and self._reload.undo(member.child.name, error):
                    break
                if not isinstance(error, PartFailedError):
                    raise
        self._group.forget(self._group.see_off(self._may_work_until))

    def _follow(self) -> None:
        """Joins the election as soon as Kafka is there, and reports its state."""
        election = self._election
        if election is None:
            return
        if self._group.find(KAFKA) is None or self._board.get(KAFKA).state is State.READY:
            election.start()
        if election.failure:
            raise election.failure
        if election.stands_by:
            self._group.stood_by()
        leads = election.leads
        if leads is not self._led:
            self._led = leads
            (_log.info if leads else _log.warning)(
                "this bridge leads" if leads else "this bridge does not lead any more"
            )
        self._metrics.leader(leads=leads, has_leader=election.has_leader)
        self._progress.standing("" if leads else election.why_not)

    def _may_work_until(self, child: Child) -> float:
        return math.inf if self._election is None or child.part.stage is Stage.BROKER else self._election.until

    def _end(self) -> None:
        for stage in Stage:
            if stage is Stage.BROKER and self._election:
                # No part of this bridge works any more, so the next bridge may begin.
                self._election.resign()
            self._group.dismiss([k.child.name for k in self._group.members if k.child.part.stage is stage])
            while self._group.leaving:
                for name in self._group.see_off(self._may_work_until, at_once=self._at_once.is_set()):
                    self._board.down(name, "stopped")
                self._at_once.wait(_TICK_SECONDS)
                for member in self._group.members:
                    member.may_work(self._may_work_until(member.child))


def _supervise(first: Revision, only: str | None, pauses: Pauses) -> int:
    config, elected = first.config, stands_for_election(only)
    names = [part.name for part in first.parts]
    secrets = set(logging.secrets_of(config))
    clean = logging.Redactor(secrets)
    board = StatusBoard(names, clean)
    registry = CollectorRegistry()
    metrics = BridgeMetrics(registry, names, metadata.version("jms-bridge"), metadata.version("pyspark"))
    registry.register(Merged(board))
    with ExitStack() as stack:
        locks = _Locks(stack, config, elected=elected)
        locks.hold(first.parts)

        def make(part: Part, revision: Revision) -> Child:
            lock = locks.held.get(part.name)
            early = _early_launch if part.name == ROUTER else None
            return Child(part, command(part, revision.snapshot.path), board, lock, revision, early)

        def prepare(revision: Revision) -> None:
            _check_topics(revision)
            locks.hold(revision.parts)
            # Secrets of all revisions: the earlier one stays in force if this one is given up.
            secrets.update(logging.secrets_of(revision.config))
            board.clean_with(logging.Redactor(secrets))

        group = ProcessGroup([make(part, first) for part in first.parts], board, metrics, pauses)
        stack.enter_context(group.begun())
        # Imported while the parts start, since a web server takes half a second to import.
        from engine.dead_letters.retry import Retries
        from engine.doctor.certificates import certificates_of, expiry_times
        from engine.doctor.folders import folders_of
        from engine.doctor.machine import free_bytes
        from engine.find.filter_upkeep import FilterUpkeep
        from engine.page.acting import acting_on_bridge
        from engine.page.app import pages
        from engine.page.render import login_note
        from engine.page.view import Samples, View
        from engine.supervision.election import Election
        from engine.supervision.progress import LoggedProgress, Progress
        from engine.supervision.reload import Reload
        from engine.telemetry.control import control
        from engine.telemetry.http import HttpServer, application, earlier_reading, metrics_only
        from engine.telemetry.machine import MachineMetrics
        from engine.telemetry.peers import Peers

        election = Election(config) if elected else None
        ProcessMetrics(registry, group.leaders)
        reload = Reload(first, only, group, board, metrics, make, prepare)
        stack.enter_context(
            MachineMetrics(
                registry,
                lambda: expiry_times(certificates_of(reload.current.config)),
                lambda: free_bytes(folders_of(reload.current.config)),
            )
        )
        watch = _watch(reload, election, clean)
        if watch:
            DeadLetterMetrics(registry, watch.census)
        census = watch.census if watch else lambda: None
        http = config.section(HttpConfig)
        peers = Peers(config.bridge_id, http) if http.peers else None
        samples = stack.enter_context(Samples(registry, peers=peers.traffic if peers else tuple))
        view = View(
            board,
            samples,
            lambda: reload.current.config,
            lambda: reload.current.snapshot,
            lambda: reload.state,
            election,
            census,
            watch.state if watch else lambda _: None,
            peers.reports if peers else None,
            partial(_ask, group),
            reload,
        )
        routes = [
            *pages(view),
            *control(reload, partial(acting_on_bridge, view)),
            earlier_reading(lambda: samples.traffic.before),
        ]
        served = application(board, registry, election, census, lambda: reload.state, routes, peers)
        # While this bridge stands by, another one may serve its figures at the same address.
        patient = election is not None and not config.embedded_kafka
        server = stack.enter_context(HttpServer(http, served, patient=patient, login_page=login_note))
        if figures := metrics_only(http):
            served = application(board, registry, election, census, lambda: reload.state)
            stack.enter_context(HttpServer(figures, served, patient=patient, setting="http.metrics-address"))
        if peers:
            # After the server: if this host is in the list, it answers the first question.
            stack.enter_context(peers)
        if watch and election:
            stack.enter_context(watch)

            def may_replay() -> bool:
                # A router that still has the routes of before would hold the messages again.
                return election.leads and not reload.is_changing

            stack.enter_context(Retries(lambda: reload.current.config, may_replay, lambda: watch.held))
            stack.enter_context(FilterUpkeep(lambda: reload.current.config, lambda: election.leads))
        progress = (LoggedProgress if logging.is_json() else Progress)(config, first.parts, server.url)
        supervisor = Supervisor(group, board, metrics, progress, election, reload)
        with _signals(supervisor):
            return supervisor.run()


def _early_launch(config: Config) -> bytes | None:
    """Description of the JVM that a router's process starts first of all; None if its start is likely to be refused."""
    from engine.router.last_progress import is_refusal_likely

    return None if is_refusal_likely(config) else early_launch(config)


def _ask(group: ProcessGroup, topology: str, question: StateQuestion, seconds: float) -> StateAnswer | None:
    """Asks the process of a topology for its state; None if there is none, or no answer in so many seconds."""
    part = group.find(topology_part(topology))
    text = part and part.child.ask(question.fields, seconds)
    return StateAnswer(**json.loads(text)) if text else None


class _Locks:
    """The locks that keep another bridge from running the same parts in the same folder."""

    def __init__(self, stack: ExitStack, config: Config, *, elected: bool) -> None:
        self._stack = stack
        self._config = config
        self._elected = elected
        self.held: dict[str, int] = {}
        """The locked descriptor for each part's process, by the part's name."""

    def hold(self, wanted: Sequence[Part]) -> None:
        """Holds the locks of those parts that have none yet; raises SetupError if another bridge holds one of them."""
        locked = _locked(wanted, elected=self._elected, embedded_kafka=self._config.embedded_kafka)
        names = [name for name in locked if name not in self.held]
        self.held |= self._stack.enter_context(hold(self._config.embedded.data, names))


def _locked(wanted: Sequence[Part], *, elected: bool, embedded_kafka: bool) -> list[str]:
    """Returns the names of the parts to lock.

    Parts other than brokers need no lock if an election decides, unless Kafka is embedded.
    """
    return [part.name for part in wanted if embedded_kafka or not elected or part.stage is Stage.BROKER]


def _watch(reload: Reload, election: Election | None, clean: Callable[[str], str]) -> DeadLetterWatch | None:
    """Returns the watch over the dead letters; None without an election.

    Only the supervisor of the leading bridge watches.
    """
    from engine.dead_letters.store import DeadLetterStore
    from engine.dead_letters.watch import DeadLetterWatch

    if election is None:
        return None
    return DeadLetterWatch(lambda: DeadLetterStore.of(reload.current.config), lambda: election.leads, clean)


def _check_topics(revision: Revision) -> None:
    """Makes and checks the topics without which a router would fail on its new routes.

    Raises:
        BridgeError: a topic is missing or unfit, or Kafka does not answer.
    """
    from engine.kafka.topics import BridgeTopics

    if any(part.name == ROUTER for part in revision.parts):
        topics = BridgeTopics(revision.config)
        for step in (topics.ensure_sink_topics, topics.create_missing, topics.check):
            step(_ANSWER_SECONDS)


@contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    had_terminal = _has_terminal()

    def stop(*_: object) -> None:
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        Thread(target=supervisor.stop, daemon=True).start()

    def hang_up(*_: object) -> None:
        # SIGHUP also says that the terminal is gone; then the bridge stops instead of reloading.
        gone = had_terminal and not _has_terminal()
        Thread(target=supervisor.stop if gone else supervisor.reload, daemon=True).start()

    handlers = {signal.SIGINT: stop, signal.SIGTERM: stop, signal.SIGHUP: hang_up}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    try:
        termios.tcgetattr(sys.__stdin__.fileno()) if sys.__stdin__ else None
    except (OSError, ValueError, termios.error):
        return False
    return sys.__stdin__ is not None
