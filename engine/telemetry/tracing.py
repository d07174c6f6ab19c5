"""Interface through which sources and sinks make OpenTelemetry spans, if `tracing.endpoint` is set.

OpenTelemetry is imported only then, and only by `engine.telemetry.otlp`. `engine.trace_context` says which trace a
message belongs to.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from engine.errors import SetupError
from engine.tracing_section import TracingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.trace_context import Context

__all__ = ["Operation", "Span", "Tracing", "opened"]

_PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
"""Packages of the extra `tracing` in pyproject.toml."""


class Operation(StrEnum):
    """Operation on a message: `messaging.operation.type` of OpenTelemetry's semantic conventions."""

    RECEIVE = "receive"
    """Taking a message from a broker: a span of kind CONSUMER."""
    SEND = "send"
    """Giving a message to a system: a span of kind PRODUCER."""


class Span(Protocol):
    """An operation on one message, from its begin to its end. A span that never ends is never sent."""

    context: Context
    """Trace context that the message carries on; empty if the environment has switched OpenTelemetry off."""

    def end(self, error: str | None = None) -> None:
        """Ends the span; `error` is the kind of failure, if the operation failed. Never raises or blocks."""


class Tracing(Protocol):
    """Factory of spans. Safe from any thread."""

    def begin(self, operation: Operation, destination: str, parent: Context, attributes: Mapping[str, str]) -> Span:
        """Begins a span in the trace of `parent`, or in a new trace if `parent` is empty.

        `destination` becomes part of the span's name, so it must be one of few. `attributes` are named as in the
        semantic conventions.
        """


@contextmanager
def opened(settings: TracingConfig, bridge_id: str, component: str) -> Iterator[Tracing | None]:
    """Yields the factory of a component's spans and closes it afterwards; yields None without `tracing.endpoint`.

    `component` is a name such as `source:orders`.
    """
    if settings.endpoint is None:
        yield None
        return
    try:
        from engine.telemetry.otlp import Otlp
    except ModuleNotFoundError as error:
        msg = (
            f"tracing.endpoint needs OpenTelemetry, and there is no module '{error.name}': "
            f"pip install {' '.join(_PACKAGES)}, or remove tracing.endpoint"
        )
        raise SetupError(msg) from error
    otlp = Otlp(settings, bridge_id, component)
    try:
        yield otlp
    finally:
        otlp.close()
