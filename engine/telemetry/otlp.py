"""OpenTelemetry's SDK as the implementation of `engine.telemetry.tracing`: spans go out in batches over HTTP.

A thread of the SDK sends them, so no message waits: spans that the endpoint does not take in time are dropped, and the
log says so now and then. Settings without a key of the bridge, such as headers for a login or the size of batches, come
from the environment (`OTEL_…`).
"""

from __future__ import annotations

import logging
import os
import time
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

import structlog
from opentelemetry.context import Context as SpanContext
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.trace_context import Context
    from engine.tracing_section import TracingConfig

__all__ = ["Otlp"]

_SERVICE = "jms-bridge"
_CLOSE_SECONDS = 3.0
_GIVE_UP_SECONDS = 1.0
_LOG_SECONDS = 300.0
_KINDS = {"receive": SpanKind.CONSUMER, "send": SpanKind.PRODUCER}
"""Kind of span by operation, see `engine.telemetry.tracing.Operation`."""
_log = structlog.get_logger(__name__)


class Otlp:
    """Factory of spans; see `Tracing`."""

    def __init__(self, tracing: TracingConfig, bridge_id: str, component: str, exporter: Any = None) -> None:
        """`exporter` is for tests; the default one sends spans to the endpoint."""
        assert tracing.endpoint is not None, "who calls this has an endpoint"
        resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME", _SERVICE),
                "service.instance.id": f"{bridge_id}/{component}",
            }
        )
        sampler = ParentBased(TraceIdRatioBased(tracing.sample_ratio))
        self._provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        self._exporter = _Told(exporter or OTLPSpanExporter(tracing.endpoint), tracing.endpoint)
        self._provider.add_span_processor(BatchSpanProcessor(cast("Any", self._exporter)))
        self._tracer = self._provider.get_tracer(_SERVICE)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, operation: str, destination: str, parent: Context, attributes: Mapping[str, str]) -> _SdkSpan:
        """Begins a span; see `Tracing.begin`."""
        operation_fields = {"messaging.operation.name": str(operation), "messaging.operation.type": str(operation)}
        span = self._tracer.start_span(
            f"{operation} {destination}",
            self._propagator.extract(parent, SpanContext()),
            kind=_KINDS[operation],
            attributes=operation_fields | dict(attributes),
        )
        context: dict[str, str] = {}
        self._propagator.inject(context, set_span_in_context(span, SpanContext()))
        return _SdkSpan(span, context)

    def close(self) -> None:
        """Sends the remaining spans; returns after at most four seconds."""
        # The SDK's own shutdown waits for half a minute while the exporter tries again and again.
        closing = Thread(target=self._provider.shutdown, name="spans", daemon=True)
        closing.start()
        closing.join(_CLOSE_SECONDS)
        if closing.is_alive():
            self._exporter.shutdown()
            closing.join(_GIVE_UP_SECONDS)


class _SdkSpan:
    """A span; see `engine.telemetry.tracing.Span`."""

    __slots__ = ("_span", "context")

    def __init__(self, span: Any, context: Context) -> None:
        self._span = span
        self.context = context

    def end(self, error: str | None = None) -> None:
        if error is not None:
            self._span.set_attribute("error.type", error)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class _Told:
    """Exporter that logs the failures of another exporter, in one line every five minutes at most."""

    def __init__(self, exporter: Any, endpoint: str) -> None:
        self._exporter = exporter
        self._endpoint = endpoint
        self._words = _Words()
        self._lost = 0
        self._log_at = 0.0

    def export(self, spans: Sequence[object]) -> SpanExportResult:
        try:
            result: SpanExportResult = self._exporter.export(spans)
        except Exception as error:
            self._words.last = str(error)
            result = SpanExportResult.FAILURE
        if result is not SpanExportResult.SUCCESS:
            self._lost += len(spans)
            self._log_losses()
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))

    def _log_losses(self) -> None:
        now = time.monotonic()
        if now >= self._log_at:
            _log.warning("spans are lost", where=self._endpoint, spans=self._lost, why=self._words.last)
            self._lost, self._log_at = 0, now + _LOG_SECONDS


class _Words(logging.Handler):
    """Log handler that keeps OpenTelemetry's lines, of which each failed batch makes several, out of the log.

    Only the last line is kept, as the reason of a failure.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.last = ""
        logger = logging.getLogger("opentelemetry")
        logger.propagate = False
        logger.handlers = [self]

    def emit(self, record: logging.LogRecord) -> None:
        self.last = record.getMessage()
