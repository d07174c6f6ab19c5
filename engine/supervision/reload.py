"""Reload: brings a changed configuration into force while the bridge runs, as a whole or not at all.

    asked for (SIGHUP, or the file has changed)
      ─► read and checked, in a thread: faults, changes that need a restart, topics   ─► refused: nothing has changed
      ─► parts change, one stage after the other: changed sources end, the router takes its new routes,
         changed sinks end, new and changed parts start                               ─► in force
      ─► each changed part becomes ready once                                         ─► proven
           one of them ends with an error that no restart helps                       ─► last proven one comes back

The router changes between two generations (`engine.router.recovery`), in its process; other changed parts are started
anew. A part that dies in between is started again with the new revision.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

import structlog

from engine.errors import SoftFailureError, UsageError
from engine.supervision.parts import ROUTER, Stage, topology_of
from engine.supervision.pauses import ROUTE
from engine.supervision.revision import RevisionChange, change, revision_of
from engine.telemetry.status import State
from engine.topologies.runtime.check import check_loaded
from routes.config.snapshot import Snapshot
from routes.errors import BridgeError, ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from engine.supervision.child import Child
    from engine.supervision.parts import Part
    from engine.supervision.process_group import ProcessGroup
    from engine.supervision.revision import Revision
    from engine.telemetry.meters import BridgeMetrics
    from engine.telemetry.status import StatusBoard
    from routes.model import Config

__all__ = ["Reload"]

_LOOK_SECONDS = 1.0
_AGAIN_SECONDS = 10.0
"""Time after which changed pauses of routes that were refused, as without Kafka, are tried again."""
_log = structlog.get_logger(__name__)


class Reload:
    """The reloads of one bridge: reads, applies, proves and gives up revisions. For one thread, except `request`."""

    def __init__(
        self,
        first: Revision,
        only: str | None,
        group: ProcessGroup,
        board: StatusBoard,
        metrics: BridgeMetrics,
        make: Callable[[Part, Revision], Child],
        prepare: Callable[[Revision], None],
    ) -> None:
        """Creates it with the revision in force.

        `make` makes the child of a part. `prepare` makes ready the resources of a revision, such as topics, or raises a
        BridgeError; it is called in a thread.
        """
        self._only = only
        self._group = group
        self._board = board
        self._metrics = metrics
        self._make = make
        self._prepare = prepare
        self._current = self._proven = first
        self._numbers = first.number
        self._asked = Event()
        self._lock = Lock()
        self._requested = self._answered = 0
        """Numbers of the last request, and of the last one that the newest reading answers."""
        self._restarts = SimpleQueue[str]()
        self._pauses_at = 0.0
        """Time of `time.monotonic` from which on changed pauses of routes are brought into force."""
        self._told: dict[str, str] = {}
        """The routes that are paused in force, each with the reason."""
        self._reading: _Reading | None = None
        self._steps: Iterator[None] | None = None
        self._touched: frozenset[str] = frozenset()
        """Names of the parts that changed since the last proven revision."""
        self._unproven: frozenset[str] = frozenset()
        """Names of the touched parts that have not been ready since the change."""
        self._why_back = ""
        """Reason why an old revision came back; empty if the newest one was not given up."""
        self._refused = ""
        """Reason why the file was refused when it was last read; empty if it was not."""
        self._left_out: list[str] = []
        """Paths of source files on disk whose content was refused or revoked."""
        self._file = _File(first.snapshot.path)
        self._report: dict[str, Any] = {}
        self._note(success=True)

    def request(self) -> int:
        """Asks for the configuration to be read again; returns the request's number. Safe from any thread."""
        with self._lock:
            self._requested += 1
            self._asked.set()
            return self._requested

    def restart(self, name: str) -> list[str]:
        """Asks to start a part anew with the configuration in force; returns the parts named so. From any thread.

        Raises:
            UsageError: there is no such part, or it is an embedded broker, or a reload is not over yet.
        """
        names = self._named(name)
        if paused := [each for each in names if self._group.pauses.find(each)]:
            msg = f"{', '.join(paused)} is paused: `jms-bridge resume {name}` starts it"
            raise UsageError(msg)
        if self._steps is not None or self._unproven:
            waiting = ", ".join(sorted(self._unproven)) or "its parts"
            msg = f"a reload is under way, until {waiting} has become ready or the reload is revoked; try again then"
            raise UsageError(msg)
        for each in names:
            self._restarts.put(each)
        return names

    def separable(self) -> list[str]:
        """The names of the parts that can be restarted or paused alone. From any thread."""
        return [part.name for part in self._current.parts if part.stage is not Stage.BROKER]

    def pause(self, name: str, by: str) -> list[str]:
        """Asks a part to end in order and to stay so, or to pause a route; returns the names. From any thread.

        Raises:
            UsageError: there is no such part, or it is an embedded broker; no such route, or the file pauses it.
        """
        names = self._routes(name, is_paused=False) if name.startswith(ROUTE) else self._named(name)
        self._group.pauses.add(names, by)
        return names

    def resume(self, name: str, by: str) -> list[str]:
        """Asks to start a paused part again; returns the parts named so. From any thread.

        Raises:
            UsageError: there is no such part, or it is not paused.
        """
        names = self._routes(name, is_paused=True) if name.startswith(ROUTE) else self._named(name)
        if not any(map(self._group.pauses.find, names)):
            msg = f"{', '.join(names)} is not paused"
            raise UsageError(msg)
        self._group.pauses.remove(names, by)
        return names

    def _routes(self, name: str, *, is_paused: bool) -> list[str]:
        """The route with this name behind `route:`; UsageError if its pause cannot be changed here."""
        revision, wanted = self._current, name.removeprefix(ROUTE)
        known = [route.name for route in revision.config.routes if not route.added]
        if wanted not in known and not (is_paused and wanted in self._group.pauses.routes):
            msg = f"there is no route '{wanted}' that can be paused; there are {', '.join(known) or 'none'}"
            raise UsageError(msg)
        if not any(part.name == ROUTER for part in revision.parts):
            msg = "the router runs elsewhere: pause its routes there"
            raise UsageError(msg)
        if wanted not in self._group.pauses.routes and (line := revision.snapshot.line_of_pause(wanted)):
            msg = f"{line} says whether the route is paused: correct that line, then `jms-bridge reload`"
            raise UsageError(msg)
        return [name]

    def _named(self, name: str) -> list[str]:
        """The parts with this name, embedded brokers excepted; UsageError without any."""
        able = [part for part in self._current.parts if part.stage is not Stage.BROKER]
        if names := [part.name for part in able if name in (part.name, part.only)]:
            return names
        known = ", ".join(dict.fromkeys(part.only for part in able))
        msg = f"'{name}' is not a part that can be restarted or paused alone; there are {known}"
        raise UsageError(msg)

    @property
    def current(self) -> Revision:
        """The revision in force, or about to be. Safe from any thread."""
        return self._current

    @property
    def is_changing(self) -> bool:
        """True while parts change from one revision to the next. Safe from any thread."""
        return self._steps is not None

    @property
    def state(self) -> dict[str, Any]:
        """The part of `/ready` that says which configuration is in force, and how the last reload went."""
        return self._report | {"proven": self._steps is None and not self._unproven}

    def step(self) -> None:
        """Takes the steps that are due now; never waits."""
        if self._current.config.reload.watch and self._file.has_changed():
            self._asked.set()
        if self._steps is not None:
            self._go_on(self._steps)
        elif self._reading is not None:
            if self._reading.done:
                self._take(self._reading)
        elif self._asked.is_set():
            self._asked.clear()
            self._numbers += 1
            self._answered = self._requested
            self._reading = _Reading(self._current, self._numbers, self._only, self._prepare, self._paused)
        elif self._current.snapshot.paused != self._paused and time.monotonic() >= self._pauses_at:
            self._numbers += 1
            self._pauses_at = time.monotonic() + _AGAIN_SECONDS
            self._reading = _Reading(
                self._current, self._numbers, self._only, self._prepare, self._paused, from_disk=False
            )
        elif not self._unproven and not self._restarts.empty():
            self._steps = self._over_restart(self._restarts.get())
        self._prove()

    @property
    def _paused(self) -> frozenset[str]:
        """The routes that are to be paused."""
        return frozenset(self._group.pauses.routes)

    def undo(self, part: str, error: BridgeError) -> bool:
        """Brings back the last proven revision if `part` ended because of the newest one; returns True if it does so.

        The end of a part that has not been ready since the change is blamed on the revision. A SoftFailureError is not:
        a message that fails and stops the bridge is not a fault of a configuration.
        """
        if part not in self._unproven or isinstance(error, SoftFailureError):
            return False
        failed, proven = self._current.snapshot.hash, self._proven
        self._left_out = proven.changed_files(self._current)
        _log.error(
            "the configuration is revoked, the previous one comes back",
            component=part,
            why=str(error),
            **self._not_in_force(),
        )
        self._numbers += 1
        back = replace(proven, number=self._numbers)
        others = self._touched - {ROUTER}
        again = tuple(each for each in proven.parts if each.name in others)
        self._begin(back, RevisionChange(tuple(others), again, reroutes=ROUTER in self._touched), is_back=True)
        self._proven, self._unproven = back, frozenset()
        self._why_back = f"{failed} was given up: {part}: {error}"
        return True

    def _take(self, reading: _Reading) -> None:
        self._reading = None
        if reading.current is not self._current:
            # The reading was compared with a revision that has been given up since.
            if reading.from_disk:
                self._asked.set()
        elif reading.error is not None:
            self._refuse(reading.error, reading)
        elif reading.revision is None:
            _log.info("configuration read again: nothing has changed", config_hash=self._current.snapshot.hash)
            self._left_out, self._refused = [], ""
            self._note(success=True)
        else:
            if reading.from_disk:
                # A pause of a route leaves a file that was refused or revoked as it is.
                self._left_out, self._why_back, self._refused = [], "", ""
            self._begin(reading.revision, reading.change)
            self._unproven |= reading.change.touched

    def _refuse(self, error: BridgeError, reading: _Reading) -> None:
        faults = error.faults if isinstance(error, ConfigurationError) else ()
        lines = [str(fault).partition("\n")[0] for fault in faults] or [str(error)]
        for line in lines:
            _log.error("configuration refused", why=line)
        why = "; ".join(lines)
        if reading.from_disk:
            self._left_out, self._refused = reading.files, why
        remedy = "correct it, then `jms-bridge reload`"
        digest = self._current.snapshot.hash
        _log.error(
            "the previous configuration stays in force", config_hash=digest, remedy=remedy, **self._not_in_force()
        )
        self._note(success=False, why=why)

    def _begin(self, revision: Revision, change: RevisionChange, *, is_back: bool = False) -> None:
        self._current = revision
        self._touched |= change.touched
        for member in self._group.members:
            # A part that is about to leave, and dies before it does, starts again with the settings that it has.
            if any(part.name == member.child.name for part in revision.parts):
                member.child.give(revision)
        self._steps = self._over(revision, change, is_back=is_back)

    def _over(self, revision: Revision, change: RevisionChange, *, is_back: bool) -> Iterator[None]:
        """Steps from one revision to the next; yields wherever a step has to wait.

        `is_back` says that the revision is an earlier one, whose parts were at work before.
        """
        yield from self._leave(change, Stage.SOURCE)
        if change.reroutes:
            yield from self._reroute(revision)
        yield from self._leave(change, Stage.TOPOLOGY)
        yield from self._leave(change, Stage.SINK)
        while change.touched & set(self._group.leaving):
            yield
        for part in change.join:
            child = self._make(part, revision)
            child.is_first = not is_back
            self._group.join(child)
        changed, digest = sorted(self._touched), revision.snapshot.hash
        _log.info("configuration in force", config_hash=digest, changed=changed, **self._not_in_force())
        why = self._why_back or self._refused
        self._note(success=not why, why=why, changed=changed)

    def _over_restart(self, name: str) -> Iterator[None]:
        """Steps of the restart of one part; yields wherever a step has to wait."""
        part = next((part for part in self._current.parts if part.name == name), None)
        if part is None:
            return
        _log.info("a part is restarted on request", component=name)
        self._group.dismiss([name])
        while name in self._group.leaving:
            yield
        child = self._make(part, self._current)
        child.is_first = False
        self._group.join(child)

    def _not_in_force(self) -> dict[str, list[str]]:
        """The field of reports with the source files on disk that are not in force; none if there are none."""
        return {"not_in_force": self._left_out} if self._left_out else {}

    def _leave(self, change: RevisionChange, stage: Stage) -> Iterator[None]:
        going = {k.child.name for k in self._group.members if k.child.part.stage is stage} & set(change.leave)
        self._group.dismiss(going)
        while any(name in going for name in self._group.leaving):
            yield

    def _reroute(self, revision: Revision) -> Iterator[None]:
        """Gives the router its new routes, or has it start with them if it does not route yet."""
        router = self._group.find(ROUTER)
        if router is None:
            return
        if router.child.running and not router.child.released:
            self._group.dismiss([ROUTER])
            while ROUTER in self._group.leaving:
                yield
            self._group.join(self._make(router.child.part, revision))
        else:
            # A router that is not running now starts with them by itself.
            while router.child.running and not router.child.hand_over():
                yield
        # A paused router starts with them when it is resumed.
        while self._group.pauses.find(ROUTER) is None and self._board.get(ROUTER).revision != revision.number:
            yield

    def _go_on(self, steps: Iterator[None]) -> None:
        try:
            next(steps)
        except StopIteration:
            self._steps = None

    def _prove(self) -> None:
        """Takes note of touched parts that are ready, paused or gone; with none left, the revision is proven."""
        if self._steps is not None:
            return
        for name in self._unproven:
            status = self._board.get(name) if self._group.find(name) else None
            is_new = status is not None and status.revision > self._proven.number
            if status is None or status.state is State.PAUSED or (status.state is State.READY and is_new):
                self._unproven -= {name}
        if not self._unproven:
            self._proven, self._touched = self._current, frozenset()

    def _note(self, *, success: bool, why: str = "", changed: Sequence[str] = ()) -> None:
        now, digest = time.time(), self._current.snapshot.hash
        self._metrics.configuration(digest, success=success, time_seconds=now)
        noted_at = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        outcome: dict[str, Any] = {"success": success, "time": noted_at, "request": self._answered}
        outcome |= ({"changed": list(changed)} if changed else {}) | self._not_in_force()
        pauses = self._group.pauses.routes
        paused = {
            route.name: str(pauses.get(route.name, f"paused by {self._current.snapshot.path.name}"))
            for route in self._current.config.routes
            if route.paused
        }
        for name in self._told.keys() | paused:
            self._metrics.paused(f"{ROUTE}{name}", is_paused=name in paused)
        self._told = paused
        self._report = {
            "paused": paused,
            "bridge": self._current.config.bridge_id,
            "hash": digest,
            "topologies": {name: code.hash for name, code in self._current.codes.items()},
            "reload": outcome | ({"why": why} if why else {}),
        }


class _Reading:
    """The reading and checking of a configuration, in a thread of its own."""

    def __init__(
        self,
        current: Revision,
        number: int,
        only: str | None,
        prepare: Callable[[Revision], None],
        paused: frozenset[str],
        *,
        from_disk: bool = True,
    ) -> None:
        """Starts it; `paused` are the routes that are paused beside those that the file pauses.

        Without `from_disk` nothing else changes.
        """
        self._paused = paused
        self.from_disk = from_disk
        self.current = current
        """The revision that the configuration is compared with."""
        self._number = number
        self._only = only
        self._prepare = prepare
        self.revision: Revision | None = None
        """The revision that was read; None if the file equals the one in force, or is refused."""
        self.change = RevisionChange()
        self.files: list[str] = []
        """Paths of the source files of topologies that differ from those in force."""
        self.error: BridgeError | None = None
        self._thread = Thread(target=self._run, name="reload", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """True when the thread has ended and the other attributes hold the result."""
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._read()
        except BridgeError as error:
            self.error = error
        except Exception as error:
            _log.exception("the configuration could not be read because of an unexpected error")
            self.error = BridgeError(f"{type(error).__name__}: {error}")

    def _read(self) -> None:
        current = self.current
        taken = Snapshot.take(current.snapshot.path) if self.from_disk else current.snapshot
        snapshot = taken.with_paused(self._paused)
        config = current.config if snapshot == current.snapshot else _checked(snapshot)
        if self.from_disk:
            revision = revision_of(self._number, snapshot, config, self._only)
        else:
            revision = replace(current, number=self._number, snapshot=snapshot, config=config)
        if (snapshot, revision.codes) == (current.snapshot, current.codes):
            return
        self.files = current.changed_files(revision)
        if self.files:
            _log.info("source files of topologies on disk are not in force yet", files=self.files)
        self.change = change(current, revision)
        changed = [name for part in self.change.join if (name := topology_of(part.only))]
        check_loaded(snapshot, revision.codes, changed)
        self._prepare(revision)
        self.revision = revision


def _checked(snapshot: Snapshot) -> Config:
    """The configuration of a file, whose warnings go to the log; ConfigurationError for its errors."""
    linted = snapshot.lint()
    if linted.config is None:
        raise ConfigurationError(linted.errors)
    for fault in linted.faults:
        _log.warning("configuration", why=str(fault).partition("\n")[0])
    return linted.config


class _File:
    """Detects that a file has changed and then stayed the same for one look. Follows links."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = self._last = self._look()
        self._looked_at = time.monotonic()

    def has_changed(self) -> bool:
        """Returns True if the file differs from the one at the last reported change, or at the start."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return False
        self._looked_at = time.monotonic()
        before, self._last = self._last, self._look()
        if self._last != before or self._last in (None, self._known):
            return False
        self._known = self._last
        return True

    def _look(self) -> tuple[int, ...] | None:
        try:
            status = self._path.stat()
        except OSError:
            # The file may be being replaced at this moment, and will be there again.
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size
