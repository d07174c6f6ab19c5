"""Sending dead letters back through the journal, each once.

A replay writes the original into the journal and, in the same Kafka transaction, an audit record into the compacted
topic `<dead-letter topic>.replayed` whose key is the dead letter's position. So both are there or neither, and a dead
letter whose position is in the audit is not replayed again. The transactional id is made from `bridge.id`: of two
replays at once the later one goes on, the earlier one is told so.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from engine.dead_letters.letter import DeadLetter, original, topic_of
from engine.errors import HardFailureError, UnreachableError, UsageError
from engine.kafka import librdkafka
from engine.message import Message
from engine.peek import SILENT, Position, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from confluent_kafka import Message as KafkaMessage

    from engine.peek import Located
    from routes.model import Config

__all__ = ["Outcome", "Replayed", "audit_topic", "replay"]

_SECONDS = 30.0
_BATCH = 200


class Outcome(StrEnum):
    """What a replay did with one dead letter."""

    REPLAYED = "replayed"
    WOULD_REPLAY = "would replay"
    ALREADY_REPLAYED = "already replayed"
    NOT_REPLAYABLE = "not replayable"


@dataclass(frozen=True, slots=True)
class Replayed:
    """One dead letter after a replay."""

    position: Position
    outcome: Outcome
    detail: str = ""
    """Journal position of the copy (`topic:partition:offset`), or why there is none."""


def audit_topic(config: Config) -> str:
    """The compacted topic that says which dead letters were replayed."""
    return f"{topic_of(config)}.replayed"


def replay(config: Config, positions: Sequence[Position] | None, *, dry_run: bool = False) -> Iterator[Replayed]:
    """Sends dead letters back into the journal, those at `positions` or (None) all, and says what became of each.

    A dead letter is reported after its transaction is committed; on an error the ones not reported are not replayed.

    Raises:
        UsageError: a position or the dead-letter topic does not exist, or another replay took over.
        HardFailureError: Kafka does not let this user write.
        UnreachableError: Kafka does not answer.
    """
    topic = topic_of(config)
    for position in positions or ():
        if position.topic != topic:
            msg = f"{position}: dead letters are in '{topic}', not in '{position.topic}'"
            raise UsageError(msg)
    with Reader(config, topic) as reader:
        letters = map(DeadLetter, _select(reader, positions))
        if dry_run:
            done = _already(config, positions) if _exists(_admin(config), audit_topic(config)) else {}
            for letter in letters:
                yield _judged(letter, done) or Replayed(letter.position, Outcome.WOULD_REPLAY)
            return
        _create_audit(config)
        producer = _Transactions(config)
        # Read only now: init_transactions has ended whatever an earlier replay left open.
        done = _already(config, positions)
        while batch := list(islice(letters, _BATCH)):
            yield from producer.replay(batch, done)


class _Transactions:
    """Writes batches of originals and their audit records, each batch all or nothing."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._failed: list[KafkaError] = []
        settings = {**librdkafka(config, "producer"), "transactional.id": f"{config.bridge_id}.replay"}
        self._producer = Producer(settings, logger=SILENT)
        with self._translated():
            self._producer.init_transactions(_SECONDS)

    def replay(self, letters: Sequence[DeadLetter], done: dict[Position, str]) -> list[Replayed]:
        judged = {letter.position: _judged(letter, done) for letter in letters}
        chosen = [letter for letter in letters if judged[letter.position] is None]
        placed: dict[Position, str] = {}
        if chosen:
            with self._translated():
                self._producer.begin_transaction()
                try:
                    self._write(chosen, placed)
                    self._producer.commit_transaction(_SECONDS)
                except BaseException:
                    self._abort()
                    raise
        done.update(placed)
        return [
            judged[letter.position] or Replayed(letter.position, Outcome.REPLAYED, placed[letter.position])
            for letter in letters
        ]

    def _write(self, letters: Sequence[DeadLetter], placed: dict[Position, str]) -> None:
        journal = self._config.journal.topic
        for letter in letters:
            record = original(letter, self._config.bridge_id)
            position = letter.position

            def delivered(error: KafkaError | None, message: KafkaMessage, position: Position = position) -> None:
                if error is not None:
                    self._failed.append(error)
                placed[position] = f"{journal}:{message.partition()}:{message.offset()}"

            self._producer.produce(
                journal, key=record.key, value=record.value, headers=list(record.headers), on_delivery=delivered
            )
        self._flush()
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for position, copy in placed.items():
            self._producer.produce(audit_topic(self._config), key=str(position), value=f"{copy} {now}")
        self._flush()

    def _flush(self) -> None:
        left = self._producer.flush(_SECONDS)
        if self._failed:
            raise KafkaException(self._failed[0])
        if left:
            msg = f"Kafka at {self._config.bootstrap_servers} took no records for {_SECONDS:.0f} s; nothing is replayed"
            raise UnreachableError(msg)

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
        except SystemError as error:
            # confluent-kafka 2.16 runs the callbacks of messages that a fatal error ended with that error already
            # raised, which Python refuses.
            raise self._translate(self._fatal_error()) from error
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            raise self._translate(self._fatal_error() if cause.code() == KafkaError._FATAL else cause) from error

    def _fatal_error(self) -> KafkaError:
        """What has ended the producer for good: it tells when it is asked for anything about its transaction."""
        try:
            self._producer.commit_transaction(_SECONDS)
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            return cause
        return KafkaError(KafkaError._FATAL)

    def _translate(self, error: KafkaError) -> Exception:
        servers = self._config.bootstrap_servers
        if error.code() in (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED):
            return UsageError(
                f"another replay for bridge '{self._config.bridge_id}' took over; go on there or start again"
            )
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            return HardFailureError(
                f"a dead letter is larger than '{self._config.journal.topic}' takes; raise its max.message.bytes"
            )
        if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            return UnreachableError(f"Kafka at {servers} does not answer ({error.str()}); is it running?")
        return HardFailureError(f"Kafka at {servers} refuses the replay: {error.str()}")


def _select(reader: Reader, positions: Sequence[Position] | None) -> Iterable[Located]:
    if positions is None:
        # What is replayed now and fails again comes back as a new dead letter; it must not be replayed in this run.
        ends = {partition: high for partition, (_, high) in reader.bounds().items()}
        return (located for located in reader.read() if located.position.offset < ends[located.position.partition])
    return [reader.at(position.partition, position.offset) for position in dict.fromkeys(positions)]


def _judged(letter: DeadLetter, done: dict[Position, str]) -> Replayed | None:
    """What is known without trying; None: it can be replayed."""
    if (copy := done.get(letter.position)) is not None:
        return Replayed(letter.position, Outcome.ALREADY_REPLAYED, copy)
    if letter.truncated:
        return Replayed(letter.position, Outcome.NOT_REPLAYABLE, _cut(letter))
    expires = Message.from_record(letter.located.record).headers.get("JMSExpiration", "0")
    if expires.isdecimal() and 0 < int(expires) <= time.time() * 1000:
        return Replayed(letter.position, Outcome.NOT_REPLAYABLE, "it has expired since, so it would not be routed")
    return None


def _cut(letter: DeadLetter) -> str:
    if letter.journal_position:
        return f"its body was cut; the original ({letter.truncated} bytes) was at {letter.journal_position}"
    return f"its body was cut; the journal did not take the original ({letter.truncated} bytes)"


def _already(config: Config, positions: Sequence[Position] | None) -> dict[Position, str]:
    """Journal position by dead letter, from the audit; only of `positions` if given, so that memory stays small."""
    wanted = None if positions is None else set(positions)
    done: dict[Position, str] = {}
    with Reader(config, audit_topic(config)) as reader:
        for located in reader.read():
            position = Position.parse((located.record.key or b"").decode("utf-8", "replace"), topic_of(config))
            if wanted is None or position in wanted:
                done[position] = (located.record.value or b"").decode("utf-8", "replace").partition(" ")[0]
    return done


def _exists(admin: AdminClient, topic: str) -> bool:
    return topic in admin.list_topics(timeout=_SECONDS).topics


def _create_audit(config: Config) -> None:
    topic = audit_topic(config)
    admin = _admin(config)
    if _exists(admin, topic):
        return
    new = NewTopic(topic, 1, config.journal.replication, config={"cleanup.policy": "compact"})
    try:
        admin.create_topics([new], operation_timeout=_SECONDS)[topic].result(_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            msg = f"topic '{topic}' for the audit of replays cannot be created: {error.args[0].str()}"
            raise HardFailureError(msg) from error


def _admin(config: Config) -> AdminClient:
    settings: dict[str, str | int | float | bool] = {**librdkafka(config, "admin")}
    return AdminClient(settings, logger=SILENT)
