"""A journal whose records and the positions of the topics they were read from become visible together, or not at all.

Kafka's own transactions (KIP-98, KIP-447): who dies in the middle leaves nothing behind, and the next one reads from
where the last whole transaction ended.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException

from engine.errors import HardFailureError
from engine.journal import Journal, JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Event

    from confluent_kafka import TopicPartition

    from engine.journal import Done
    from engine.message import Record
    from routes.model import Config

__all__ = ["TransactionalJournal"]

_OPEN_MS = 10_000
"""An open transaction holds up whoever reads behind it: what a machine that died has begun ends after this time."""
_ANSWER_SECONDS = 30.0
_REFUSED = {
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "grant WRITE and DESCRIBE on the transactional id",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "grant READ on the group",
    KafkaError._AUTHENTICATION: "check kafka.sasl.*",
}


class TransactionalJournal(Journal):
    """One transaction after the other; each begins with the first message that is appended."""

    def __init__(self, config: Config, owner: str, stop: Event, while_full: Callable[[], None]) -> None:
        """`owner` is the same for a worker that is started again, which ends what it had begun before.

        Raises:
            JournalError: Kafka has not answered.
            HardFailureError: Kafka refuses the bridge.
        """
        identity = f"{config.bridge_id}.{owner}.{socket.gethostname()}"
        settings = {"transactional.id": identity, "transaction.timeout.ms": str(_OPEN_MS)}
        super().__init__(config, stop, while_full, settings)
        self._identity = identity
        self._begun = False
        self._call(self._producer.init_transactions, _ANSWER_SECONDS)

    @property
    def begun(self) -> bool:
        """Whether there is something to commit."""
        return self._begun

    def commit(self, positions: Sequence[TopicPartition], group: Any) -> None:
        """Makes all visible that was appended, and moves the group's positions; returns when Kafka has done both.

        Raises:
            JournalError: it did neither; this journal is of no more use.
            HardFailureError: Kafka refuses the bridge.
        """
        if not self._begun:
            return
        self.flush(_ANSWER_SECONDS)
        self._call(self._producer.send_offsets_to_transaction, list(positions), group, _ANSWER_SECONDS)
        self._call(self._producer.commit_transaction, _ANSWER_SECONDS)
        self._begun = False

    def close(self) -> None:
        """Drops the transaction that is open."""
        if self._begun:
            self._begun = False
            try:
                self._producer.abort_transaction(_ANSWER_SECONDS)
            except KafkaException:
                # Then nothing more of it can be committed either: Kafka ends it in time.
                self._producer.purge()
        super().close()

    def _write(self, topic: str, record: Record, done: Done) -> bool:
        if not self._begun:
            self._call(self._producer.begin_transaction)
            self._begun = True
        return super()._write(topic, record, done)

    def _call(self, what: Callable[..., None], *arguments: object) -> None:
        try:
            what(*arguments)
        except KafkaException as error:
            found = error.args[0]
            if remedy := _REFUSED.get(found.code()):
                msg = f"Kafka at {self._servers} refuses transactional id '{self._identity}': {remedy}"
                raise HardFailureError(msg) from error
            raise JournalError(f"a transaction at {self._servers}: {found.str()}") from error
