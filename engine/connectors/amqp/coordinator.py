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
_MOST_OPEN = 64
_ID_BYTES = 8
_numbers = itertools.count(1)


class Transaction:
    """What a client has done since it declared it."""

    __slots__ = ("_delivery", "coordinator", "failure", "id", "size", "work")

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.id = next(_numbers).to_bytes(_ID_BYTES)
        """No other has had it, so that nobody reaches into the transaction of another session."""
        self.work: list[Any] = []
        """What the host has noted, in order."""
        self.size = 0
        """Of the work, in bytes."""
        self.failure: Condition | None = None
        """Why it can only be rolled back; its work is undone already."""
        self._delivery = 0

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
        transactions = self.session.transactions
        for each in [each for each in transactions.values() if each.coordinator is self]:
            transactions.pop(each.id).discharge(0, fail=True)

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
        elif len(transactions) >= _MOST_OPEN:
            self.reject(delivery, answers.RESOURCE_LIMIT, f"{_MOST_OPEN} transactions are open in this session")
        else:
            begun = Transaction(self)
            transactions[begun.id] = begun
            self.answer(delivery, answers.declared(begun.id))

    def _discharge(self, delivery: int, fields: list[Any]) -> None:
        identity = field(fields, 0)
        ended = self.session.transactions.pop(identity, None) if isinstance(identity, bytes) else None
        if ended is None:
            self.reject(delivery, answers.UNKNOWN_TRANSACTION, "there is no such transaction any more")
        else:
            ended.discharge(delivery, fail=bool(field(fields, 1)))
