"""Transactions of a listener's clients, and the link by which a client declares and discharges them.

The work of a transaction is kept until the client discharges it, and is undone if the link ends before. The
`TransactionHost` decides what commit and roll-back of the work mean. Specification: OASIS AMQP 1.0, part 4.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Protocol

from engine.connectors.amqp import server_performatives
from engine.connectors.amqp.codec.sections import decode
from engine.connectors.amqp.links import LinkSession, Receiver
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
    from engine.connectors.amqp.codec.values import Described
    from engine.connectors.amqp.links import IncomingTransfer, Link
    from engine.connectors.amqp_listener.limits import ListenerLimits, TransactionUse

__all__ = ["Coordinator", "Transaction", "TransactionHost", "TransactionSession"]

_WINDOW = 100
_MOST_BYTES = 4096
_ID_BYTES = 8
_numbers = itertools.count(1)


class TransactionHost(Protocol):
    """The part of a session's host that decides on the outcome of transactions."""

    limits: ListenerLimits

    def commit(self, transaction: Transaction) -> None:
        """Commits the work of a transaction.

        Afterwards calls the transaction's `committed`, `rolled_back` or `in_doubt`.
        """

    def roll_back(self, transaction: Transaction) -> None:
        """Undoes the work of a transaction."""


class TransactionSession(LinkSession, Protocol):
    """The part of a session that transactions and their coordinator use."""

    transactions: dict[bytes, Transaction]
    """Transactions that are declared and not discharged, by id."""

    @property
    def host(self) -> TransactionHost:
        """Source or sink that the client is connected to."""

    @property
    def transaction_use(self) -> TransactionUse:
        """Amounts that all open transactions of the client use together."""

    def send(self, body: bytes) -> None:
        """Sends a performative to the client."""

    def refuse(self, link: Link, condition: Condition) -> None:
        """Ends a link with an error."""

    def disconnect(self, condition: Condition) -> None:
        """Ends the client's connection with an error."""


class Transaction:
    """Transaction of a client, and the work done in it."""

    __slots__ = ("_begun", "_delivery", "coordinator", "failure", "id", "size", "use", "work")

    def __init__(self, coordinator: Coordinator) -> None:
        self.coordinator = coordinator
        self.id = next(_numbers).to_bytes(_ID_BYTES)
        """Id that no other transaction of this process has, so that no session reaches another session's."""
        self.work: list[Any] = []
        """Messages (at a source) or answers to deliveries (at a sink) that the host has noted, in order."""
        self.size = 0
        """Encoded size of the messages in `work`, in bytes; 0 at a sink."""
        self.use = coordinator.session.transaction_use
        """Amounts that all open transactions of the client use together."""
        self.failure: Condition | None = None
        """Reason why the transaction can only be rolled back, its work being undone already; None if it can commit."""
        self._delivery = 0
        self._begun: float | None = None

    def begin(self, now: float) -> None:
        """Starts the transaction's age, at its first work.

        JMS clients declare the next transaction long before they use it, so the declare does not start the age.
        """
        if self._begun is None:
            self._begun = now

    def expire(self, now: float, seconds: float) -> None:
        """Fails the transaction if its first work was more than `seconds` ago."""
        if self.failure is None and self._begun is not None and now - self._begun > seconds:
            why = f"the transaction is open for longer than {seconds:.0f} s; commit sooner"
            self.fail(Condition(server_performatives.TRANSACTION_TIMEOUT, why))

    def fail(self, why: Condition) -> None:
        """Undoes the work; the transaction can only be rolled back from now on."""
        self.failure = why
        self.coordinator.session.host.roll_back(self)

    def discharge(self, delivery: int, *, fail: bool) -> None:
        """Commits the transaction, or rolls it back if `fail` is True.

        `delivery` is the client's discharge; the answer to it tells the result.
        """
        self._delivery = delivery
        if fail:
            if self.failure is None:
                self.coordinator.session.host.roll_back(self)
            self.committed()
        elif self.failure is not None and self.failure.name == server_performatives.TRANSACTION_TIMEOUT:
            self.coordinator.reject(delivery, *self.failure)
        elif self.failure is not None:
            self.rolled_back(str(self.failure))
        else:
            self.coordinator.session.host.commit(self)

    def committed(self) -> None:
        """Answers the discharge: it was done as the client wanted, commit or roll-back."""
        self.coordinator.answer(self._delivery, ACCEPTED)

    def rolled_back(self, why: str) -> None:
        """Answers the discharge: no work of the transaction was done, or ever will be."""
        self.coordinator.reject(self._delivery, server_performatives.ROLLBACK, why)

    def in_doubt(self, why: str) -> None:
        """Closes the client's connection, since it is unknown whether the work was done.

        AMQP has no outcome that says so.
        """
        self.coordinator.session.disconnect(Condition(server_performatives.INTERNAL_ERROR, why))


class Coordinator(Receiver):
    """Link over which a client sends declares and discharges as messages; their outcomes are the answers."""

    session: TransactionSession

    def __init__(self, session: TransactionSession, name: str) -> None:
        terminus = Terminus("", "queue")
        super().__init__(session, name, terminus, self._asked, window=_WINDOW, max_bytes=_MOST_BYTES, kept_bytes=0)

    def detached(self, condition: Condition | None) -> None:
        """Extends `Link.detached`: rolls back the link's transactions that are not discharged."""
        super().detached(condition)
        for each in [each for each in self.session.transactions.values() if each.coordinator is self]:
            self._end(each.id).discharge(0, fail=True)

    def answer(self, delivery: int, state: Described) -> None:
        """Sends the outcome of a declare or discharge, unless the link has ended."""
        if self.attached:
            self.session.send(disposition(Role.RECEIVER, delivery, delivery, state))

    def reject(self, delivery: int, name: str, why: str) -> None:
        """Sends the reason why a declare or discharge was not done."""
        self.answer(delivery, server_performatives.rejected(Condition(name, why)))

    def _asked(self, incoming: IncomingTransfer) -> None:
        self.taken()
        if incoming.settled:
            self.session.refuse(
                self, Condition(server_performatives.NOT_ALLOWED, "it is settled, so there could be no answer")
            )
            return
        code, fields = outcome_of(decode(incoming.encoded).content)
        if code == Request.DECLARE:
            self._declare(incoming.delivery_id, fields)
        elif code == Request.DISCHARGE:
            self._discharge(incoming.delivery_id, fields)
        else:
            self.reject(incoming.delivery_id, server_performatives.DECODE_ERROR, "neither a declare nor a discharge")

    def _declare(self, delivery: int, fields: list[Any]) -> None:
        transactions = self.session.transactions
        if field(fields, 0) is not None:
            self.reject(delivery, server_performatives.NOT_IMPLEMENTED, "there are no distributed transactions here")
        elif self.session.transaction_use.open >= (most := self.session.host.limits.transactions):
            self.reject(delivery, server_performatives.RESOURCE_LIMIT, f"this client has {most} open transactions")
        else:
            begun = Transaction(self)
            begun.use.open += 1
            transactions[begun.id] = begun
            self.answer(delivery, server_performatives.declared(begun.id))

    def _discharge(self, delivery: int, fields: list[Any]) -> None:
        identity = field(fields, 0)
        if isinstance(identity, bytes) and identity in self.session.transactions:
            self._end(identity).discharge(delivery, fail=bool(field(fields, 1)))
        else:
            self.reject(delivery, server_performatives.UNKNOWN_TRANSACTION, "there is no such transaction any more")

    def _end(self, identity: bytes) -> Transaction:
        """Takes a transaction out of the open ones."""
        ended = self.session.transactions.pop(identity)
        ended.use.open -= 1
        return ended
