"""Transactions of a listener's clients on their way into the journal, each as a whole or not at all.

Kafka takes its time for each commit, so a thread of its own waits for it, and all other messages go on meanwhile. What
clients commit while it waits goes into the next transaction of Kafka together. Nothing here is unbounded: not one
transaction, and not all of them.
"""

from __future__ import annotations

import time
from collections import deque
from queue import SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog

from engine.connectors.amqp import answers
from engine.connectors.amqp.performatives import Condition
from engine.connectors.transactions import InDoubtError
from engine.journal import JournalError, JournalTooLargeError
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.connectors.amqp.coordinator import Transaction
    from engine.connectors.amqp.limits import ListenerLimits
    from engine.connectors.transactions import TransactionalJournal
    from engine.message import Message

__all__ = ["Commits"]

_CLOSE_SECONDS = 10.0
_log = structlog.get_logger(__name__)


class Commits:
    """Of one time of listening. For one thread, apart from what `_run` does."""

    def __init__(
        self,
        journal: Callable[[Event], TransactionalJournal],
        wake: Callable[[], None],
        limits: ListenerLimits,
    ) -> None:
        """`journal` is asked for one on first use, and again after a failure; an event ends its waiting for room.

        `wake` is called on the other thread when there is something to tell.
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
        """Why it is not committed, and whether that is known."""
        self._stop = Event()
        self._thread: Thread | None = None
        self._journal: TransactionalJournal | None = None
        self._fault: Exception | None = None

    def take(self, transaction: Transaction, message: Message, size: int) -> Condition | None:
        """A message becomes part of a transaction; why it cannot."""
        use, limits = transaction.use, self._limits
        full = use.messages >= limits.transaction_messages or use.bytes + size > limits.transaction_bytes
        # A single message may be larger.
        if full and use.messages:
            most = f"{limits.transaction_messages} messages or {limits.transaction_bytes >> 20} MiB"
            return Condition(answers.RESOURCE_LIMIT, f"more than {most} in a client's transactions; commit sooner")
        if limits.message_pool.is_spent(use.messages, self._messages) or limits.byte_pool.is_spent(
            use.bytes, self._bytes, size
        ):
            return Condition(answers.RESOURCE_LIMIT, "too much waits in all clients' transactions; try again later")
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
        """Its messages are of no more use here."""
        self._count(transaction, -len(transaction.work), -transaction.size)
        transaction.work, transaction.size = [], 0

    def ask(self, transaction: Transaction) -> None:
        """It is to be committed."""
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

    def tell(self) -> int:
        """Tells transactions what became of them; how many messages were committed."""
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
        """For how long nothing that was asked for has been decided."""
        return time.monotonic() - self._progress if self._undecided else 0.0

    def check(self) -> None:
        """Raises what has ended the thread, which is a fault of ours."""
        if self._fault is not None:
            raise self._fault

    def close(self) -> None:
        """Waits a while for what is asked for; the rest its clients have to ask again, not knowing."""
        if self._thread is not None:
            self._stop.set()
            self._asked.put(None)
            self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            while batch := self._batch():
                self._commit(batch)
        except Exception as error:
            # `check` tells of it.
            self._fault = error
            self._wake()
        finally:
            self._drop()

    def _batch(self) -> Sequence[Transaction]:
        """What waits to be committed, as far as it fits into one transaction of Kafka; nothing: it is time to end."""
        batch: list[Transaction] = []
        messages = 0
        while not batch or (messages < self._limits.transaction_messages and not self._asked.empty()):
            transaction = self._asked.get()
            if transaction is None:
                # Once more, for when these are done.
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
    """Committing tells of the first error."""
