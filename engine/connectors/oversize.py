"""The dead letter of a message that is too large for the journal: what can be kept of it, and its true size.

It never reached the router, so it has no route and no journal position, and cannot be replayed from here.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from engine.message import ORIGIN, SIZE, Record

if TYPE_CHECKING:
    from engine.journal import JournalTooLargeError
    from engine.message import Message
    from routes.model import Config

__all__ = ["dead_letter"]

_KEPT_BYTES = 64 * 1024
_STAGE = "source"
_REASON = "too-large"


def dead_letter(message: Message, error: JournalTooLargeError, config: Config) -> Record:
    """The beginning of the body, the headers that fit into as much again, and what went wrong."""
    record = replace(message, body=message.body[:_KEPT_BYTES]).to_record()
    texts = {
        "__connect.errors.stage": _STAGE,
        "__connect.errors.exception.class.name": type(error).__name__,
        "__connect.errors.exception.message": f"too large for the journal: {error}",
        "jmsbridge.reason": _REASON,
        "jmsbridge.route": "",
        "jmsbridge.time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "jmsbridge.truncated": str(error.size),
        ORIGIN: config.bridge_id,
    }
    own = ((name, text.encode()) for name, text in texts.items())
    key = record.key if len(record.key or b"") <= _KEPT_BYTES else None
    return replace(record, key=key, headers=(*_fitting(record.headers), *own))


def _fitting(headers: tuple[tuple[str, bytes | None], ...]) -> tuple[tuple[str, bytes | None], ...]:
    """The headers up to the first that does not fit any more; the standard fields come first."""
    room = _KEPT_BYTES
    kept: list[tuple[str, bytes | None]] = []
    for name, value in headers:
        # The size of what is left would be mistaken for that of the message.
        if name == SIZE:
            continue
        room -= len(name.encode()) + len(value or b"")
        if room >= 0:
            kept.append((name, value))
    return tuple(kept)
