"""W3C Trace Context of messages: as JMS properties, and as Kafka record headers of the same names.

Tracing agents of JMS clients read and write the properties `traceparent` and `tracestate`; those of Kafka clients use
the last record headers of exactly these names. The journal holds both: the property as it came with the message, and
the header with the context in which the message goes on. This module makes no spans, see `engine.telemetry.tracing`.

Specification: https://www.w3.org/TR/trace-context/, sections 3.2 and 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from engine.message import Message
from routes.properties import JmsType, Property

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.message import Record
    from engine.tracing_section import TracingConfig

__all__ = [
    "NO_CONTEXT",
    "TRACEPARENT",
    "TRACESTATE",
    "Context",
    "as_headers",
    "of_headers",
    "of_properties",
    "published",
    "trace_id",
    "traced",
    "with_context",
]

TRACEPARENT = "traceparent"
"""Property and header with version, trace id, span id and flags, such as
`00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`."""
TRACESTATE = "tracestate"
"""Property and header with additions of tracing vendors, such as `congo=t61rcWkgMzE,rojo=00f067aa0ba902b7`."""

Context = Mapping[str, str]
"""Trace context by header name: a valid `traceparent`, and its `tracestate` if that is valid too; or empty."""

NO_CONTEXT: Context = MappingProxyType({})

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,450})?")
"""Pattern of a `traceparent`; versions after 00 may have more text behind the flags."""
_LENGTH_OF_VERSION_00 = 55
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ !-+\--<>-~]{0,255}[!-+\--<>-~]")
_MOST_MEMBERS = 32
_NAMES = (TRACEPARENT, TRACESTATE)
_TEXT = (None, JmsType.STRING)


def of_properties(properties: Mapping[str, Property]) -> Context:
    """Context in a message's properties; empty if its `traceparent` is missing or invalid."""
    parent = properties.get(TRACEPARENT)
    if parent is None or parent.type not in _TEXT:
        return NO_CONTEXT
    state = properties.get(TRACESTATE)
    return _context(parent.text, state.text if state is not None and state.type in _TEXT else None)


def of_headers(headers: Sequence[tuple[str, bytes | None]]) -> Context:
    """Context in a record's headers; empty if its last `traceparent` is missing or invalid."""
    last = {name: value for name, value in headers if name in _NAMES}
    parent, state = (last.get(name) for name in _NAMES)
    if parent is None:
        return NO_CONTEXT
    return _context(parent.decode("utf-8", "replace"), None if state is None else state.decode("utf-8", "replace"))


def trace_id(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Trace to which a record belongs, as 32 hexadecimal digits; empty if it has no valid `traceparent`."""
    return of_headers(headers).get(TRACEPARENT, "-").split("-")[1]


def as_headers(context: Context) -> tuple[tuple[str, bytes], ...]:
    """Record headers of a context."""
    return tuple([(name, text.encode()) for name, text in context.items()])


def with_context(properties: Mapping[str, Property], context: Context) -> dict[str, Property]:
    """Copies the properties with their trace context replaced by `context`; an empty `context` changes nothing."""
    kept = {name: value for name, value in properties.items() if not context or name not in _NAMES}
    return kept | {name: Property(text, JmsType.STRING) for name, text in context.items()}


def published(message: Message, tracing: TracingConfig) -> Context:
    """Context for the record headers of a message: that of its properties, or empty without `tracing.propagate`."""
    return of_properties(message.properties) if tracing.propagate else NO_CONTEXT


def traced(record: Record, tracing: TracingConfig) -> Record:
    """Adds the trace headers that the journal would write; a record that already has one of them stays unchanged."""
    if any(name in _NAMES for name, _ in record.headers):
        return record
    context = published(Message.from_record(record), tracing)
    return replace(record, headers=(*record.headers, *as_headers(context))) if context else record


def _context(parent: str, state: str | None) -> Context:
    if not _PARENT.fullmatch(parent) or (parent.startswith("00") and len(parent) > _LENGTH_OF_VERSION_00):
        return NO_CONTEXT
    if state is None or not _is_state(state):
        return {TRACEPARENT: parent}
    return {TRACEPARENT: parent, TRACESTATE: state}


def _is_state(text: str) -> bool:
    """Returns True if the text is a list of 1 to 32 valid `tracestate` members; empty members do not count."""
    members = [member for each in text.split(",") if (member := each.strip(" \t"))]
    return 0 < len(members) <= _MOST_MEMBERS and all(map(_MEMBER.fullmatch, members))
