"""Runs a bridge: starts its parts as processes, keeps them running, and ends them in the right order.

A part that dies is started again after a pause that doubles each time; an embedded broker is no exception, since its
data is on disk. A part that ends with a `BridgeError`, which no restart can help, ends the bridge with the same line
and exit code, and so does one that dies again and again before it was ever ready. What a part does is
`worker`'s business, which parts there are is `parts`', and what a user sees is `progress`'.
"""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from importlib import metadata
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry

from engine.embedded.java import find_java
from engine.errors import HardFailureError, SetupError, SoftFailureError, UnreachableError, UsageError
from engine.supervision.child import Child, command
from engine.supervision.locks import hold
from engine.supervision.parts import ARTEMIS, KAFKA, ROUTER, Stage, parts
from engine.telemetry import logging
from engine.telemetry.exposition import Merged
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, StatusBoard
from routes import config as configuration
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from engine.supervision.parts import Part
    from engine.supervision.progress import Progress
    from engine.telemetry.status import Status
    from routes.model import Config

__all__ = ["Supervisor", "run"]

INTERRUPTED = 130
"""Exit status after a second Ctrl-C."""

_TICK_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 1.0
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0
"""A part that was ready for so long has no past."""
_HOPELESS = 5
"""So many deaths without being ready once end the bridge."""
_PATIENCE_SECONDS = {Stage.SOURCE: 15.0, Stage.ROUTER: 30.0, Stage.SINK: 20.0, Stage.BROKER: 25.0}
"""How long each stage may take to stop before it is killed."""
_KNOWN = {
    error.exit_code: error
    for error in (SetupError, HardFailureError, SoftFailureError, UnreachableError, UsageError, BridgeError)
}
_log = structlog.get_logger(__name__)


def run(config_path: Path, only: str | None = None, worker: int = 1, status_fd: int | None = None) -> int:
    """Runs the bridge, or one part of it, until it is told to stop; returns the exit status.

    `only` is what `parts.parts` takes. `worker` and `status_fd` are given by a supervisor to its children.
    Any BridgeError means that the bridge has ended for that reason; everything it started is gone by then.
    """
    if status_fd is not None:
        from engine.supervision import worker as child

        return child.run(config_path, only or "", worker, status_fd)
    config = configuration.load(config_path)
    logging.setup(config)
    wanted = parts(config, only)
    if any(part.name in (KAFKA, ARTEMIS, ROUTER) for part in wanted):
        find_java()
    return _supervise(config, wanted)


class Supervisor:
    """The processes of one bridge. `run` belongs to the main thread, `stop` may come from any."""

    def __init__(
        self, children: Sequence[Child], board: StatusBoard, metrics: BridgeMetrics, progress: Progress
    ) -> None:
        self._keepers = [_Keeper(child, board, metrics) for child in children]
        self._board = board
        self._progress = progress
        self._stop = Event()
        self._at_once = Event()

    def stop(self) -> None:
        """Ends the bridge in order; the second call ends it at once."""
        (self._at_once if self._stop.is_set() else self._stop).set()

    def run(self) -> int:
        """Until `stop`, or the BridgeError of a part; nothing it started is left when it returns or raises."""
        self._progress.begin()
        try:
            while not self._stop.wait(_TICK_SECONDS):
                for keeper in self._keepers:
                    keeper.tend()
                self._progress.show(self._board.all())
            self._progress.stopping()
        finally:
            self._progress.end()
            self._end()
        return INTERRUPTED if self._at_once.is_set() else 0

    def _end(self) -> None:
        for stage in Stage:
            children = [keeper.child for keeper in self._keepers if keeper.child.part.stage is stage]
            for child in children:
                child.ask_to_stop()
            deadline = time.monotonic() + _PATIENCE_SECONDS[stage]
            while any(child.running for child in children):
                if self._at_once.is_set() or time.monotonic() > deadline:
                    for child in children:
                        child.kill()
                self._at_once.wait(_TICK_SECONDS)
                for child in children:
                    if child.ended() is not None:
                        self._board.down(child.name, "stopped")


class _Keeper:
    """Keeps one part running."""

    def __init__(self, child: Child, board: StatusBoard, metrics: BridgeMetrics) -> None:
        self.child = child
        self._board = board
        self._metrics = metrics
        self._start_at: float | None = 0.0
        self._started = False
        self._ready_since: float | None = None
        self._deaths = 0
        self._early_deaths = 0

    def tend(self) -> None:
        """Does what is due now: start, release, take note of readiness or of the end. Never waits."""
        now = time.monotonic()
        if (code := self.child.ended()) is not None:
            self._ended(code, now)
        elif not self.child.running:
            self._start_if_due(now)
        else:
            self._watch(self._board.get(self.child.name), now)

    def _start_if_due(self, now: float) -> None:
        if self._start_at is not None and now >= self._start_at:
            if self._started:
                self._metrics.restarted(self.child.name)
            self._started = True
            self.child.start()

    def _watch(self, status: Status, now: float) -> None:
        if not self.child.released and all(
            self._board.get(need).state is State.READY for need in self.child.part.needs
        ):
            self.child.release()
        ready = status.state is State.READY
        self._metrics.component(self.child.name, up=ready)
        if not ready:
            self._ready_since = None
        elif self._ready_since is None:
            self._ready_since = now
            self._early_deaths = 0
        elif now - self._ready_since > _STEADY_SECONDS:
            self._deaths = 0

    def _ended(self, code: int, now: float) -> None:
        name = self.child.name
        status = self._board.get(name)
        self._metrics.component(name, up=False)
        if status.exit_code is not None:
            self._board.down(name, status.error or "")
            raise _KNOWN.get(status.exit_code, BridgeError)(status.error)
        why = status.error or (f"killed by signal {-code}" if code < 0 else f"ended with exit status {code}")
        self._deaths += 1
        self._early_deaths += self._ready_since is None
        self._ready_since = None
        if self._early_deaths >= _HOPELESS:
            message = f"{name} ended {self._early_deaths} times before it was ready; the last time: {why}"
            raise BridgeError(message)
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** (self._deaths - 1), _LONGEST_PAUSE_SECONDS)
        self._start_at = now + pause
        self._board.down(name, f"{why}; starting again in {pause:g} s")
        _log.warning("a part of the bridge died", component=name, why=why, restart_in_seconds=pause)


def _supervise(config: Config, wanted: Sequence[Part]) -> int:
    # Not imported by the children, which come through this module: a web server takes half a second to import.
    from engine.supervision.progress import Progress
    from engine.telemetry.http import HttpServer, application

    names = [part.name for part in wanted]
    board = StatusBoard(names, logging.Redactor(logging.secrets_of(config)))
    registry = CollectorRegistry()
    metrics = BridgeMetrics(registry, names, metadata.version("jms-bridge"), metadata.version("pyspark"))
    registry.register(Merged(board))
    with (
        hold(config.embedded.data, names) as locks,
        HttpServer(config.http, application(board, registry)) as server,
    ):
        children = [Child(part, command(part, config.path), board, locks[part.name]) for part in wanted]
        supervisor = Supervisor(children, board, metrics, Progress(config, wanted, server.url))
        with _signals(supervisor):
            return supervisor.run()


@contextmanager
def _signals(supervisor: Supervisor) -> Iterator[None]:
    def handle(*_: object) -> None:
        # An event must not be set in the handler: the main thread it interrupts may hold the event's lock.
        Thread(target=supervisor.stop, daemon=True).start()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
