"""Dead letters that sources and sinks write themselves: what never reached the router, and what it routed in vain."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import structlog

from engine.errors import UnreachableError
from engine.journal import FRAMING_BYTES
from engine.message import DESTINATION, ORIGIN, ROUTE, SIZE, Record
from engine.topics import Cluster
from engine.trace_context import published

if TYPE_CHECKING:
    from engine.message import Message
    from routes.model import Config

__all__ = ["TOO_LARGE", "UNREADABLE", "dead_letter", "letter_limit", "unjournaled"]

TOO_LARGE = "too-large"
"""The reason of a message that is larger than the journal takes."""
UNREADABLE = "unreadable"
"""That of a message whose wire format has a fault in it."""

_KEPT_BYTES = 64 * 1024
_ANSWER_SECONDS = 5.0
_MOST_CHARACTERS = 1000
"""Of a reason."""
_log = structlog.get_logger(__name__)
_REFUSED = "refused"


def unjournaled(message: Message, reason: str, why: str, size: int | None, config: Config) -> Record:
    """Of a message that cannot enter the journal: the beginning of its body, headers that fit into as much again.

    It never reached the router, so it has no route and no journal position, and cannot be replayed from here. `size`
    is that of the whole in bytes, where only a part is kept.
    """
    record = replace(message, body=message.body[:_KEPT_BYTES]).to_record(published(message, config))
    own = _errors("source", reason, why) | {ROUTE: "", ORIGIN: config.bridge_id}
    if size is not None or len(message.body) > _KEPT_BYTES:
        own["jmsbridge.truncated"] = str(size or len(message.body))
    key = record.key if len(record.key or b"") <= _KEPT_BYTES else None
    return replace(record, key=key, headers=(*_fitting(record.headers, _KEPT_BYTES), *_encoded(own)))


def letter_limit(config: Config, topic: str) -> int | None:
    """Bytes of a record that a dead-letter topic takes from the bridge; None while nobody answers."""
    try:
        settings = Cluster(config, _ANSWER_SECONDS).settings([topic])
    except UnreachableError as error:
        _log.debug("the limit of the dead-letter topic is not known", topic=topic, why=str(error))
        return None
    own = config.journal.max_message_bytes + FRAMING_BYTES
    return min(own, int(settings[topic]["max.message.bytes"])) if topic in settings else own


def dead_letter(record: Record, why: str, route: str, sink: str, limit: int | None = None) -> Record:
    """Of a routed record that a sink cannot give away. It can be replayed: the message is as the journal had it.

    Of one that exceeds `limit`, the dead-letter topic's own in bytes, it is the beginning, as the router cuts it.
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
    """Kafka Connect's names where it has one."""
    return {
        "__connect.errors.stage": stage,
        "__connect.errors.exception.class.name": f"jmsbridge.{reason}",
        "__connect.errors.exception.message": why[:_MOST_CHARACTERS],
        "jmsbridge.reason": reason,
        "jmsbridge.time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }


def _encoded(texts: dict[str, str]) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, text.encode("utf-8", "replace")) for name, text in texts.items())


def _fitting(headers: tuple[tuple[str, bytes | None], ...], room: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers up to the first that does not fit into that many bytes; the standard fields come first."""
    kept: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        # The size of what is left would be mistaken for that of the message.
        if name == SIZE:
            continue
        room -= len(name.encode()) + len(value or b"")
        if room >= 0:
            kept.append((name, value))
    return tuple(kept)
