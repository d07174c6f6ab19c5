"""What the processes of a bridge say about themselves, and the board on which the supervisor collects it.

A child has a `Reporter`: it writes one JSON line about every second, and at once when its state changes, to a pipe that
the supervisor reads into its `StatusBoard`. Who starts, restarts and stops processes is `supervisor`.

    {"component": "router", "state": "ready", "detail": "2 routes", "metrics": "<OpenMetrics text>"}
    {"component": "router", "state": "down", "detail": "", "metrics": "…", "error": "one line", "exit_code": 4}

The second form is a process's last line; without `exit_code` the error was not foreseen, and a restart may help.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from engine.telemetry.families import text_of
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client.registry import CollectorRegistry

__all__ = ["Reporter", "State", "Status", "StatusBoard", "component_name"]

_INTERVAL_SECONDS = 1.0
_log = structlog.get_logger(__name__)


class State(StrEnum):
    """How a component is."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """It runs but cannot do its work now: a broker is gone and it is trying again."""
    STOPPING = "stopping"
    DOWN = "down"
    """No process, or one that has said its last."""


@dataclass(frozen=True, slots=True)
class Status:
    """One component's latest word."""

    component: str
    state: State
    detail: str = ""
    """What it waits for, or what it does; one line, shown to users, free of secrets."""
    metrics: str = ""
    """Its figures in OpenMetrics' text format."""
    error: str | None = None
    """Why it ended; for a `BridgeError` the complete text for the user."""
    exit_code: int | None = None
    """Of a `BridgeError`: the whole bridge stops with it."""
    revision: int = 0
    """Number of the configuration that it works by, as its supervisor counts; 0 before it has one."""


def component_name(source: str, worker: int = 1) -> str:
    """How a worker of a source is called: `source:orders`, `source:orders/2` from the second on."""
    return f"source:{source}" if worker == 1 else f"source:{source}/{worker}"


def sink_component(sink: str, worker: int = 1) -> str:
    """The same for a worker of a sink: `sink:orders`, `sink:orders/2`."""
    return component_name(sink, worker).replace("source:", "sink:", 1)


class Speaker(Protocol):
    """Whoever can say how things are."""

    def state(self, state: State | str, detail: str = "") -> None:
        """From now on it is in that state; see `Reporter.state`."""


class Voices:
    """Several parts of one process that say how they are: it is ready when all of them are."""

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker
        self._lock = Lock()
        self._said: list[tuple[State, str]] = []

    def voice(self) -> Voice:
        """For one more part, which is starting."""
        with self._lock:
            self._said.append((State.STARTING, ""))
            return Voice(self, len(self._said) - 1)

    def say(self, number: int, state: State, detail: str) -> None:
        """What part `number` says; the first one that is not ready is heard."""
        with self._lock:
            self._said[number] = state, detail
            worst = next((said for said in self._said if said[0] is not State.READY), None)
            details = ", ".join(detail for _, detail in self._said if detail)
        self._speaker.state(*(worst or (State.READY, details)))


@dataclass(frozen=True, slots=True)
class Voice:
    """One part's; safe from any thread."""

    voices: Voices
    number: int

    def state(self, state: State | str, detail: str = "") -> None:
        """See `Speaker`."""
        self.voices.say(self.number, State(state), detail)


class Reporter:
    """A process's mouth: tells the supervisor its state and figures. Safe from any thread; close it, or use `with`."""

    registry: CollectorRegistry
    """Where the figures are taken from: make `RouterMetrics` and the like on it."""

    def __init__(self, fd: int | None, component: str, registry: CollectorRegistry) -> None:
        """`fd` is the pipe's writing end, owned from here on; None without a supervisor: states are only logged."""
        self.registry = registry
        self._status = Status(component, State.STARTING)
        self._changed = Condition()
        self._closed = False
        self._fd = fd
        self._thread = Thread(target=self._write, name="status", daemon=True)
        self._thread.start()

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def current(self) -> Status:
        """What was said last, without figures."""
        return self._status

    def state(self, state: State | str, detail: str = "") -> None:
        """From now on the process is in that state. `detail` is one line for users; saying the same again is free."""
        with self._changed:
            told = replace(self._status, state=State(state), detail=detail)
            if told == self._status or self._status.state is State.DOWN:
                return
            if told.state is not self._status.state:
                # Under a supervisor it is the supervisor who tells the user.
                tell = _log.info if self._fd is None else _log.debug
                tell(told.state.value, component=told.component, **({"detail": detail} if detail else {}))
            self._status = told
            self._changed.notify()

    def works_by(self, revision: int) -> None:
        """Which configuration is in force here from now on."""
        with self._changed:
            self._status = replace(self._status, revision=revision)
            self._changed.notify()

    def error(self, exc: BaseException, *, foreseen: bool = False) -> None:
        """The process ends because of `exc`; the caller then closes the reporter and exits.

        What is neither `foreseen` nor a BridgeError is told with its type.
        """
        code = exc.exit_code if isinstance(exc, BridgeError) else None
        text = _text(exc) if foreseen or code is not None else f"{type(exc).__name__}: {_text(exc)}"
        with self._changed:
            self._status = replace(self._status, state=State.DOWN, detail=text, error=text, exit_code=code)
            self._changed.notify()

    def close(self) -> None:
        """The last state and figures are written, then the pipe closes."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=5)

    def _write(self) -> None:
        if (fd := self._fd) is None:
            return
        closed = False
        try:
            while not closed:
                with self._changed:
                    status, closed = self._status, self._closed
                self._send(fd, replace(status, metrics=text_of(self.registry)))
                with self._changed:
                    self._changed.wait_for(partial(self._news, status), timeout=_INTERVAL_SECONDS)
        except BrokenPipeError:
            # The supervisor is gone; `worker` notices the same and ends this process.
            _log.debug("nobody reads the status any more")
        finally:
            os.close(fd)

    @staticmethod
    def _send(fd: int, status: Status) -> None:
        line = json.dumps(asdict(status)).encode() + b"\n"
        while line:
            line = line[os.write(fd, line) :]

    def _news(self, told: Status) -> bool:
        return self._closed or replace(told, metrics="") != self._status


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:
        # py4j's errors ask their JVM for their text, which may be gone. The log has the stack.
        return "(no text)"


class StatusBoard:
    """The latest status of every component. Safe from any thread."""

    def __init__(self, components: Iterable[str], clean: Callable[[str], str] = str) -> None:
        """`components` is all there are at first; `clean` takes secrets out of what they say."""
        self._statuses = {name: Status(name, State.DOWN) for name in components}
        self._clean = clean
        self._changed = Condition()

    def put(self, status: Status) -> None:
        """What is known of a component from now on."""
        error = status.error and self._clean(status.error)
        with self._changed:
            self._statuses[status.component] = replace(status, detail=self._clean(status.detail), error=error)
            self._changed.notify_all()

    def down(self, component: str, detail: str) -> None:
        """A component's process is gone; what it counted and why it ended stay known."""
        with self._changed:
            self.put(replace(self._statuses[component], state=State.DOWN, detail=detail))

    def forget(self, component: str) -> None:
        """A component that there is no more."""
        with self._changed:
            self._statuses.pop(component, None)
            self._changed.notify_all()

    def clean_with(self, clean: Callable[[str], str]) -> None:
        """What takes secrets out from now on."""
        with self._changed:
            self._clean = clean

    def read(self, component: str, fd: int) -> Thread:
        """Take the lines from a child's pipe in a thread of its own, which owns `fd` and ends with the pipe."""
        thread = Thread(target=self._read, args=(component, fd), name=f"status of {component}", daemon=True)
        thread.start()
        return thread

    def get(self, component: str) -> Status:
        """A component's latest word."""
        with self._changed:
            return self._statuses[component]

    def all(self) -> tuple[Status, ...]:
        """Every component's latest word, in the order in which they start."""
        with self._changed:
            return tuple(self._statuses.values())

    def wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Whether `condition` came true within `timeout` seconds; it is asked again at every change."""
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def _read(self, component: str, fd: int) -> None:
        # One that died without reading what it was told last has its end told like this, after all that it said.
        with suppress(ConnectionResetError), open(fd, encoding="utf-8") as pipe:
            for line in pipe:
                # A process that was killed while it wrote leaves half a line.
                if line.endswith("\n"):
                    fields: dict[str, Any] = json.loads(line)
                    self.put(Status(**{**fields, "component": component, "state": State(fields["state"])}))
