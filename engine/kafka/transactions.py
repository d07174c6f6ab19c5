"""Journal that writes records in Kafka transactions, together with the positions of the topics they were read from.

The records of a transaction become visible together or not at all (KIP-98, KIP-447). A process that dies within a
transaction leaves nothing behind, and the next one reads from where the last complete transaction ended.
"""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException

from engine.kafka.errors import MISSING, is_fatal, refusal
from engine.kafka.journal import BY_KEY, Journal, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from threading import Event

    from confluent_kafka import KafkaError, Producer, TopicPartition

    from engine.errors import HardFailureError
    from engine.kafka.clients import KafkaClients
    from engine.kafka.journal import Done
    from engine.message import Record
    from engine.tracing_section import TracingConfig

__all__ = ["InDoubtError", "TransactionalJournal", "fatal_error_first"]

_OPEN_MS = 10_000
"""Transaction timeout in milliseconds. An open transaction holds up all consumers that read behind it, so one begun by
a machine that died ends after this time."""
_ANSWER_SECONDS = 30.0


@contextmanager
def fatal_error_first(producer: Producer, seconds: float) -> Iterator[None]:
    """Raises the fatal KafkaException of a transactional producer in place of the errors that follow from it.

    Wraps calls of the producer. confluent-kafka 2.16 runs callbacks while a fatal error is raised already, so that
    every callback fails with an error of some other type. `seconds` limits the call that fetches the fatal error.
    """
    try:
        yield
    except KafkaException:
        raise
    except Exception as error:
        try:
            # Any call fetches the fatal error. This one does no harm: after such a failure nothing that is open could
            # be committed.
            producer.abort_transaction(seconds)
        except KafkaException as fatal:
            if is_fatal(fatal.args[0]):
                raise fatal from error
        raise


class InDoubtError(JournalError):
    """Kafka was asked to commit and has not said whether it did."""


class TransactionalJournal(Journal):
    """Journal with one transaction after the other; each begins with the first message appended."""

    def __init__(
        self,
        clients: KafkaClients,
        topic: str,
        tracing: TracingConfig,
        owner: str,
        stop: Event,
        while_full: Callable[[], None] = lambda: None,
    ) -> None:
        """Makes the producer, and aborts the transaction that an earlier run of this worker left open.

        `owner` names the bridge and the worker, unchanged when it is started again. The others are those of `Journal`.

        Raises:
            JournalError: Kafka does not answer.
            HardFailureError: Kafka refuses the bridge.
        """
        identity = f"{owner}.{socket.gethostname()}"
        settings = {"transactional.id": identity, "transaction.timeout.ms": str(_OPEN_MS)}
        super().__init__(clients, topic, tracing, stop, while_full, settings)
        self._identity = identity
        self._begun = False
        self._failure: Exception | None = None
        """Reason why a record of the transaction cannot be written, and so none of them; None while all can."""
        self._ask(self._producer.init_transactions, _ANSWER_SECONDS)

    @property
    def begun(self) -> bool:
        """True if a transaction is open."""
        return self._begun

    def move(self, positions: Sequence[TopicPartition], group: Any) -> None:
        """Adds the positions of a consumer group to the open transaction.

        Raises:
            JournalError: the transaction has failed; this journal cannot be used any more.
            HardFailureError: Kafka refuses the bridge.
        """
        self._ask(self._producer.send_offsets_to_transaction, list(positions), group, _ANSWER_SECONDS)

    def commit(self) -> None:
        """Commits the open transaction; returns when Kafka has done so.

        Raises:
            InDoubtError: Kafka may have committed it or not; this journal cannot be used any more.
            JournalError: Kafka has not committed it and never will; this journal cannot be used any more.
            HardFailureError: Kafka refuses the bridge.
        """
        if not self._begun:
            return
        if not self.flush(_ANSWER_SECONDS):
            raise JournalError(f"Kafka at {self._servers} has not taken a transaction for {_ANSWER_SECONDS:.0f} s")
        if self._failure:
            raise self._failure
        deadline = time.monotonic() + _ANSWER_SECONDS
        while self._begun:
            try:
                self._told(self._producer.commit_transaction, max(deadline - time.monotonic(), 0))
            except KafkaException as error:
                found = error.args[0]
                if found.retriable() and time.monotonic() < deadline:
                    continue
                if found.txn_requires_abort() or self._refusal_of(found):
                    raise self._unfit(found) from error
                msg = f"Kafka at {self._servers} has not said whether a transaction is committed: {found.str()}"
                raise InDoubtError(msg) from error
            self._begun = False

    def close(self) -> None:
        """Aborts the open transaction; otherwise like `Journal.close`."""
        if self._begun:
            self._begun = False
            try:
                self._told(self._producer.abort_transaction, _ANSWER_SECONDS)
            except KafkaException:
                # After this error the transaction cannot be committed either: Kafka ends it in time.
                self._producer.purge()
        super().close()

    def _write(self, topic: str, record: Record, done: Done, partition: int = BY_KEY) -> bool:
        if not self._begun:
            self._ask(self._producer.begin_transaction)
            self._begun = True
        return super()._write(topic, record, done, partition)

    def _delivered(self, done: Done, error: KafkaError | None, message: object) -> None:
        if error is not None and self._failure is None:
            self._failure = self._translated(error, message.topic())  # type: ignore[attr-defined]
        super()._delivered(done, error, message)

    def _ask(self, what: Callable[..., None], *arguments: object) -> None:
        try:
            self._told(what, *arguments)
        except KafkaException as error:
            raise self._unfit(error.args[0]) from error

    def _call(self, what: Callable[..., int], *arguments: object) -> int:
        return super()._call(self._told, what, *arguments)

    def _told(self, what: Callable[..., Any], *arguments: object) -> Any:
        with fatal_error_first(self._producer, _ANSWER_SECONDS):
            return what(*arguments)

    def _unfit(self, error: KafkaError) -> Exception:
        return self._refusal_of(error) or JournalError(f"a transaction at {self._servers}: {error.str()}")

    def _refusal_of(self, error: KafkaError) -> HardFailureError | None:
        # A missing topic is one that a source reads, and the source waits for that.
        what = f"transactional id '{self._identity}'"
        return None if error.code() in MISSING else refusal(error, self._servers, what, "WRITE")
