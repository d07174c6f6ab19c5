"""Settles dead letters in Kafka transactions: the copy of a message and its audit entry are both there or neither.

Which letters are settled, and whether they may be, is decided in `replay`; `replay_producer` writes the transactions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from engine.dead_letters.audit import Action, Actor, AuditEntry, now
from engine.dead_letters.letter import DeadLetter, original
from engine.dead_letters.replay_producer import ReplayProducer
from engine.kafka.topics import ensure_quarantine_topic
from engine.message import sized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.claims.bodies import KeptBodies
    from engine.dead_letters.correction import Correction
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.reader import Position

__all__ = ["Move", "Transactions"]


@dataclass(frozen=True, slots=True)
class Move:
    """The action to carry out on one dead letter."""

    letter: DeadLetter
    action: Action
    twin: AuditEntry | None = None
    """Entry of another letter of the same origin that was settled before: then there is only an entry to write."""


class Transactions:
    """Transactions that settle many dead letters each. Raises as `ReplayProducer` does."""

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
        self._has_quarantine = False
        self._producer = ReplayProducer(store, "a dead letter", purpose)

    def settle(self, moves: Sequence[Move]) -> dict[Position, AuditEntry]:
        """Settles all letters or, with an error, none; returns their audit entries by position."""
        if not moves:
            return {}
        if not self._has_quarantine and any(move.action is Action.QUARANTINED for move in moves):
            ensure_quarantine_topic(self._store.kafka, self._store.topic, self._store.journal.replication)
            self._has_quarantine = True
        with self._producer.transaction():
            return self._write(moves)

    def _write(self, moves: Sequence[Move]) -> dict[Position, AuditEntry]:
        copies: dict[str, str] = {}
        """Position of the copy of each message, by the key that `_same` gives for its letters."""
        for move in moves:
            same = _same(move.letter)
            if same in copies:
                continue
            copies[same] = "" if move.twin is None else move.twin.copy
            if move.twin is not None:
                continue
            tell = partial(copies.__setitem__, same)
            if move.action is Action.REPLAYED:
                publication = self._store.publication(move.letter) if move.letter.publication else None
                located = move.letter.located
                whole = replace(located, record=self._bodies.restored(located.record))
                record = original(DeadLetter(whole), self._store.bridge_id, publication)
                self._producer.copy(self._store.journal.topic, sized(self._correction.apply(record)), tell)
            elif move.action is Action.QUARANTINED:
                self._producer.copy(self._store.quarantine, move.letter.located.record, tell)
        self._producer.flush()
        entries = {move.letter.position: self._entry(move, copies[_same(move.letter)]) for move in moves}
        self._producer.note(entries.values())
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
            replays=letter.replays_with_next if move.action is Action.REPLAYED else letter.replays,
            actor=self._actor,
            origin=letter.origin,
            topic_id=self._topic_id,
        )


def _same(letter: DeadLetter) -> str:
    """Returns a key that only letters of one origin have in common."""
    return letter.origin or str(letter.position)
