"""Section `tracing` of a configuration: the traces of OpenTelemetry that messages belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from routes.keys.addresses import ENDPOINT, TRACE_ID, TRACE_LINK
from routes.keys.table import key
from routes.keys.values import FLAG, RATIO
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["SECTION", "TracingConfig"]


@dataclass(frozen=True, slots=True)
class TracingConfig:
    """`tracing.*`: the treatment of the trace that a message belongs to."""

    propagate: bool = key(
        "tracing.propagate",
        FLAG,
        "`true`: a record has the valid trace context of its message (`traceparent`, `tracestate`) in headers of "
        "these names, where Kafka's clients look for it, beside the JMS properties; and such headers of Kafka and "
        "NATS take precedence over other properties of these names.",
        default="true",
    )
    """True if a valid trace context of a message is published in headers of its own, beside the properties."""
    endpoint: str | None = key(
        "tracing.endpoint",
        ENDPOINT,
        "URL to which spans of sources and sinks are sent, by OTLP over HTTP; its path is `/v1/traces` if left out. "
        "Needs the packages of the [extra `tracing`](tracing.md#spans).",
        example="http://127.0.0.1:4318",
    )
    """URL to which spans are sent, path included; None: there are none."""
    sample_ratio: float = key(
        "tracing.sample-ratio",
        RATIO,
        "Share of the traces beginning in this bridge that are recorded, from 0 to 1. A message that already belongs "
        "to a trace is recorded if that trace is.",
        default="1",
        example="0.01",
    )
    """Share of the traces that begin here to record, from 0 to 1."""
    link: str | None = key(
        "tracing.link",
        TRACE_LINK,
        "URL of a trace in the tool that shows traces, with `{trace-id}` for its id. The status page, its API and "
        "`jms-bridge message` then [link](tracing.md#links-to-a-trace) each message to its trace.",
        example="https://jaeger.example/trace/{trace-id}",
    )
    """URL of a trace, with a placeholder for its id; None: there are no links."""

    def link_to(self, trace_id: str) -> str:
        """Returns the URL of a trace by its id of 32 hexadecimal digits; empty without an id, or without `link`."""
        return self.link.replace(TRACE_ID, trace_id) if self.link and trace_id else ""


def traces_that_hold_together(settings: Settings) -> None:
    """Checks that traces are propagated if spans are sent.

    Spans of sources and sinks find each other by the headers on the records between them.
    """
    if settings.is_set("tracing.endpoint") and settings.get("tracing.propagate") is False:
        message = "'false' tears the spans of sources and sinks apart"
        settings.fault("tracing.propagate", "", message, "remove it, or tracing.endpoint")


SECTION = Section(
    about="The traces of OpenTelemetry that messages belong to: [tracing.md](tracing.md).",
    settings=TracingConfig,
    checks=(traces_that_hold_together,),
)
