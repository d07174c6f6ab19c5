"""Data of the pages: everything that the supervisor knows of its bridge, from memory. Asks no broker.

Rates come from readings of the bridge's metrics, some seconds apart, so that the page needs no Prometheus. A reading
costs as much as a scrape; showing a page costs none.
"""

from __future__ import annotations

import re
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from engine.background import BackgroundTask
from engine.looks.log import LookLog
from engine.page.day import DayFigures
from engine.telemetry.amounts import duration
from engine.telemetry.metrics import (
    CONNECTION_UP,
    DELIVERED,
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    PROCESS_CPU,
    REJECTED,
    RESTARTS,
    ROUTED,
    SINK_LAG,
    SINK_REJECTED,
    SOURCE_WAITING,
    TOPOLOGY_LAG,
    TOPOLOGY_RECORDS,
    TOPOLOGY_STATE,
    TOPOLOGY_UNPROCESSED,
    UNMATCHED_BY_ADDRESS,
    UNROUTED,
)
from engine.telemetry.peers import STANDING_BY, UNREACHABLE
from engine.telemetry.report import MetricSample, Traffic
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client.registry import CollectorRegistry

    from engine.dead_letters.state import LetterState
    from engine.kafka.reader import Position
    from engine.telemetry.control import Controlled
    from engine.telemetry.http import Standing
    from engine.telemetry.report import PeerReport
    from engine.telemetry.status import DeadLetterCounts, Status, StatusBoard
    from engine.topologies.question import StateAnswer, StateQuestion
    from routes.config.snapshot import Snapshot
    from routes.model import Config

__all__ = [
    "FAILED_OF",
    "IN",
    "INTERVAL_SECONDS",
    "LATENCY",
    "NO_PARTS",
    "ROUTED_BY",
    "WAITING",
    "Samples",
    "ShownPart",
    "Tone",
    "View",
    "state_of",
    "worst",
]

INTERVAL_SECONDS = 5.0
_OVER_SECONDS = 15.0
"""Time over which rates are computed: over shorter times they flicker."""
_HISTORY = 60
IN, LATENCY, WAITING = "in", "latency", "waiting"
"""Names of figures of the last day: messages per second into the journal, seconds, and messages."""
ROUTED_BY, FAILED_OF = "routed ", "failed "
"""Beginnings of such names, before that of a route: messages per second."""
NO_PARTS = "parts not known"
"""Stands for the parts of a host that has never answered."""
_READ = frozenset(
    metric.name
    for metric in (
        *(CONNECTION_UP, DELIVERED, FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, LATENCY_AVERAGE, REJECTED, RESTARTS),
        *(PROCESS_CPU, ROUTED, SINK_LAG, SINK_REJECTED, SOURCE_WAITING, UNMATCHED_BY_ADDRESS, UNROUTED),
        *(TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_STATE, TOPOLOGY_UNPROCESSED),
    )
)


class Samples(BackgroundTask):
    """Takes readings in a thread of its own: `with Samples(registry) as samples:`. Safe from any thread."""

    def __init__(
        self,
        registry: CollectorRegistry,
        clock: Callable[[], float] = time.monotonic,
        peers: Callable[[], tuple[Traffic, ...]] = tuple,
    ) -> None:
        """`clock` returns monotonic seconds; `peers` returns the readings of the bridge's other hosts."""
        super().__init__("samples", INTERVAL_SECONDS)
        self._registry = registry
        self._clock = clock
        self._peers = peers
        self._readings: deque[MetricSample] = deque(
            [MetricSample(clock())], maxlen=int(_OVER_SECONDS / INTERVAL_SECONDS) + 1
        )
        self._history: deque[tuple[float, float]] = deque(maxlen=_HISTORY)
        self._failed_at: dict[str, float] = {}
        self.day = DayFigures()

    @property
    def traffic(self) -> Traffic:
        """The newest reading, and the one to compare it with, beside those of peers."""
        readings = tuple(self._readings)
        return Traffic(readings[0], readings[-1], self._peers())

    @property
    def history(self) -> tuple[tuple[float, float], ...]:
        """Messages per second into the journal and through routes, one pair for each reading, oldest first."""
        return tuple(self._history)

    @property
    def failed_at(self) -> Mapping[str, float]:
        """By route, the time of the last failure that this process has seen, in seconds since 1970."""
        return dict(self._failed_at)

    def take(self) -> None:
        """Takes a reading."""
        before = self._readings[-1]
        reading = MetricSample.of(self._clock(), self._registry.collect(), _READ)
        step = Traffic(before, reading, self._peers())
        if before.values:
            self._history.append((step.rate(JOURNALED) or 0.0, step.rate(ROUTED) or 0.0))
            self._failed_at |= {route: time.time() for route, rate in step.rates(FAILED, "route").items() if rate}
            self._readings.append(reading)
            self.day.add(time.time(), dict(_figures(step)))
        else:
            # The first reading only starts the comparison: values counted before it are not traffic.
            self._readings[-1] = reading

    def run(self) -> None:
        """Takes a reading at each interval."""
        while not self._stop.is_set():
            self.take()
            self._stop.wait(INTERVAL_SECONDS)


def _figures(step: Traffic) -> Iterator[tuple[str, float | None]]:
    """Figures of the last day by their names, from two readings."""
    yield IN, step.rate(JOURNALED)
    yield LATENCY, step.total(LATENCY_AVERAGE)
    yield WAITING, step.total(LAG_RECORDS)
    for prefix, metric in ((ROUTED_BY, ROUTED), (FAILED_OF, FAILED)):
        for route, rate in step.rates(metric, "route").items():
            yield prefix + route, rate


class Tone(StrEnum):
    """Condition of a component, route or line, shown as a colour, but never by colour alone."""

    GOOD = "good"
    IDLE = "idle"
    WARN = "warn"
    BAD = "bad"

    @property
    def mark(self) -> str:
        """The sign that means the same as the colour."""
        return {"good": "✓", "idle": "·", "warn": "!", "bad": "✗"}[self]

    @staticmethod
    def of(state: str) -> Tone:
        """The tone of a component's state; a peer of another version may have states not known here."""
        return _TONES.get(state, Tone.WARN)


_TONES: Mapping[str, Tone] = {
    State.READY: Tone.GOOD,
    State.STARTING: Tone.WARN,
    State.STOPPING: Tone.WARN,
    State.DEGRADED: Tone.BAD,
    State.DOWN: Tone.BAD,
    State.PAUSED: Tone.WARN,
    STANDING_BY: Tone.IDLE,
    UNREACHABLE: Tone.BAD,
}


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of the bridge as the pages show it."""

    name: str
    host: str
    """Address of the peer on which it runs; empty for this host."""
    tone: Tone
    state: str
    """State in a word or two."""
    detail: str
    restarts: float | None
    """Number of restarts; None if unknown."""


@dataclass(frozen=True, slots=True)
class View:
    """Data that the pages show of a bridge. Safe from any thread."""

    board: StatusBoard
    samples: Samples
    config: Callable[[], Config]
    """Returns the configuration in force."""
    snapshot: Callable[[], Snapshot]
    """Returns the properties file as it was when the configuration in force was read from it."""
    reload: Callable[[], Mapping[str, object]] = dict
    """Returns the field `configuration` of `/ready`: the configuration in force and the result of the last reload."""
    standing: Standing | None = None
    """The bridge's place in its election; None if it takes part in none."""
    census: Callable[[], DeadLetterCounts | None] = lambda: None
    """Returns the latest count of dead letters; None if there is none."""
    state_of_letter: Callable[[Position], LetterState | None] = lambda _: None
    """Returns the state of a dead letter; None if it is not known."""
    peers: Callable[[], tuple[PeerReport, ...]] | None = None
    """Returns the latest state of the bridge's other hosts; None if it has none."""
    ask: Callable[[str, StateQuestion, float], StateAnswer | None] = lambda *_: None
    """Asks a topology of this host for its state; None if it does not run or does not answer in so many seconds."""
    control: Controlled | None = None
    """Takes requests to pause and resume parts; None if there is nobody to take them."""
    looks: LookLog = field(default_factory=LookLog, repr=False)
    """Writer of the audit of looks."""
    actions: LookLog = field(default_factory=LookLog, repr=False)
    """Writer of the audit of actions."""
    seal: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Key with which forms are signed, see `engine.page.forms`."""

    def parts(self) -> tuple[ShownPart, ...]:
        """The parts of the bridge on this host, in the order in which they start, then those on its peers."""
        # Restarts are of this host alone, also where a peer runs a part of the same name.
        restarts = self.samples.traffic.now.by(RESTARTS, "component")
        own = [
            ShownPart(
                each.component, "", *self._state_of(each), each.error or each.detail, restarts.get(each.component, 0.0)
            )
            for each in self.board.all()
        ]
        return (*own, *(part for peer in (self.peers() if self.peers else ()) for part in _parts_of(peer)))

    def _state_of(self, status: Status) -> tuple[Tone, str]:
        """The tone of a component and its state in a word; in a bridge that stands by, starting is on purpose."""
        if status.state is State.STARTING and self.standing and self.standing.stands_by:
            return Tone.IDLE, STANDING_BY
        return Tone.of(status.state), str(status.state)


def _parts_of(peer: PeerReport) -> Iterator[ShownPart]:
    silence = f"no answer for {duration(peer.silent_seconds)}: {peer.trouble}"
    for part in peer.parts:
        if peer.reachable:
            yield ShownPart(part.component, peer.address, Tone.of(part.state), part.state, part.detail, part.restarts)
        else:
            yield ShownPart(part.component, peer.address, Tone.of(part.state), part.state, silence, None)
    if not peer.parts:
        yield ShownPart(NO_PARTS, peer.address, Tone.BAD, UNREACHABLE, silence, None)


def worst(parts: Iterable[ShownPart]) -> ShownPart | None:
    """The part in the worst condition, before those that stand by; None if there is no part."""
    order = (Tone.BAD, Tone.WARN, Tone.GOOD, Tone.IDLE)
    return min(parts, key=lambda part: order.index(part.tone), default=None)


def state_of(component: str, parts: Iterable[ShownPart]) -> tuple[Tone, str, str]:
    """Tone, state and detail of a source or sink: those of its worker in the worst condition."""
    found = worst(part for part in parts if re.fullmatch(re.escape(component) + "(/[0-9]+)?", part.name))
    if found is None:
        return Tone.IDLE, "elsewhere", "it runs apart from this bridge"
    return found.tone, found.state, found.detail
