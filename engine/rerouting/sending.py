"""Messages that users of the status page write into the journal, each in one Kafka transaction with an audit entry.

The entry (`engine.dead_letters.audit`) is under the position of the record, and names the user.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from engine.dead_letters.audit import Action, Actor, AuditEntry, now
from engine.dead_letters.replay_producer import ReplayProducer
from engine.kafka.reader import Position
from engine.kafka.topics import ensure_audit_topic, identity
from engine.message import sized

if TYPE_CHECKING:
    from engine.dead_letters.store import DeadLetterStore
    from engine.message import Record

__all__ = ["JournalSender"]

_PURPOSE = "send"
_REMEMBERED = 1000


class JournalSender:
    """Writes messages into the journal, one at a time. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sent: dict[str, Position] = {}
        """Positions of the last messages by their tokens, the oldest first."""

    def send(self, store: DeadLetterStore, record: Record, actor: Actor, token: str) -> Position:
        """Writes a message and its audit entry, and returns its position; a token is used once.

        Of a token that was used before, it returns the position, and writes nothing.

        Raises:
            UsageError: another bridge with the same id sends at this moment.
            HardFailureError: Kafka does not let this user write, or the message is too large.
            UnreachableError: Kafka does not answer.
        """
        # Of two producers with one transactional id the later one would end the earlier one.
        with self._lock:
            if token not in self._sent:
                self._sent[token] = _written(store, sized(record), actor)
                if len(self._sent) > _REMEMBERED:
                    del self._sent[next(iter(self._sent))]
            return self._sent[token]


def _written(store: DeadLetterStore, record: Record, actor: Actor) -> Position:
    journal = store.journal.topic
    journal_id = identity(store.kafka, journal)
    ensure_audit_topic(store.kafka, store.topic, store.journal.replication)
    producer = ReplayProducer(store, "the message", _PURPOSE)
    written: list[str] = []
    began = now()
    with producer.transaction():
        producer.copy(journal, record, written.append)
        producer.flush()
        position = Position.parse(written[0], journal)
        at = str(position)
        producer.note([AuditEntry(position, Action.SENT, began, at, journal=at, actor=actor, topic_id=journal_id)])
    return position
