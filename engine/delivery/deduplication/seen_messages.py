"""Messages that the journal has, recognised by their ids and by digests of everything that a redelivery cannot change.

A lost message is worse than a duplicate: a message that is not certainly the same counts as a different one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from engine.message import BODY_TYPES, NAMES, NO_BODY, NULL_BODY, SIZE
from engine.trace_context import TRACEPARENT, TRACESTATE

if TYPE_CHECKING:
    from engine.message import Record

__all__ = ["SeenMessages", "digest"]

_MOST = 100_000
_DIGEST_BYTES = 16
_TIMESTAMP = "jms.JMSTimestamp"
_OF_THE_DELIVERY = {"jms.JMSRedelivered", "jms.JMSXDeliveryCount", "jms.JMSExpiration", "jms.JMS_AMQP_FirstAcquirer"}
"""Headers that may differ between two deliveries of a message; an expiration differs where it is computed from a time
to live."""
_VARYING = frozenset({*_OF_THE_DELIVERY, SIZE, NAMES, TRACEPARENT, TRACESTATE})
"""Headers left out of the digest: those of the delivery, and those that the bridge adds, since each span has another
id, and records of earlier versions have no header of names."""
_WITHOUT_TEXT = [(BODY_TYPES, kind.encode()) for kind in (NULL_BODY, NO_BODY)]
"""Headers left out of the digest, because records of earlier versions do not have them."""


def digest(record: Record) -> bytes:
    """Digest of a record's body and headers, without the headers that describe the delivery and not the message."""
    found_headers = [(name, value or b"") for name, value in record.headers if name not in _VARYING]
    headers = sorted([header for header in found_headers if header not in _WITHOUT_TEXT])
    found = blake2b(ascii(headers).encode(), digest_size=_DIGEST_BYTES)
    # No body can read as part of the list of headers, so the two need no separator.
    found.update(record.value or b"")
    return found.digest()


class SeenMessages:
    """Messages of one source that were read from the journal's tail.

    Memory is bounded: of more than 200,000 messages, at least the latest 100,000 are known.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._newer, self._older = _Generation(), _Generation()
        self.ids: set[str] = set()
        """Message ids that may be known; only messages with such an id are worth a digest."""

    def __bool__(self) -> bool:
        return bool(self._newer.counts or self._older.counts)

    def add(self, message_id: str, record: Record) -> None:
        """Adds a record of the journal; adding an equal record again counts as a second delivery."""
        if len(self._newer.counts) >= self._most:
            self._newer, self._older = _Generation(), self._newer
            self.ids = set(self._older.ids)
        found, counts = digest(record), self._newer.counts
        counts[found] = counts.get(found, 0) + 1
        self._newer.ids.add(message_id)
        self.ids.add(message_id)

    def take(self, record: Record) -> bool:
        """Returns True if the journal already has this message, and then forgets one of its records.

        Each record of the journal stands for one delivery. `record` is the record that the journal would get; its
        message id may be known. A message marked as redelivered only has to be equal to a known record. Without the
        mark (a broker that was killed may have forgotten that it delivered the message) the message must also have a
        JMSTimestamp and match exactly one known record, as a sign that its producer uses an id only once.
        """
        found = digest(record)
        count = self._newer.counts.get(found, 0) + self._older.counts.get(found, 0)
        if not count or not (_is_redelivered(record) or (count == 1 and _has_time(record))):
            return False
        generation = self._newer if found in self._newer.counts else self._older
        generation.take(found)
        return True

    def clear(self) -> None:
        """Forgets all messages, since none of them can be delivered again."""
        self._newer, self._older = _Generation(), _Generation()
        self.ids = set()


class _Generation:
    """Generation of known messages, one of two; when the newer one is full, the older one is dropped as a whole."""

    def __init__(self) -> None:
        self.ids: set[str] = set()
        self.counts: dict[bytes, int] = {}

    def take(self, found: bytes) -> None:
        self.counts[found] -= 1
        if not self.counts[found]:
            del self.counts[found]


def _is_redelivered(record: Record) -> bool:
    return record.header("jms.JMSRedelivered") == "true"


def _has_time(record: Record) -> bool:
    return record.header(_TIMESTAMP) is not None
