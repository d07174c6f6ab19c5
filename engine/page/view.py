"""Data of the pages: everything that the supervisor knows of its bridge, from memory. Asks no broker.

Rates come from readings of the bridge's metrics, some seconds apart, so that the page needs no Prometheus. A reading
costs as much as a scrape; showing a page costs none.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from engine.telemetry.metrics import (
    CONNECTION_UP,
    DELIVERED,
    FAILED,
    JOURNALED,
    LAG_RECORDS,
    LAG_SECONDS,
    LATENCY_AVERAGE,
    REJECTED,
    RESTARTS,
    ROUTED,
    SINK_LAG,
    SINK_REJECTED,
    TOPOLOGY_LAG,
    TOPOLOGY_RECORDS,
    TOPOLOGY_STATE,
    TOPOLOGY_UNPROCESSED,
    UNROUTED,
)
from engine.telemetry.report import MetricSample, Traffic
from engine.telemetry.status import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client.registry import CollectorRegistry

    from engine.kafka.reader import Position
    from engine.telemetry.http import Standing
    from engine.telemetry.status import DeadLetterCounts, Status, StatusBoard
    from routes.config.snapshot import Snapshot
    from routes.model import Config

__all__ = ["INTERVAL_SECONDS", "Samples", "Tone", "View", "worst"]

INTERVAL_SECONDS = 5.0
_OVER_SECONDS = 15.0
"""Time over which rates are computed: over shorter times they flicker."""
_HISTORY = 60
_READ = frozenset(
    metric.name
    for metric in (
        *(CONNECTION_UP, DELIVERED, FAILED, JOURNALED, LAG_RECORDS, LAG_SECONDS, LATENCY_AVERAGE, REJECTED, RESTARTS),
        *(ROUTED, SINK_LAG, SINK_REJECTED, UNROUTED),
        *(TOPOLOGY_LAG, TOPOLOGY_RECORDS, TOPOLOGY_STATE, TOPOLOGY_UNPROCESSED),
    )
)


class Samples:
    """Takes readings in a thread of its own: `with Samples(registry) as samples:`. Safe from any thread."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._readings: deque[MetricSample] = deque(
            [MetricSample(clock())], maxlen=int(_OVER_SECONDS / INTERVAL_SECONDS) + 1
        )
        self._history: deque[tuple[float, float]] = deque(maxlen=_HISTORY)
        self._failed_at: dict[str, float] = {}
        self._stop = Event()
        self._thread = Thread(target=self._run, name="samples", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(INTERVAL_SECONDS)

    @property
    def traffic(self) -> Traffic:
        """The newest reading, and the one to compare it with."""
        readings = tuple(self._readings)
        return Traffic(readings[0], readings[-1])

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
        step = Traffic(before, reading)
        if before.values:
            self._history.append((step.rate(JOURNALED) or 0.0, step.rate(ROUTED) or 0.0))
            self._failed_at |= {route: time.time() for route, rate in step.rates(FAILED, "route").items() if rate}
            self._readings.append(reading)
        else:
            # The first reading only starts the comparison: values counted before it are no traffic.
            self._readings[-1] = reading

    def _run(self) -> None:
        while not self._stop.is_set():
            self.take()
            self._stop.wait(INTERVAL_SECONDS)


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
    def of(state: State) -> Tone:
        """The tone of a component's state."""
        return _TONES[state]


_TONES = {
    State.READY: Tone.GOOD,
    State.STARTING: Tone.WARN,
    State.STOPPING: Tone.WARN,
    State.DEGRADED: Tone.WARN,
    State.DOWN: Tone.BAD,
}


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
    is_open: Callable[[Position], bool | None] = lambda _: None
    """Returns whether a dead letter is neither replayed nor discarded; None if that is not known."""
    seal: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    """Key with which forms are signed, see `engine.page.forms`."""

    def state_of(self, status: Status) -> tuple[Tone, str]:
        """The tone of a component and its state in a word; in a bridge that stands by, starting is on purpose."""
        if status.state is State.STARTING and self.standing and self.standing.stands_by:
            return Tone.IDLE, "standing by"
        return Tone.of(status.state), str(status.state)


def worst(statuses: Iterable[Status]) -> Status | None:
    """The component in the worst condition; None if there is no component."""
    order = (Tone.BAD, Tone.WARN, Tone.IDLE, Tone.GOOD)
    return min(statuses, key=lambda status: order.index(Tone.of(status.state)), default=None)
