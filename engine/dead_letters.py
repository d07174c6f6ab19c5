"""Dead letters: reading them, and sending the original back through the journal, each once.

A dead letter is the journal record it was made from (key, value, headers) plus headers that say what went wrong; the
router writes them. A replay writes the original into the journal and, in the same Kafka transaction, an audit record
into the compacted topic `<dead-letter topic>.replayed` whose key is the dead letter's position. So both are there or
neither, and a dead letter whose position is in the audit is not replayed again. The transactional id is made from
`bridge.id`: of two replays at once the later one goes on, the earlier one is told so.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from engine.errors import HardFailureError, UnreachableError, UsageError
from engine.kafka import librdkafka
from engine.message import ORIGIN, POSITION, Message, Record
from engine.peek import Position, Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from confluent_kafka import Message as KafkaMessage

    from engine.peek import Located
    from routes.model import Config

__all__ = ["DeadLetter", "Outcome", "Replayed", "audit_topic", "original", "replay", "topic_of"]

_CONNECT = "__connect.errors."
REASON = "jmsbridge.reason"
ROUTE = "jmsbridge.route"
TIME = "jmsbridge.time"
TRUNCATED = "jmsbridge.truncated"
_OWN = frozenset({REASON, ROUTE, TIME, POSITION, TRUNCATED})
_SECONDS = 30.0
_BATCH = 200


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of the dead-letter topic, read."""

    located: Located

    @property
    def position(self) -> Position:
        """Its own place in the dead-letter topic, which is its name."""
        return self.located.position

    @property
    def reason(self) -> str:
        """Why it is here: `key-not-found`, `key-invalid`, `body-not-convertible`, `too-large`, `unmatched`."""
        return self._header(REASON)

    @property
    def detail(self) -> str:
        """The reason in a sentence."""
        return self._header(_CONNECT + "exception.message")

    @property
    def route(self) -> str:
        """Name of the route it failed in; empty if it was unmatched."""
        return self._header(ROUTE)

    @property
    def time(self) -> str:
        """When it failed, ISO 8601 in UTC."""
        return self._header(TIME)

    @property
    def journal_position(self) -> str:
        """`topic:partition:offset` of the journal record it was made from."""
        return self._header(POSITION)

    @property
    def truncated(self) -> str:
        """Size of the original in bytes if its body had to be cut, else empty."""
        return self._header(TRUNCATED)

    def _header(self, name: str) -> str:
        # The bridge's own headers were appended after those of the message, which may carry the same names.
        for key, value in reversed(self.located.record.headers):
            if key == name and value is not None:
                return value.decode("utf-8", "replace")
        return ""


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


def topic_of(config: Config) -> str:
    """The dead-letter topic; UsageError if none is configured."""
    if config.routing.dead_letter_topic is None:
        msg = f"{config.path}: no dead-letter topic; set routing.dead-letter-topic=NAME"
        raise UsageError(msg)
    return config.routing.dead_letter_topic


def audit_topic(config: Config) -> str:
    """The compacted topic that says which dead letters were replayed."""
    return f"{topic_of(config)}.replayed"


def original(letter: DeadLetter, bridge_id: str) -> Record:
    """The journal record that the dead letter was made from.

    Without what the dead letter added, and without this bridge as origin, or it would take the message for its own.
    """
    record = letter.located.record
    own = bridge_id.encode()
    headers = tuple(
        (name, value)
        for name, value in record.headers
        if not (name in _OWN or name.startswith(_CONNECT) or (name == ORIGIN and value == own))
    )
    return replace(record, headers=headers)


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
            done = _already(config, positions) if _exists(config, audit_topic(config)) else {}
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
        self._producer = Producer(
            {
                **librdkafka(config, "producer"),
                "transactional.id": f"{config.bridge_id}.replay",
                "log_level": 0,
            }
        )
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
        except KafkaException as error:
            raise self._translate(error.args[0]) from error

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
        why = (
            f"its body was cut, the original of {letter.truncated} bytes is in the journal at {letter.journal_position}"
        )
        return Replayed(letter.position, Outcome.NOT_REPLAYABLE, why)
    expires = Message.from_record(letter.located.record).headers.get("JMSExpiration", "0")
    if expires.isdecimal() and 0 < int(expires) <= time.time() * 1000:
        return Replayed(letter.position, Outcome.NOT_REPLAYABLE, "it has expired since, so it would not be routed")
    return None


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


def _exists(config: Config, topic: str) -> bool:
    try:
        return topic in _admin(config).list_topics(timeout=_SECONDS).topics
    except KafkaException as error:
        msg = f"Kafka at {config.bootstrap_servers} does not answer ({error.args[0].str()}); is it running?"
        raise UnreachableError(msg) from error


def _create_audit(config: Config) -> None:
    topic = audit_topic(config)
    if _exists(config, topic):
        return
    new = NewTopic(topic, 1, config.journal.replication, config={"cleanup.policy": "compact"})
    try:
        _admin(config).create_topics([new], operation_timeout=_SECONDS)[topic].result(_SECONDS)
    except KafkaException as error:
        code: Any = error.args[0].code()
        if code != KafkaError.TOPIC_ALREADY_EXISTS:
            msg = f"topic '{topic}' for the audit of replays cannot be created: {error.args[0].str()}"
            raise HardFailureError(msg) from error


def _admin(config: Config) -> AdminClient:
    return AdminClient({**librdkafka(config, "admin"), "log_level": 0})
