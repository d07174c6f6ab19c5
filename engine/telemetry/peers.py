"""Watch over the other hosts of a bridge, so that the status page of one host shows the parts of all.

Each peer is asked over HTTP, in a thread of its own, every few seconds, for its public pages: `/metrics` and
`/ready`. Both are about its own parts only, so peers that ask each other cause no further requests.

All hosts may have the same list of peers: a bridge knows its own answer by the id in it, and leaves it out.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import structlog

from engine.errors import UnreachableError
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.report import MetricSample, PeerReport, Traffic, look
from engine.telemetry.status import State
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.telemetry.report import Report
    from routes.keys.addresses import Peer

__all__ = ["STANDING_BY", "UNREACHABLE", "Peers"]

STANDING_BY = "standing by"
"""State of a part that is started and waits for its bridge to lead."""
UNREACHABLE = "unreachable"
"""State of a part whose host does not answer."""

_INTERVAL_SECONDS = 3.0
_FRESH_SECONDS = 5.0
"""Age of an answer from which on its figures are not shown any more."""
_OVER_SECONDS = 15.0
"""Time over which rates are computed."""
_log = structlog.get_logger(__name__)


class Peers:
    """The peers of a bridge: `with Peers(bridge_id, http) as peers:`. Safe from any thread."""

    def __init__(self, bridge_id: str, http: HttpConfig, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self.instance = uuid4().hex
        """Id of this supervisor, by which it recognises itself in the list of peers."""
        self._watched = [_WatchedPeer(bridge_id, http, peer, self.instance, clock) for peer in http.peers]
        self._ends = Event()

    def __enter__(self) -> Self:
        for peer in self._watched:
            Thread(target=self._run, args=(peer,), name=f"peer {peer.address}", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # The threads are not waited for: one may be waiting for a host that is gone.
        self._ends.set()

    def ask(self) -> None:
        """Asks every peer once, one after the other."""
        for peer in self._watched:
            peer.ask()

    def reports(self) -> tuple[PeerReport, ...]:
        """The latest state of each peer, in the order of the configuration."""
        return tuple(peer.report() for peer in self._watched if not peer.is_self)

    def traffic(self) -> tuple[Traffic, ...]:
        """The readings of the metrics of each peer that answers."""
        return tuple(peer.traffic() for peer in self._watched if not peer.is_self and peer.is_fresh)

    def _run(self, peer: _WatchedPeer) -> None:
        while not peer.is_self and not self._ends.is_set():
            peer.ask()
            self._ends.wait(_INTERVAL_SECONDS)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Knowledge of a peer at one moment."""

    at: float
    """Time of its last answer, or of the first question."""
    answer: Report | None = None
    trouble: str = ""
    """Reason for which the last question had no answer; empty if it had one."""


class _WatchedPeer:
    """A peer, with its last answer and the readings of its metrics."""

    def __init__(self, bridge_id: str, http: HttpConfig, peer: Peer, instance: str, clock: Callable[[], float]) -> None:
        self.address = str(peer)
        self.is_self = False
        self._bridge_id = bridge_id
        self._http = http
        self._peer = peer
        self._instance = instance
        self._clock = clock
        self._seen = _Seen(clock())
        self._readings: deque[MetricSample] = deque(maxlen=round(_OVER_SECONDS / _INTERVAL_SECONDS) + 1)

    @property
    def is_fresh(self) -> bool:
        return self._seen.answer is not None and self._clock() - self._seen.at < _FRESH_SECONDS

    def ask(self) -> None:
        """Asks the peer, and notes its answer or why there is none."""
        asked_at = self._clock()
        before = self._readings[0] if self._readings else MetricSample(asked_at)
        try:
            report, reading = look(self._bridge_id, self._http, before, self._peer)
            if report.bridge != self._bridge_id:
                msg = f"the bridge at {report.url} has the id '{report.bridge}'; http.peers names hosts of one bridge"
                raise UnreachableError(msg)
        except BridgeError as error:
            self._fail(str(error))
        except Exception as error:
            # The answer of a foreign program must not end the watch.
            trouble = f"its answer cannot be read: {type(error).__name__}: {error}"
            if trouble != self._seen.trouble:
                _log.exception("the answer of a peer cannot be read", peer=self.address)
            self._fail(trouble)
        else:
            self.is_self = report.instance == self._instance
            self._readings.append(reading)
            self._seen = _Seen(asked_at, report)

    def report(self) -> PeerReport:
        seen, is_fresh = self._seen, self.is_fresh
        silent = max(self._clock() - seen.at, 0.0)
        if seen.answer is None or not is_fresh:
            trouble = seen.trouble or "it has not answered yet"
            parts = seen.answer.parts if seen.answer else ()
            gone = tuple(
                replace(part, state=UNREACHABLE, detail="", rate=None, lag=None, restarts=0.0, cpu=None, memory=None)
                for part in parts
            )
            return PeerReport(self.address, False, silent, trouble, False, gone)
        ready = seen.answer.ready or seen.answer.stands_by
        shown = seen.answer.parts
        if seen.answer.stands_by:
            shown = tuple(replace(p, state=STANDING_BY) if p.state == State.STARTING else p for p in shown)
        return PeerReport(self.address, True, silent, "", ready, shown)

    def traffic(self) -> Traffic:
        readings = tuple(self._readings)
        return Traffic(readings[0], readings[-1])

    def _fail(self, trouble: str) -> None:
        self._seen = replace(self._seen, trouble=trouble)
