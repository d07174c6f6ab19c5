"""Transactional producer of replays: the copies of records and their audit entries are both there or neither.

The transactional id is made from `bridge.id`: of two commands at once the later one goes on, and the earlier one ends
with an error that says so.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import HardFailureError, UsageError
from engine.kafka.errors import FENCED, PASSING, is_fatal, is_too_large, refusal, unanswered, unavailable
from engine.kafka.transactions import fatal_error_first
from engine.kafka.types import KafkaException

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from engine.dead_letters.audit import AuditEntry
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.types import KafkaError, KafkaMessage
    from engine.message import Record

__all__ = ["ReplayProducer"]

_SECONDS = 30.0


class ReplayProducer:
    """Producer of copies and audit entries, whose methods other than `transaction` are called within a transaction.

    Raises:
        UsageError: another command took over.
        HardFailureError: Kafka does not let this user write.
        UnreachableError: Kafka does not answer.
    """

    def __init__(self, store: DeadLetterStore, what: str, purpose: str = "replay") -> None:
        """Connects, and ends whatever transaction an earlier command left open.

        `what` names a record in errors. Of two producers with one `purpose` the later one goes on.
        """
        self._store = store
        self._what = what
        self._keys = next(iter(store.keys()), None)
        self._failed: list[KafkaError] = []
        self._producer = store.kafka.producer({"transactional.id": f"{store.bridge_id}.{purpose}"})
        with self._translated():
            self._producer.init_transactions(_SECONDS)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begins a transaction and, at the end of the block, commits it; after an error nothing is written."""
        with self._translated():
            self._producer.begin_transaction()
            try:
                yield
                with fatal_error_first(self._producer, _SECONDS):
                    self._producer.commit_transaction(_SECONDS)
            except BaseException:
                self._abort()
                raise

    def copy(self, topic: str, record: Record, tell: Callable[[str], None]) -> None:
        """Writes a record; `flush` calls `tell` with its position, `topic:partition:offset`."""

        def delivered(error: KafkaError | None, message: KafkaMessage) -> None:
            if error is not None:
                self._failed.append(error)
            tell(f"{topic}:{message.partition()}:{message.offset()}")

        self._producer.produce(
            topic, key=record.key, value=record.value, headers=list(record.headers), on_delivery=delivered
        )

    def note(self, entries: Iterable[AuditEntry]) -> None:
        """Writes entries of the audit, and waits for Kafka to have them."""
        for entry in entries:
            self._producer.produce(self._store.audit, key=str(entry.position), value=entry.to_json(self._keys))
        self.flush()

    def flush(self) -> None:
        """Waits until Kafka has all records of the transaction."""
        with fatal_error_first(self._producer, _SECONDS):
            left = self._producer.flush(_SECONDS)
        if self._failed:
            raise KafkaException(self._failed[0])
        if left:
            servers = self._store.kafka.servers
            raise unavailable(servers, f"it took no records for {_SECONDS:.0f} s; nothing is settled")

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction(_SECONDS)
        except KafkaException:
            # Fenced or unreachable: the broker aborts the transaction itself, and the first error says more.
            return

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if is_fatal(cause) and cause.code() not in FENCED:
                cause = self._fatal_error(cause)
            raise self._translate(cause) from error

    def _fatal_error(self, known: KafkaError) -> KafkaError:
        """Returns the error that ended the producer for good, which any request about its transaction raises."""
        try:
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            return cause
        return known

    def _translate(self, error: KafkaError) -> Exception:
        servers = self._store.kafka.servers
        if error.code() in FENCED:
            return UsageError(
                f"another replay for bridge '{self._store.bridge_id}' took over; go on there or start again"
            )
        if is_too_large(error):
            return HardFailureError(
                f"{self._what} is larger than '{self._store.journal.topic}' takes; raise its max.message.bytes"
            )
        if error.code() in PASSING:
            return unanswered(servers, error)
        return refusal(error, servers, "the replay", "WRITE") or HardFailureError(
            f"Kafka at {servers} refuses the replay: {error.str()}"
        )
