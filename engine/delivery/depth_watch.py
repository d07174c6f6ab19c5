"""Watch of a source's depth: asks its system at intervals how many messages wait, and reports number or reason.

It runs on a thread of its own beside the loop of the source's first worker, since one answer is that of all workers.
The state of the worker goes through the watch, which adds the reason if the number is not known.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from engine.background import BackgroundTask
from engine.connectors.base import NotConnectedError
from engine.connectors.depth import NotSaidError, UnsaidDepth
from engine.telemetry.status import State
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.depth import Depth
    from engine.telemetry.meters import SourceMetrics
    from engine.telemetry.status import StateReceiver

__all__ = ["DepthWatch"]

_INTERVAL_SECONDS = 10.0
_MOST_SECONDS = 300.0
"""Longest wait before the next question to a system that does not answer."""
_SHARE = 0.05
"""Largest share of the time that answered questions may take."""
_FAREWELL_SECONDS = 2.0
_log = structlog.get_logger(__name__)


class DepthWatch(BackgroundTask):
    """Questions for a depth at intervals. Takes states as `StateReceiver` from any thread."""

    def __init__(
        self,
        make: Callable[[], Depth],
        source: str,
        metrics: SourceMetrics,
        status: StateReceiver,
        interval_seconds: float = _INTERVAL_SECONDS,
    ) -> None:
        """`make` makes the depth, on the watch's thread; `interval_seconds` is the time between two questions."""
        # A question that is under way has a bound of its own; the process need not wait for it.
        super().__init__(f"depth of {source}", _FAREWELL_SECONDS)
        self._make = make
        self._source = source
        self._metrics = metrics
        self._status = status
        self._interval = interval_seconds
        self._lock = Lock()
        self._state: tuple[State, str] | None = None
        self._reason = ""

    def state(self, state: State | str, detail: str = "") -> None:
        """Passes the state of the worker on, with the reason why the number of waiting messages is not known."""
        with self._lock:
            self._state = State(state), detail
            self._tell()

    def _tell(self) -> None:
        if self._state is None:
            return
        state, detail = self._state
        if state is State.READY and self._reason:
            detail = f"{detail}; waiting messages not known: {self._reason}"
        self._status.state(state, detail)

    def run(self) -> None:
        """Asks at each interval; after errors, and after slow answers, less often."""
        depth: Depth | None = None
        wait = self._interval
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                depth = depth or self._make()
                self._found(depth.ask(), "")
                wait = max(self._interval, (time.monotonic() - began) / _SHARE)
            except (NotSaidError, NotConnectedError, BridgeError) as error:
                self._found(None, str(error))
                if isinstance(depth, UnsaidDepth):
                    return
                wait = min(wait * 2, _MOST_SECONDS)
            except Exception as error:
                # The number is not worth a failure of the source.
                _log.exception("the question for waiting messages failed", source=self._source)
                self._found(None, f"{type(error).__name__}: {error}")
                wait = _MOST_SECONDS
            if self._reason and depth is not None:
                depth.close()
            self._stop.wait(wait)
        if depth is not None:
            depth.close()

    def _found(self, messages: int | None, reason: str) -> None:
        self._metrics.waiting(messages)
        if reason == self._reason:
            return
        if reason:
            _log.info("the number of waiting messages is not known", source=self._source, why=reason)
        else:
            _log.info("the number of waiting messages is known again", source=self._source)
        with self._lock:
            self._reason = reason
            self._tell()
