"""Receiver of replies for a sink: a source of its own, in a thread of the sink's process."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.delivery.replies import ReplySource, listener
from engine.delivery.source_loop import SourceLoop, SourceWorker
from engine.delivery.spans import SourceSpans
from engine.telemetry.meters import SourceMetrics
from engine.telemetry.status import State, component_name

if TYPE_CHECKING:
    from prometheus_client.registry import CollectorRegistry

    from engine.delivery.replies import Requests
    from engine.telemetry.status import PartState
    from engine.telemetry.tracing import Tracing
    from routes.model import Config, SinkConfig

__all__ = ["ReplyReceiver"]

_LEAVE_SECONDS = 15.0


class ReplyReceiver:
    """Receiver of replies in a thread of its own, which runs for the duration of the `with` block.

    Does nothing if the sink has no `reply-to`.
    """

    def __init__(
        self,
        config: Config,
        sink: SinkConfig,
        requests: Requests,
        registry: CollectorRegistry,
        status: PartState,
        tracing: Tracing | None = None,
        *,
        is_first: bool = True,
    ) -> None:
        """Creates the receiver, without a connection; `is_first` is that of `Connecting`."""
        self._stop = Event()
        self._error: BaseException | None = None
        self._thread: Thread | None = None
        if requests.reply_to is None:
            status.state(State.READY, "")
            return
        own = listener(sink, requests.reply_to)
        source = ReplySource(connector(sink.type).make_replies(SystemEndpoint.of(config, own), 1), sink, requests)
        metrics = SourceMetrics(registry, own.name, component_name(own.name))
        worker = SourceWorker(own.name, requests.worker, sink.workers)
        spans = None if tracing is None else SourceSpans(tracing, own)
        loop = SourceLoop(config, worker, source, metrics, status, spans, is_first=is_first)
        self._thread = Thread(target=self._run, args=(loop,), name="replies", daemon=True)

    def __enter__(self) -> ReplyReceiver:
        if self._thread:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join(_LEAVE_SECONDS)

    def check(self) -> None:
        """Raises the error that ended the thread, if any."""
        if self._error:
            raise self._error

    def _run(self, loop: SourceLoop) -> None:
        try:
            loop.run(self._stop)
        except BaseException as error:
            self._error = error
