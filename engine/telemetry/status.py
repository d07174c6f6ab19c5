"""Status reports of the bridge's processes, and the board on which the supervisor collects them.

A child process has a `Reporter`: it writes one JSON line about every second, and at once when its state changes, to a
pipe that the supervisor reads into its `StatusBoard`. The package `supervision` starts, restarts and stops processes.

    {"component": "router", "state": "ready", "detail": "2 routes", "metrics": "<OpenMetrics text>"}
    {"component": "router", "state": "down", "detail": "", "metrics": "…", "error": "one line", "exit_code": 4}

The second form is a process's last line; without `exit_code` the error was not foreseen, and a restart may help.
Between these lines there are answers to questions of the supervisor:

    {"answer": 3, "text": "…"}
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from engine.printable import LONGEST_LINE, shortened
from engine.telemetry.families import ADDED_UP, joined, text_of
from routes.errors import BridgeError
from routes.sections import HELD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import CollectorRegistry

__all__ = [
    "DeadLetterCounts",
    "Latest",
    "Merged",
    "Reporter",
    "State",
    "Status",
    "StatusBoard",
    "component_name",
    "merge",
]

_INTERVAL_SECONDS = 1.0
_log = structlog.get_logger(__name__)
_NOTHING = "# EOF\n"


class State(StrEnum):
    """State of a component."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """The process runs but cannot do its work now: a broker is gone, and the process is trying again."""
    STOPPING = "stopping"
    DOWN = "down"
    """There is no process, or it has sent its last status."""
    PAUSED = "paused"
    """There is no process, since an operator has paused the component."""

    @property
    def is_well(self) -> bool:
        """True if nobody waits for the component: it is ready, or paused on purpose."""
        return self in (State.READY, State.PAUSED)

    @property
    def has_process(self) -> bool:
        """True if figures that the component has measured can still be true."""
        return self not in (State.DOWN, State.PAUSED)


@dataclass(frozen=True, slots=True)
class Status:
    """Latest status of one component."""

    component: str
    state: State
    detail: str = ""
    """Activity of the component, or the thing it waits for: one line, shown to users, free of secrets."""
    metrics: str = ""
    """The component's metrics in OpenMetrics' text format."""
    error: str | None = None
    """Reason why the process ended; for a `BridgeError` the complete text for the user."""
    exit_code: int | None = None
    """Exit code of a `BridgeError`, with which the whole bridge stops; None for any other error."""
    revision: int = 0
    """Number of the configuration in use, as the supervisor counts them; 0 before the process has one."""


def component_name(source: str, worker: int = 1) -> str:
    """Component name of a worker of a source: `source:orders`, `source:orders/2` from the second worker on."""
    return f"source:{source}" if worker == 1 else f"source:{source}/{worker}"


def sink_component(sink: str, worker: int = 1) -> str:
    """Component name of a worker of a sink: `sink:orders`, `sink:orders/2` from the second worker on."""
    return component_name(sink, worker).replace("source:", "sink:", 1)


class StateReceiver(Protocol):
    """Receiver of the state of a process, or of a part of one."""

    def state(self, state: State | str, detail: str = "") -> None:
        """Sets the state; see `Reporter.state`."""


class PartStates:
    """Combines the states of several parts of a process: the process is ready when all parts are."""

    def __init__(self, speaker: StateReceiver) -> None:
        self._speaker = speaker
        self._lock = Lock()
        self._said: list[tuple[State, str]] = []

    def voice(self) -> PartState:
        """Adds a part, in state STARTING, and returns the object through which it reports."""
        with self._lock:
            self._said.append((State.STARTING, ""))
            return PartState(self, len(self._said) - 1)

    def say(self, number: int, state: State, detail: str) -> None:
        """Sets the state of part `number` and reports that of the process: the first part that is not ready decides."""
        with self._lock:
            self._said[number] = state, detail
            worst = next((said for said in self._said if said[0] is not State.READY), None)
            details = ", ".join(detail for _, detail in self._said if detail)
        self._speaker.state(*(worst or (State.READY, details)))


@dataclass(frozen=True, slots=True)
class PartState:
    """Reports the state of one part. Safe from any thread."""

    voices: PartStates
    number: int

    def state(self, state: State | str, detail: str = "") -> None:
        """Sets the state of the part; see `StateReceiver`."""
        self.voices.say(self.number, State(state), detail)


class Reporter:
    """Reports a process's state and metrics to the supervisor. Safe from any thread; close it, or use `with`."""

    registry: CollectorRegistry
    """Registry of the metrics to report: pass it to `RouterMetrics` and the like."""

    def __init__(self, fd: int | None, component: str, registry: CollectorRegistry) -> None:
        """`fd` is the writing end of the pipe, which the reporter closes.

        `fd` is None for a process without a supervisor: its states are only logged.
        """
        self.registry = registry
        self._status = Status(component, State.STARTING)
        self._changed = Condition()
        self._closed = False
        self._answers: list[tuple[int, str]] = []
        self._fd = fd
        self._thread = Thread(target=self._write, name="status", daemon=True)
        self._thread.start()

    def __enter__(self) -> Reporter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def current(self) -> Status:
        """The latest status, without metrics."""
        return self._status

    def state(self, state: State | str, detail: str = "") -> None:
        """Sets the state of the process. `detail` is one line for users; repeating the current state costs nothing.

        Ignored once the process is DOWN.
        """
        with self._changed:
            new = replace(self._status, state=State(state), detail=detail)
            if new == self._status or self._status.state is State.DOWN:
                return
            if new.state is not self._status.state:
                # Under a supervisor, the supervisor tells the user.
                log = _log.info if self._fd is None else _log.debug
                log(new.state.value, component=new.component, **({"detail": detail} if detail else {}))
            self._status = new
            self._changed.notify()

    def works_by(self, revision: int) -> None:
        """Sets the number of the configuration that this process works by."""
        with self._changed:
            self._status = replace(self._status, revision=revision)
            self._changed.notify()

    def answer(self, number: int, text: str) -> None:
        """Sends the answer to a question of the supervisor, which gave it this number."""
        with self._changed:
            self._answers.append((number, text))
            self._changed.notify()

    def error(self, exc: BaseException, *, foreseen: bool = False) -> None:
        """Reports that the process ends because of `exc`; the caller then closes the reporter and exits.

        The text of an error that is neither `foreseen` nor a BridgeError begins with its type.
        """
        code = exc.exit_code if isinstance(exc, BridgeError) else None
        text = _text(exc) if foreseen or code is not None else f"{type(exc).__name__}: {_text(exc)}"
        with self._changed:
            self._status = replace(self._status, state=State.DOWN, detail=text, error=text, exit_code=code)
            self._changed.notify()

    def close(self) -> None:
        """Writes the last state and metrics, then closes the pipe; waits for this for at most 5 s."""
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
                    answers, self._answers = self._answers, []
                for number, text in answers:
                    self._send(fd, {"answer": number, "text": text})
                self._send(fd, asdict(replace(status, metrics=text_of(self.registry))))
                with self._changed:
                    self._changed.wait_for(partial(self._news, status), timeout=_INTERVAL_SECONDS)
        except BrokenPipeError:
            # The supervisor is gone; `supervision.worker` notices that too and ends this process.
            _log.debug("the supervisor no longer reads the status")
        finally:
            os.close(fd)

    @staticmethod
    def _send(fd: int, fields: Mapping[str, object]) -> None:
        line = json.dumps(fields).encode() + b"\n"
        while line:
            line = line[os.write(fd, line) :]

    def _news(self, new: Status) -> bool:
        return self._closed or bool(self._answers) or replace(new, metrics="") != self._status


def _text(exc: BaseException) -> str:
    try:
        return str(exc)
    except Exception:
        # py4j's errors ask their JVM for their text, and the JVM may be gone. The log has the stack.
        return "(no text)"


class StatusBoard:
    """Latest status of every component, with secrets taken out. Safe from any thread."""

    def __init__(self, components: Iterable[str], clean: Callable[[str], str] = str) -> None:
        """`components` are those known at first; `clean` takes secrets out of texts that components report."""
        self._statuses = {name: Status(name, State.DOWN) for name in components}
        self._clean = clean
        self._changed = Condition()
        self._asked = 0
        self._answers: dict[int, str | None] = {}
        """Answers to questions that are waited for, None before they come."""

    def put(self, status: Status) -> None:
        """Stores the status of a component."""
        error = status.error and self._said(status.error)
        with self._changed:
            self._statuses[status.component] = replace(status, detail=self._said(status.detail), error=error)
            self._changed.notify_all()

    def _said(self, text: str) -> str:
        # A text of a broker may be long. It is cut only behind `clean`, which does not know half a secret.
        return shortened(self._clean(text), LONGEST_LINE)

    def down(self, component: str, detail: str) -> None:
        """Marks a component as DOWN; its metrics and the reason it ended are kept."""
        with self._changed:
            self.put(replace(self._statuses[component], state=State.DOWN, detail=detail))

    def paused(self, component: str, detail: str) -> None:
        """Marks a component as PAUSED; its metrics are kept."""
        with self._changed:
            status = replace(self._statuses[component], state=State.PAUSED, detail=detail, error=None, exit_code=None)
            self.put(status)

    def forget(self, component: str) -> None:
        """Removes a component."""
        with self._changed:
            self._statuses.pop(component, None)
            self._changed.notify_all()

    def clean_with(self, clean: Callable[[str], str]) -> None:
        """Replaces the function that takes secrets out of texts."""
        with self._changed:
            self._clean = clean

    def read(self, component: str, fd: int) -> Thread:
        """Starts a thread that reads a child's status lines from `fd`, which it owns, until the stream ends."""
        thread = Thread(target=self._read, args=(component, fd), name=f"status of {component}", daemon=True)
        thread.start()
        return thread

    def get(self, component: str) -> Status:
        """The latest status of a component; KeyError if the component is unknown."""
        with self._changed:
            return self._statuses[component]

    def all(self) -> tuple[Status, ...]:
        """The latest status of every component, in the order in which they start."""
        with self._changed:
            return tuple(self._statuses.values())

    def wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until `condition` holds, for at most `timeout` seconds; returns whether it does.

        `condition` is evaluated again at every change of the board.
        """
        with self._changed:
            return self._changed.wait_for(condition, timeout)

    def question(self) -> int:
        """A number for a question to a process, whose answer is then waited for with `answer`."""
        with self._changed:
            self._asked += 1
            self._answers[self._asked] = None
            return self._asked

    def answer(self, number: int, seconds: float) -> str | None:
        """The answer to the question with this number, which may take so long; None if there is none."""
        self.wait(lambda: self._answers[number] is not None, seconds)
        with self._changed:
            return self._answers.pop(number)

    def _answered(self, number: int, text: str) -> None:
        with self._changed:
            # A late answer has no taker.
            if number in self._answers:
                self._answers[number] = text
                self._changed.notify_all()

    def _read(self, component: str, fd: int) -> None:
        # A child that dies with unread instructions in its socket resets the connection; all that it wrote arrives
        # first.
        with suppress(ConnectionResetError), open(fd, encoding="utf-8") as pipe:
            for line in pipe:
                # A process that is killed while it writes leaves half a line.
                if line.endswith("\n"):
                    fields: dict[str, Any] = json.loads(line)
                    if "answer" in fields:
                        self._answered(fields["answer"], fields["text"])
                        continue
                    self.put(Status(**{**fields, "component": component, "state": State(fields["state"])}))


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest dead letter of a route."""

    time_ms: int
    """Time of the failure, in milliseconds since 1970."""
    reason: str
    detail: str
    """The reason in a sentence."""
    place: str
    """`partition:offset` of the dead letter."""


@dataclass(frozen=True, slots=True)
class DeadLetterCounts:
    """The state of the dead letters at one moment."""

    topic: str
    reachable: bool = False
    """True if Kafka lets the bridge see the topic."""
    trouble: str = ""
    """Reason, in one line, for which the topic is out of reach, or nothing can be counted."""
    open: Mapping[str, int] | None = None
    """Number of open dead letters by reason, without those in quarantine; None: not counted yet."""
    oldest: float | None = None
    """Time of the oldest open dead letter's failure, in seconds since 1970; None if there is none."""
    quarantined: int | None = None
    """Number of open dead letters in quarantine; None: not counted yet."""
    latest: Mapping[str, Latest] = field(default_factory=dict)
    """The newest dead letter of each route, settled or not."""

    @property
    def depth(self) -> int | None:
        """Number of open dead letters without held messages; None: not counted yet."""
        return None if self.open is None else sum(self.open.values()) - self.held

    @property
    def held(self) -> int:
        """Number of messages that are held while their routes are paused; 0 if they are not counted yet."""
        return 0 if self.open is None else self.open.get(HELD, 0)

    def oldest_age(self, now: float) -> float:
        """Returns the age of the oldest open dead letter in seconds at `now` (since 1970); 0 if there is none."""
        return 0.0 if self.oldest is None else max(now - self.oldest, 0.0)


class Merged(Collector):
    """Collector of the metrics of all components on a status board, read anew for each scrape."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board

    def collect(self) -> Iterable[Metric]:
        """The merged families, in the order in which the components name them."""
        return merge(self._board.all())


def merge(statuses: Iterable[Status]) -> list[Metric]:
    """Merges families of the same name.

    Counters and histograms with equal labels are added up; of gauges the last value counts.

    Counters and histograms of a component that is down or paused are kept, because they stay true until it counts
    again; its gauges are dropped, because their measurements are out of date.
    """
    return joined(
        family
        for status in statuses
        for family in _families(status.metrics or _NOTHING)
        if family.type in ADDED_UP or status.state.has_process
    )


def _families(text: str) -> Iterable[Metric]:
    families: Iterable[Metric] = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return families
