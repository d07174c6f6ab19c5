"""Spans of OpenTelemetry, where `tracing.endpoint` asks for them: what sources and sinks see of it.

The library is imported only then, and known to `engine.telemetry.otlp` alone. Which trace a message belongs to is the
business of `engine.trace_context`.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from engine.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.trace_context import Context
    from routes.model import Config

__all__ = ["Operation", "Span", "Tracing", "opened"]

_PACKAGES = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
"""The extra `tracing` of pyproject.toml."""


class Operation(StrEnum):
    """What is done with a message: `messaging.operation.type` of the semantic conventions."""

    RECEIVE = "receive"
    """A span of kind CONSUMER."""
    SEND = "send"
    """A span of kind PRODUCER."""


class Span(Protocol):
    """Something that is being done with one message. One that never ends is never sent."""

    context: Context
    """In which the message goes on; nothing if the environment has switched OpenTelemetry off."""

    def end(self, error: str | None = None) -> None:
        """It is done, or has failed for this kind of reason. Never raises, and never waits."""


class Tracing(Protocol):
    """Makes spans; for any thread."""

    def begin(self, operation: Operation, destination: str, parent: Context, attributes: Mapping[str, str]) -> Span:
        """Begins a span in the trace of `parent`, or in a new one if that is nothing.

        `destination` is for its name: one of few. `attributes` are those of the conventions.
        """


@contextmanager
def opened(config: Config, component: str) -> Iterator[Tracing | None]:
    """What makes the spans of a component (`source:orders`) while the block runs; None without `tracing.endpoint`.

    Raises:
        SetupError: OpenTelemetry is not installed.
    """
    if config.tracing.endpoint is None:
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
    otlp = Otlp(config.tracing, config.bridge_id, component)
    try:
        yield otlp
    finally:
        otlp.close()
