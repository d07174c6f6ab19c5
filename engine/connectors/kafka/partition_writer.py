"""Writer of the messages of one partition of a sink's topic to another Kafka cluster, in transactions."""

from __future__ import annotations

import uuid
from functools import partial
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError, Outcome
from engine.errors import HardFailureError
from engine.kafka.errors import refusal, remedy
from engine.kafka.transactions import fatal_error_first
from engine.kafka.types import KafkaException
from engine.trace_context import published

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.kafka.settings import KafkaSinkConfig
    from engine.connectors.kafka.target_topics import TargetTopics
    from engine.connectors.position_sink import SinkPosition
    from engine.kafka.clients import KafkaClients
    from engine.kafka.types import KafkaError, Producer

__all__ = ["PartitionWriter"]

_OPEN_MS = 15_000
"""Transaction timeout in milliseconds: an open transaction holds up all consumers that read behind it."""
_ANSWER_SECONDS = 10.0
_BATCH_BYTES = 128 * 1024
"""Size of a request to a partition: Kafka refuses a batch above the limit of a topic as a whole, so only a single
record may come near it."""
_SETTLED = (None, 0)


class PartitionWriter:
    """Writer of one partition; for one thread at a time."""

    def __init__(
        self,
        kafka: KafkaClients,
        endpoint: SystemEndpoint[KafkaSinkConfig],
        topics: TargetTopics,
        partition: int,
        position: SinkPosition,
    ) -> None:
        """Sets up the writer without connecting; partition -1 is that of messages from no topic."""
        self.position = position
        """Position in the partition; the caller gives it the one that was kept, after `open`."""
        self._kafka = kafka
        self._tracing = endpoint.tracing
        self._topics = topics
        self._has_position = partition >= 0
        self._position_topic = endpoint.settings.position_topic
        owner = f"{endpoint.bridge_id}.sink.{endpoint.settings.name}"
        self._identity = f"{owner}.{partition if self._has_position else uuid.uuid4().hex}"
        self._producer: Producer | None = None

    def open(self) -> None:
        """Makes the producer, which fences the one before with this partition and ends its open transaction.

        Raises:
            NotConnectedError: the cluster does not answer.
            HardFailureError: it refuses the login or the transactional id.
        """
        settings = {"transactional.id": self._identity, "transaction.timeout.ms": str(_OPEN_MS)}
        sizes = {"batch.size": str(_BATCH_BYTES)}
        made = self._kafka.producer({**settings, "error_cb": lambda _: None}, sizes)
        self._told(made, made.init_transactions, _ANSWER_SECONDS)
        self._producer = made

    def write(self, messages: Sequence[Outgoing]) -> Sequence[Outcome]:
        """Writes messages with the position behind them in one transaction, and returns their results.

        Messages that the cluster has already are left out, and those that it refuses: what it refuses ends a
        transaction, and the others are written in the next one.

        Raises:
            NotConnectedError: the transaction failed, perhaps because another worker has the partition now.
        """
        if self._producer is None:
            raise NotConnectedError("not connected")
        has = self.position.has if self._has_position else _never
        outcomes = [Outcome(each.number) for each in messages if has(each)]
        left = [each for each in messages if not has(each)]
        refused = {each.number: why for each in left if (why := self._topics.fault(each.address))}
        while left:
            self._told(self._producer, self._producer.begin_transaction)
            failed = self._written(self._producer, [each for each in left if each.number not in refused])
            if not failed:
                self._commit(self._producer, left, refused)
                return [*outcomes, *(Outcome(each.number, refused.get(each.number)) for each in left)]
            self._told(self._producer, self._producer.abort_transaction, _ANSWER_SECONDS)
            refused |= failed
        return outcomes

    def close(self) -> None:
        """Aborts an open transaction, without waiting for long; the next writer of the partition does it otherwise."""
        made, self._producer = self._producer, None
        if made is not None:
            made.purge()
            made.flush(0)

    def _written(self, client: Producer, messages: Sequence[Outgoing]) -> dict[int, str]:
        """Hands messages to Kafka, and returns the reasons for which it refuses some, by their numbers.

        Raises:
            NotConnectedError: Kafka does not take them, for a reason that may pass.
        """
        errors: dict[int, KafkaError] = {}
        for each in messages:
            record = each.message.to_record(published(each.message, self._tracing))
            key = record.key if each.key is None else each.key
            try:
                client.produce(
                    each.address,
                    record.value,
                    key,
                    headers=list(record.headers),
                    timestamp=each.timestamp_ms,
                    on_delivery=partial(_note, errors, each.number),
                )
            except KafkaException as error:
                errors[each.number] = error.args[0]
            except BufferError as error:
                raise NotConnectedError("Kafka takes no more records at present") from error
            client.poll(0)
        self._flush(client)
        addresses = {each.number: each.address for each in messages}
        refused = {number: self._topics.refusal(addresses[number], error) for number, error in errors.items()}
        reasons = {number: why for number, why in refused.items() if why is not None}
        if errors and not reasons:
            raise self._unfit(next(iter(errors.values())))
        return reasons

    def _commit(self, client: Producer, messages: Sequence[Outgoing], refused: dict[int, str]) -> None:
        """Writes the position behind the messages, and commits."""
        if self._has_position:
            for each in messages:
                self.position.pass_by(each, is_refused=each.number in refused)
            errors: dict[int, KafkaError] = {}
            client.produce(
                self._position_topic,
                self.position.write().encode(),
                self.position.name.encode(),
                on_delivery=partial(_note, errors, 0),
            )
            self._flush(client)
            if errors:
                raise self._unfit(errors[0])
        self._told(client, client.commit_transaction, _ANSWER_SECONDS)

    def _flush(self, client: Producer) -> None:
        if self._told(client, client.flush, _ANSWER_SECONDS) not in _SETTLED:
            raise NotConnectedError(f"Kafka has not taken messages for {_ANSWER_SECONDS:.0f} s")

    def _told(self, client: Producer, what: Callable[..., object], *arguments: object) -> object:
        try:
            with fatal_error_first(client, _ANSWER_SECONDS):
                return what(*arguments)
        except KafkaException as error:
            raise self._unfit(error.args[0]) from error

    def _unfit(self, error: KafkaError) -> Exception:
        what = f"transactional id '{self._identity}'"
        refused: HardFailureError | None = None
        if remedy(error) is not None and self._producer is None:
            refused = refusal(error, self._kafka.servers, what, "WRITE", self._kafka.access.keys)
        return refused or NotConnectedError(f"a transaction is not committed: {error.str()}")


def _never(_: Outgoing) -> bool:
    return False


def _note(errors: dict[int, KafkaError], number: int, error: KafkaError | None, _: object) -> None:
    if error is not None:
        errors[number] = error
