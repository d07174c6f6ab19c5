"""Which trace a message belongs to: W3C Trace Context as JMS properties, and as Kafka record headers of the same names.

Agents of JMS clients read and write the properties `traceparent` and `tracestate`; those of Kafka clients the last
record headers of exactly these names. Both stand side by side in the journal: the property as the message came with it,
the header as it goes on. Nothing here makes spans, see `engine.telemetry.tracing`.

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
    from routes.model import Config

__all__ = [
    "NO_CONTEXT",
    "TRACEPARENT",
    "TRACESTATE",
    "Context",
    "as_headers",
    "of_headers",
    "of_properties",
    "published",
    "traced",
    "with_context",
]

TRACEPARENT = "traceparent"
"""Version, trace, span and flags, such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`."""
TRACESTATE = "tracestate"
"""What vendors of tracing systems add, such as `congo=t61rcWkgMzE,rojo=00f067aa0ba902b7`."""

Context = Mapping[str, str]
"""A valid `traceparent`, and its `tracestate` if that is valid, too; or nothing at all."""

NO_CONTEXT: Context = MappingProxyType({})

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[!-~]{0,450})?")
"""Versions after 00 may have more behind the flags."""
_LENGTH_OF_VERSION_00 = 55
_MEMBER = re.compile(r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[ !-+\--<>-~]{0,255}[!-+\--<>-~]")
_MOST_MEMBERS = 32
_NAMES = (TRACEPARENT, TRACESTATE)
_TEXT = (None, JmsType.STRING)


def of_properties(properties: Mapping[str, Property]) -> Context:
    """The context that a message came with; nothing where its `traceparent` is missing or invalid."""
    parent = properties.get(TRACEPARENT)
    if parent is None or parent.type not in _TEXT:
        return NO_CONTEXT
    state = properties.get(TRACESTATE)
    return _context(parent.text, state.text if state is not None and state.type in _TEXT else None)


def of_headers(headers: Sequence[tuple[str, bytes | None]]) -> Context:
    """The context of a record; nothing where its last `traceparent` is missing or invalid."""
    last = {name: value for name, value in headers if name in _NAMES}
    parent, state = (last.get(name) for name in _NAMES)
    if parent is None:
        return NO_CONTEXT
    return _context(parent.decode("utf-8", "replace"), None if state is None else state.decode("utf-8", "replace"))


def as_headers(context: Context) -> tuple[tuple[str, bytes], ...]:
    """As headers of a record."""
    return tuple([(name, text.encode()) for name, text in context.items()])


def with_context(properties: Mapping[str, Property], context: Context) -> dict[str, Property]:
    """The properties with that context in place of theirs, which stays if there is nothing else."""
    others = {name: value for name, value in properties.items() if not context or name not in _NAMES}
    return others | {name: Property(text, JmsType.STRING) for name, text in context.items()}


def published(message: Message, config: Config) -> Context:
    """What the journal has of a message's context beside its properties: `tracing.propagate`."""
    return of_properties(message.properties) if config.tracing.propagate else NO_CONTEXT


def traced(record: Record, config: Config) -> Record:
    """The record of a message as the journal would have it; one that has a context beside its properties stays."""
    if any(name in _NAMES for name, _ in record.headers):
        return record
    context = published(Message.from_record(record), config)
    return replace(record, headers=(*record.headers, *as_headers(context))) if context else record


def _context(parent: str, state: str | None) -> Context:
    if not _PARENT.fullmatch(parent) or (parent.startswith("00") and len(parent) > _LENGTH_OF_VERSION_00):
        return NO_CONTEXT
    if state is None or not _is_state(state):
        return {TRACEPARENT: parent}
    return {TRACEPARENT: parent, TRACESTATE: state}


def _is_state(text: str) -> bool:
    """Whether it is a list of members, of which some may be empty, and not all."""
    members = [member for each in text.split(",") if (member := each.strip(" \t"))]
    return 0 < len(members) <= _MOST_MEMBERS and all(map(_MEMBER.fullmatch, members))
