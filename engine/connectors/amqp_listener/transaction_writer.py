"""Commits of clients' transactions to the journal, each transaction as a whole or not at all.

Kafka takes some milliseconds for a commit, so a thread of its own waits for it while all other messages go on.
Transactions that clients commit during that wait enter the next Kafka transaction together. The memory of one client's
transactions is bounded, and that of all clients' transactions.
"""

from __future__ import annotations

import time
from collections import deque
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from engine.connectors.amqp import server_performatives
from engine.connectors.amqp.performatives import Condition
from engine.kafka.journal import JournalError, JournalTooLargeError
from engine.kafka.transactions import InDoubtError
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.limits import ListenerLimits
    from engine.kafka.transactions import TransactionalJournal
    from engine.message import Message

__all__ = ["TransactionWriter"]

_CLOSE_SECONDS = 10.0
_log = structlog.get_logger(__name__)


class TransactionWriter:
    """Commits of a listener source, from `connect` to `close`.

    One thread at a time may call it; `_run`, and what that calls, is the commits thread.
    """

    def __init__(
        self,
        journal: Callable[[Event], TransactionalJournal],
        wake: Callable[[], None],
        limits: ListenerLimits,
    ) -> None:
        """Takes `journal`, which opens a journal at the first commit and again after a failure.

        `journal` gets an event that ends its waiting for room. The commits thread calls `wake` when `end` or `check`
        has decided something.
        """
        self._open_journal = journal
        self._wake = wake
        self._limits = limits
        self._messages = 0
        self._bytes = 0
        self._asked: SimpleQueue[Transaction | None] = SimpleQueue()
        self._undecided = 0
        self._progress = 0.0
        self._decided: deque[tuple[Transaction, str | None, bool]] = deque()
        """Transaction, reason why it is not committed (None: it is), and True if the outcome is known."""
        self._stop = Event()
        self._thread: Thread | None = None
        self._journal: TransactionalJournal | None = None
        self._fault: Exception | None = None

    def take(self, transaction: Transaction, message: Message, size: int) -> Condition | None:
        """Adds a message to a transaction; `size` is its encoded size in bytes.

        Returns:
            The reason why the message cannot be added; None if it was added.
        """
        use, limits = transaction.use, self._limits
        full = use.messages >= limits.transaction_messages or use.bytes + size > limits.transaction_bytes
        # A message may be larger than the limit if it is the only one in the client's transactions.
        if full and use.messages:
            most = f"{limits.transaction_messages} messages or {limits.transaction_bytes >> 20} MiB"
            return Condition(
                server_performatives.RESOURCE_LIMIT, f"more than {most} in a client's transactions; commit sooner"
            )
        if limits.message_pool.is_spent(use.messages, self._messages) or limits.byte_pool.is_spent(
            use.bytes, self._bytes, size
        ):
            return Condition(
                server_performatives.RESOURCE_LIMIT, "too much waits in all clients' transactions; try again later"
            )
        transaction.work.append(message)
        transaction.size += size
        self._count(transaction, 1, size)
        return None

    def _count(self, transaction: Transaction, messages: int, size: int) -> None:
        self._messages += messages
        self._bytes += size
        transaction.use.messages += messages
        transaction.use.bytes += size

    def forget(self, transaction: Transaction) -> None:
        """Drops the messages of a transaction, which no longer count towards the limits."""
        self._count(transaction, -len(transaction.work), -transaction.size)
        transaction.work, transaction.size = [], 0

    def ask(self, transaction: Transaction) -> None:
        """Hands a transaction to the commits thread; one without messages is committed at once."""
        if not transaction.work:
            transaction.committed()
            return
        if not self._undecided:
            self._progress = time.monotonic()
        self._undecided += 1
        if self._thread is None:
            self._thread = Thread(target=self._run, name="commits", daemon=True)
            self._thread.start()
        self._asked.put(transaction)

    def end(self) -> int:
        """Tells transactions their outcomes; returns the number of messages that were committed."""
        committed = 0
        while self._decided:
            transaction, why, known = self._decided.popleft()
            self._undecided -= 1
            self._progress = time.monotonic()
            if why is None:
                committed += len(transaction.work)
                transaction.committed()
            elif known:
                transaction.rolled_back(why)
            else:
                transaction.in_doubt(why)
            self.forget(transaction)
        return committed

    @property
    def stalled_seconds(self) -> float:
        """Seconds without an outcome while transactions wait for theirs; 0 if none waits."""
        return time.monotonic() - self._progress if self._undecided else 0.0

    def check(self) -> None:
        """Raises the error that has ended the commits thread, which is a fault of the program."""
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        """Ends the commits thread, after up to ten seconds for transactions that wait for their outcomes.

        Clients of transactions without an outcome by then have to repeat them without knowing the outcome.
        """
        if self._thread is not None:
            self._stop.set()
            self._asked.put(None)
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            while batch := self._batch():
                self._commit(batch)
        except Exception as error:
            # `check` raises it on the thread of the loop.
            self._fault = error
            self._wake()
        finally:
            self._drop()

    def _batch(self) -> Sequence[Transaction]:
        """Next transactions for one Kafka transaction, up to the limit of messages; empty if the thread has to end."""
        batch: list[Transaction] = []
        messages = 0
        while not batch or (messages < self._limits.transaction_messages and not self._asked.empty()):
            transaction = self._asked.get()
            if transaction is None:
                # The end is marked again, to be found after this batch.
                if batch:
                    self._asked.put(None)
                break
            batch.append(transaction)
            messages += len(transaction.work)
        return batch

    def _commit(self, batch: Sequence[Transaction]) -> None:
        why, known = None, True
        try:
            self._write([message for each in batch for message in each.work])
        except InDoubtError as error:
            why, known = str(error), False
        except (JournalError, JournalTooLargeError, BridgeError) as error:
            why = str(error)
        self._decided.extend((each, why, known) for each in batch)
        self._wake()
        if why is not None:
            _log.warning("not committed", transactions=len(batch), why=why, in_doubt=not known)
            self._drop()

    def _write(self, messages: Sequence[Message]) -> None:
        if self._journal is None:
            self._journal = self._open_journal(self._stop)
        for message in messages:
            if not self._journal.append(message, _confirmed):
                raise JournalError("the bridge stops")
        self._journal.commit()

    def _drop(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()


def _confirmed(error: Exception | None) -> None:
    """Ignores the confirmation of a record, since `TransactionalJournal.commit` raises the first error."""
