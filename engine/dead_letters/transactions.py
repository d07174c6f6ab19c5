"""Settles dead letters in Kafka transactions: the copy of a message and its audit entry are both there or neither.

The transactional id is made from `bridge.id`: of two commands at once the later one goes on, and the earlier one ends
with an error that says so. Which letters are settled, and whether they may be, is decided in `replay`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from engine.dead_letters.audit import Action, Actor, AuditEntry, now
from engine.dead_letters.letter import DeadLetter, original
from engine.errors import HardFailureError, UsageError
from engine.kafka.clients import producer
from engine.kafka.errors import FENCED, PASSING, is_fatal, is_too_large, refusal, unanswered, unavailable
from engine.kafka.topics import ensure_quarantine_topic
from engine.kafka.transactions import fatal_error_first
from engine.kafka.types import KafkaException
from engine.message import sized

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.claims.bodies import KeptBodies
    from engine.dead_letters.correction import Correction
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.reader import Position
    from engine.kafka.types import KafkaError, KafkaMessage
    from engine.message import Record

__all__ = ["Move", "Transactions"]

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Move:
    """The action to carry out on one dead letter."""

    letter: DeadLetter
    action: Action
    twin: AuditEntry | None = None
    """Entry of another letter of the same origin that was settled before: then there is only an entry to write."""


class Transactions:
    """The transactional producer, which settles many dead letters in one transaction.

    Raises:
        UsageError: another command took over.
        HardFailureError: Kafka does not let this user write.
        UnreachableError: Kafka does not answer.
    """

    def __init__(
        self,
        store: DeadLetterStore,
        actor: Actor,
        topic_id: str,
        bodies: KeptBodies,
        correction: Correction,
        purpose: str = "replay",
    ) -> None:
        """Connects, and ends whatever transaction an earlier command left open.

        `topic_id` is Kafka's id of the topic that the letters are in, `bodies` are those on which they have claims.
        `correction` changes the messages that are replayed. Of two producers with one `purpose` the later one goes on.
        """
        self._correction = correction
        self._bodies = bodies
        self._store = store
        self._actor = actor
        self._topic_id = topic_id
        self._keys = next(iter(store.keys()), None)
        self._has_quarantine = False
        self._failed: list[KafkaError] = []
        self._producer = producer(store.access, {"transactional.id": f"{store.bridge_id}.{purpose}"})
        with self._translated():
            self._producer.init_transactions(_SECONDS)

    def settle(self, moves: Sequence[Move]) -> dict[Position, AuditEntry]:
        """Settles all letters or, with an error, none; returns their audit entries by position."""
        if not moves:
            return {}
        if not self._has_quarantine and any(move.action is Action.QUARANTINED for move in moves):
            ensure_quarantine_topic(self._store.access, self._store.topic, self._store.journal.replication)
            self._has_quarantine = True
        with self._translated():
            self._producer.begin_transaction()
            try:
                entries = self._write(moves)
                with fatal_error_first(self._producer, _SECONDS):
                    self._producer.commit_transaction(_SECONDS)
            except BaseException:
                self._abort()
                raise
        return entries

    def _write(self, moves: Sequence[Move]) -> dict[Position, AuditEntry]:
        copies: dict[str, str] = {}
        """Position of the copy of each message, by the key that `_same` gives for its letters."""
        for move in moves:
            if _same(move.letter) in copies:
                continue
            copies[_same(move.letter)] = "" if move.twin is None else move.twin.copy
            if move.twin is not None:
                continue
            if move.action is Action.REPLAYED:
                publication = self._store.publication(move.letter) if move.letter.publication else None
                located = move.letter.located
                whole = replace(located, record=self._bodies.restored(located.record))
                record = original(DeadLetter(whole), self._store.bridge_id, publication)
                self._copy(self._store.journal.topic, sized(self._correction.apply(record)), move.letter, copies)
            elif move.action is Action.QUARANTINED:
                self._copy(self._store.quarantine, move.letter.located.record, move.letter, copies)
        self._flush()
        entries = {move.letter.position: self._entry(move, copies[_same(move.letter)]) for move in moves}
        for position, entry in entries.items():
            self._producer.produce(self._store.audit, key=str(position), value=entry.to_json(self._keys))
        self._flush()
        return entries

    def _entry(self, move: Move, copy: str) -> AuditEntry:
        letter = move.letter
        return AuditEntry(
            letter.position,
            move.action,
            now(),
            copy,
            reason=letter.reason,
            route=letter.route,
            journal=letter.journal_position,
            replays=letter.replays + (move.action is Action.REPLAYED),
            actor=self._actor,
            origin=letter.origin,
            topic_id=self._topic_id,
        )

    def _copy(self, topic: str, record: Record, letter: DeadLetter, copies: dict[str, str]) -> None:
        def delivered(error: KafkaError | None, message: KafkaMessage) -> None:
            if error is not None:
                self._failed.append(error)
            copies[_same(letter)] = f"{topic}:{message.partition()}:{message.offset()}"

        self._producer.produce(
            topic, key=record.key, value=record.value, headers=list(record.headers), on_delivery=delivered
        )

    def _flush(self) -> None:
        with fatal_error_first(self._producer, _SECONDS):
            left = self._producer.flush(_SECONDS)
        if self._failed:
            raise KafkaException(self._failed[0])
        if left:
            raise unavailable(
                self._store.access.servers, f"it took no records for {_SECONDS:.0f} s; nothing is settled"
            )

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
        servers = self._store.access.servers
        if error.code() in FENCED:
            return UsageError(
                f"another replay for bridge '{self._store.bridge_id}' took over; go on there or start again"
            )
        if is_too_large(error):
            return HardFailureError(
                f"a dead letter is larger than '{self._store.journal.topic}' takes; raise its max.message.bytes"
            )
        if error.code() in PASSING:
            return unanswered(servers, error)
        return refusal(error, servers, "the replay", "WRITE") or HardFailureError(
            f"Kafka at {servers} refuses the replay: {error.str()}"
        )


def _same(letter: DeadLetter) -> str:
    """Returns a key that only letters of one origin have in common."""
    return letter.origin or str(letter.position)
