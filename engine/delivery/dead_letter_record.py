"""Dead letters that sources and sinks write themselves.

Those of sources hold messages that never reached the router; those of sinks hold routed messages that cannot be
delivered.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from engine.errors import UnreachableError
from engine.kafka.cluster import Cluster
from engine.kafka.journal import FRAMING_BYTES
from engine.limits import MOST_HEADERS
from engine.message import DESTINATION, ORIGIN, ROUTE, SIZE, Record
from engine.printable import LONGEST_REASON, shortened
from engine.trace_context import published

if TYPE_CHECKING:
    from engine.kafka.clients import KafkaClients
    from engine.message import Message
    from engine.tracing_section import TracingConfig

__all__ = ["TOO_LARGE", "UNREADABLE", "dead_letter", "letter_limit", "unjournaled"]

TOO_LARGE = "too-large"
"""Reason in a dead letter: the message is larger than the journal's limit."""
UNREADABLE = "unreadable"
"""Reason in a dead letter: the wire format of the message is faulty."""

_KEPT_BYTES = 64 * 1024
_ANSWER_SECONDS = 5.0
_log = structlog.get_logger(__name__)
_REFUSED = "refused"


def unjournaled(
    message: Message, reason: str, why: str, size: int | None, bridge_id: str, tracing: TracingConfig
) -> Record:
    """Makes the dead letter of a message that cannot enter the journal.

    It holds the beginning of the body, and headers up to an equal size and to MOST_HEADERS. The message never reached
    the router, so it has no route and no journal position, and cannot be replayed from the dead letter. `size` is the
    size of the whole message in bytes, if only a part was kept.
    """
    record = replace(message, body=message.body[:_KEPT_BYTES]).to_record(published(message, tracing))
    own = _errors("source", reason, why) | {ROUTE: "", ORIGIN: bridge_id}
    if size is not None or len(message.body) > _KEPT_BYTES:
        own["jmsbridge.truncated"] = str(size or len(message.body))
    key = record.key if len(record.key or b"") <= _KEPT_BYTES else None
    kept = _fitting(record.headers[:MOST_HEADERS], _KEPT_BYTES)
    return replace(record, key=key, headers=(*kept, *_encoded(own)))


def letter_limit(clients: KafkaClients, topic: str) -> int | None:
    """Largest record in bytes that the bridge can write to a dead-letter topic; None if Kafka does not answer."""
    try:
        settings = Cluster(clients, _ANSWER_SECONDS).settings([topic])
    except UnreachableError as error:
        _log.debug("the limit of the dead-letter topic is not known", topic=topic, why=str(error))
        return None
    own = clients.access.max_message_bytes + FRAMING_BYTES
    return min(own, int(settings[topic]["max.message.bytes"])) if topic in settings else own


def dead_letter(record: Record, why: str, route: str, sink: str, limit: int | None = None) -> Record:
    """Makes the dead letter of a routed record that a sink cannot deliver; it can be replayed.

    It holds the message as the journal had it. If it would exceed `limit`, the largest record in bytes of the
    dead-letter topic, it holds only the beginning, cut as the router cuts it.
    """
    kept = tuple((name, value) for name, value in record.headers if name not in (DESTINATION, ROUTE))
    own = _errors(f"sink {sink}", _REFUSED, why) | {ROUTE: route}
    letter = replace(record, headers=(*kept, *_encoded(own)))
    if limit is None or letter.size + FRAMING_BYTES <= limit:
        return letter
    room = min(_KEPT_BYTES, limit // 4)
    own["jmsbridge.truncated"] = str(record.size)
    value = None if record.value is None else record.value[:room]
    key = record.key if len(record.key or b"") <= room else None
    ours = tuple(header for header in kept if header[0].startswith("jmsbridge.") and header[0] != SIZE)
    theirs = _fitting(tuple(header for header in kept if header not in ours), room)
    return replace(record, key=key, value=value, headers=(*theirs, *ours, *_encoded(own)))


def _errors(stage: str, reason: str, why: str) -> dict[str, str]:
    """Headers that describe an error, with Kafka Connect's names where it has one."""
    return {
        "__connect.errors.stage": stage,
        "__connect.errors.exception.class.name": f"jmsbridge.{reason}",
        "__connect.errors.exception.message": shortened(why, LONGEST_REASON),
        "jmsbridge.reason": reason,
        "jmsbridge.time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def _encoded(texts: dict[str, str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, text.encode("utf-8", "replace")) for name, text in texts.items())


def _fitting(headers: tuple[tuple[str, bytes | None], ...], room: int) -> tuple[tuple[str, bytes | None], ...]:
    """Returns the headers up to the first that does not fit into `room` bytes; the standard fields come first."""
    kept: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        # The SIZE header of a shortened record would be mistaken for the size of the message.
        if name == SIZE:
            continue
        room -= len(name.encode()) + len(value or b"")
        if room >= 0:
            kept.append((name, value))
    return tuple(kept)
