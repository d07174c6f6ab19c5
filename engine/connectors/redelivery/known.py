"""Which messages the journal has, by their ids and by digests of all that a redelivery cannot change.

Loss is worse than a message that is there twice: what is not surely the same message counts as another one.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from engine.message import SIZE
from engine.trace_context import TRACEPARENT, TRACESTATE

if TYPE_CHECKING:
    from engine.message import Record

__all__ = ["Known", "digest"]

_MOST = 100_000
_DIGEST_BYTES = 16
_TIMESTAMP = "jms.JMSTimestamp"
_OF_THE_DELIVERY = {"jms.JMSRedelivered", "jms.JMSXDeliveryCount", "jms.JMSExpiration"}
"""What may differ from one delivery to the next: an expiration, where it is made of a time to live."""
_VARYING = frozenset({*_OF_THE_DELIVERY, SIZE, TRACEPARENT, TRACESTATE})
"""Also what the bridge itself puts on a record: a span of its own has another name each time."""


def digest(record: Record) -> bytes:
    """Of body and headers, those apart that tell of a delivery and not of its message."""
    headers = sorted([(name, value or b"") for name, value in record.headers if name not in _VARYING])
    found = blake2b(ascii(headers).encode(), digest_size=_DIGEST_BYTES)
    # Nothing can follow the list that would read as part of it.
    found.update(record.value or b"")
    return found.digest()


class Known:
    """The messages of one source that were read from the journal's tail.

    Memory is bounded: of more than 200,000 at least the latest 100,000 are known.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._newer, self._older = _Generation(), _Generation()
        self.ids: set[str] = set()
        """Of those that may be known: worth a digest."""

    def __bool__(self) -> bool:
        return bool(self._newer.counts or self._older.counts)

    def add(self, message_id: str, record: Record) -> None:
        """The journal has this record, once or once more."""
        if len(self._newer.counts) >= self._most:
            self._newer, self._older = _Generation(), self._newer
            self.ids = set(self._older.ids)
        found, counts = digest(record), self._newer.counts
        counts[found] = counts.get(found, 0) + 1
        self._newer.ids.add(message_id)
        self.ids.add(message_id)

    def take(self, record: Record) -> bool:
        """Whether the journal has this message already; each record stands for one delivery.

        `record` is what the journal would get, with an id that may be known. One that says that it was delivered
        before needs no more than to be equal. A broker that was killed may have forgotten that it delivered; then the
        time at which the message was sent has to speak for it, and that its sender uses ids only once.
        """
        found = digest(record)
        count = self._newer.counts.get(found, 0) + self._older.counts.get(found, 0)
        if not count or not (_is_redelivered(record) or (count == 1 and _has_time(record))):
            return False
        generation = self._newer if found in self._newer.counts else self._older
        generation.take(found)
        return True

    def clear(self) -> None:
        """None of them can come again."""
        self._newer, self._older = _Generation(), _Generation()
        self.ids = set()


class _Generation:
    """A part of them; the older one is forgotten as a whole."""

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
