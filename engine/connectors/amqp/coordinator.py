"""The link by which a client begins and ends the transactions of its session.

What is done in a transaction waits in it until the client discharges it, and is undone when the link ends before. What
becomes of it is the business of the `Host`. Specification: OASIS AMQP 1.0, part 4.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from engine.codecs.amqp.sections import decode
from engine.connectors.amqp import answers
from engine.connectors.amqp.links import Receiver
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Condition,
    Request,
    Role,
    Terminus,
    disposition,
    field,
    outcome_of,
)

if TYPE_CHECKING:
    from engine.codecs.amqp.values import Described
    from engine.connectors.amqp.links import Incoming
    from engine.connectors.amqp.peer_session import PeerSession

__all__ = ["Coordinator", "Transaction"]

_WINDOW = 100
_MOST_BYTES = 4096
_ID_BYTES = 8
_numbers = itertools.count(1)


class Transaction:
    """What a client has done since it declared it."""

    __slots__ = ("_begun", "_delivery", "coordinator", "failure", "id", "size", "use", "work")

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.id = next(_numbers).to_bytes(_ID_BYTES)
        """No other has had it, so that nobody reaches into the transaction of another session."""
        self.work: list[Any] = []
        """What the host has noted, in order."""
        self.size = 0
        """Of the work, in bytes."""
        self.use = coordinator.session.peer.transactions
        """What its client's transactions take together."""
        self.failure: Condition | None = None
        """Why it can only be rolled back; its work is undone already."""
        self._delivery = 0
        self._begun: float | None = None

    def begin(self, now: float) -> None:
        """Its age counts from its first work: JMS clients declare the next transaction long before they use it."""
        if self._begun is None:
            self._begun = now

    def expire(self, now: float, seconds: float) -> None:
        """Undoes its work where that has begun longer ago than `seconds`."""
        if self.failure is None and self._begun is not None and now - self._begun > seconds:
            why = f"the transaction is open for longer than {seconds:.0f} s; commit sooner"
            self.fail(Condition(answers.TRANSACTION_TIMEOUT, why))

    def fail(self, why: Condition) -> None:
        """It can only be rolled back."""
        self.failure = why
        self.coordinator.host.roll_back(self)

    def discharge(self, delivery: int, *, fail: bool) -> None:
        """It ends; an answer to that delivery says how."""
        self._delivery = delivery
        if fail:
            if self.failure is None:
                self.coordinator.host.roll_back(self)
            self.committed()
        elif self.failure is not None and self.failure.name == answers.TRANSACTION_TIMEOUT:
            self.coordinator.reject(delivery, *self.failure)
        elif self.failure is not None:
            self.rolled_back(str(self.failure))
        else:
            self.coordinator.host.commit(self)

    def committed(self) -> None:
        """The discharge has done what it should."""
        self.coordinator.answer(self._delivery, ACCEPTED)

    def rolled_back(self, why: str) -> None:
        """Nothing of it was done, or ever will be."""
        self.coordinator.reject(self._delivery, answers.ROLLBACK, why)

    def in_doubt(self, why: str) -> None:
        """Nobody knows whether it was done. No outcome says that, so the connection ends."""
        self.coordinator.session.peer.close(Condition(answers.INTERNAL_ERROR, why))


class Coordinator(Receiver):
    """Declares and discharges come by it as messages; their outcomes are the answers."""

    session: PeerSession

    def __init__(self, session: PeerSession, name: str) -> None:
        terminus = Terminus("", "queue")
        super().__init__(session, name, terminus, self._asked, window=_WINDOW, max_bytes=_MOST_BYTES, kept_bytes=0)
        self.host = session.peer.host

    def detached(self, condition: Condition | None) -> None:
        """See `Link`; what is not discharged is rolled back."""
        super().detached(condition)
        for each in [each for each in self.session.transactions.values() if each.coordinator is self]:
            self._end(each.id).discharge(0, fail=True)

    def answer(self, delivery: int, state: Described) -> None:
        """What became of a declare or discharge, if the client is still there to hear it."""
        if self.attached:
            self.session.send(disposition(Role.RECEIVER, delivery, delivery, state))

    def reject(self, delivery: int, name: str, why: str) -> None:
        """What was asked with this delivery was not done."""
        self.answer(delivery, answers.rejected(Condition(name, why)))

    def _asked(self, incoming: Incoming) -> None:
        self.taken()
        if incoming.settled:
            self.session.refuse(self, Condition(answers.NOT_ALLOWED, "it is settled, so there could be no answer"))
            return
        code, fields = outcome_of(decode(incoming.encoded).content)
        if code == Request.DECLARE:
            self._declare(incoming.delivery_id, fields)
        elif code == Request.DISCHARGE:
            self._discharge(incoming.delivery_id, fields)
        else:
            self.reject(incoming.delivery_id, answers.DECODE_ERROR, "neither a declare nor a discharge")

    def _declare(self, delivery: int, fields: list[Any]) -> None:
        transactions = self.session.transactions
        if field(fields, 0) is not None:
            self.reject(delivery, answers.NOT_IMPLEMENTED, "there are no distributed transactions here")
        elif self.session.peer.transactions.open >= (most := self.host.limits.transactions):
            self.reject(delivery, answers.RESOURCE_LIMIT, f"this client has {most} open transactions")
        else:
            begun = Transaction(self)
            begun.use.open += 1
            transactions[begun.id] = begun
            self.answer(delivery, answers.declared(begun.id))

    def _discharge(self, delivery: int, fields: list[Any]) -> None:
        identity = field(fields, 0)
        if isinstance(identity, bytes) and identity in self.session.transactions:
            self._end(identity).discharge(delivery, fail=bool(field(fields, 1)))
        else:
            self.reject(delivery, answers.UNKNOWN_TRANSACTION, "there is no such transaction any more")

    def _end(self, identity: bytes) -> Transaction:
        """Takes a transaction out of the open ones."""
        ended = self.session.transactions.pop(identity)
        ended.use.open -= 1
        return ended
