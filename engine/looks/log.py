"""The topics of the audits of looks and of actions: entries are written first, and read again, the newest last.

A body is shown, and a message changed, once its entry is there. Each topic is beside the journal, has one partition,
and keeps its entries for `http.looks-retention`. They are others than the audit of dead letters: that keeps the last
entry of each position for ever, and is read as a whole.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Self, TypeVar

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.errors import PASSING, refusal, unavailable
from engine.kafka.reader import KafkaTopicReader
from engine.kafka.topics import ACTIONS, LOOKS, ensure_looks_topic, exists
from engine.kafka.types import KafkaException
from engine.looks.action import AuditedAction, merged
from engine.looks.look import Look
from engine.telemetry.http_section import HttpConfig
from routes.targets import actions_topic, looks_topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.kafka.reader import LocatedRecord, Position
    from engine.kafka.types import KafkaError, KafkaMessage, Producer
    from engine.looks.action import ActionQuestion
    from engine.looks.entry import UserEntry
    from routes.errors import BridgeError
    from routes.model import Config

__all__ = ["LookLog", "LookTopic", "last_actions", "last_looks"]

_SECONDS = 2.0
"""Time within which Kafka has to take an entry: less than a page may take."""
_MOST_SEEN = 10_000
_SETTINGS = {"acks": "all", "enable.idempotence": False, "linger.ms": 0, "message.timeout.ms": round(_SECONDS * 1000)}

_EntryT = TypeVar("_EntryT", bound="UserEntry")
_Mark = tuple[str, str, str, bool, "Position"]


@dataclass(frozen=True, slots=True)
class LookTopic:
    """The topic of an audit of one bridge: that of looks, or that of actions."""

    kafka: KafkaClients
    name: str
    replication: int
    """Replication at creation; -1: the cluster's default."""
    retention_ms: int
    """Retention at creation, in milliseconds; -1: for ever."""
    what: str = LOOKS
    """Name of the audit, for the text of errors."""

    @classmethod
    def of(cls, config: Config) -> Self:
        """Takes the parts of a configuration, for the audit of looks."""
        journal = config.journal
        retention_ms = config.section(HttpConfig).looks_retention_ms
        return cls(KafkaClients(config.kafka_access), looks_topic(journal.topic), journal.replication, retention_ms)

    @classmethod
    def of_actions(cls, config: Config) -> Self:
        """Takes the parts of a configuration, for the audit of actions."""
        return replace(cls.of(config), name=actions_topic(config.journal.topic), what=ACTIONS)


class LookLog:
    """Writer of an audit, which connects when the first entry is written. Safe from any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._lock = Lock()
        self._seen: dict[_Mark, float] = {}
        """Times of looks that are not written again for a while, the latest at the end."""
        self._topic: LookTopic | None = None
        self._producer: Producer | None = None

    def write(self, topic: LookTopic, look: Look, *, once_seconds: float = 0.0) -> None:
        """Writes an entry, and returns when Kafka has it; creates the topic if it is missing.

        Records that the same user saw in the same way within the last `once_seconds` are left out; an entry without
        records or state is not written.

        Raises:
            HardFailureError: Kafka refuses the topic or the entry.
            UnreachableError: Kafka does not take it within two seconds.
        """
        if once_seconds:
            look = replace(look, records=tuple(self._not_seen(look, once_seconds)))
        if look.records or look.state:
            self._write(topic, look)
        if once_seconds:
            self._remember(look)

    def note(self, topic: LookTopic, entry: AuditedAction) -> None:
        """Writes an entry of the audit of actions; as `write`."""
        self._write(topic, entry)

    def _not_seen(self, look: Look, seconds: float) -> Iterator[Position]:
        now = self._clock()
        with self._lock:
            for each in look.records:
                at = self._seen.get(_mark(look, each))
                if at is None or now - at >= seconds:
                    yield each

    def _remember(self, look: Look) -> None:
        now = self._clock()
        with self._lock:
            for each in look.records:
                mark = _mark(look, each)
                self._seen.pop(mark, None)
                self._seen[mark] = now
            while len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]

    def _write(self, topic: LookTopic, entry: UserEntry) -> None:
        outcome: list[KafkaError | None] = []

        def told(error: KafkaError | None, _: KafkaMessage) -> None:
            outcome.append(error)

        try:
            connected = self._connected(topic)
            connected.produce(topic.name, value=entry.to_json(), on_delivery=told)
            connected.flush(_SECONDS)
            failure = outcome[0] if outcome else None
        except BufferError:
            failure = None
        except KafkaException as error:
            failure = error.args[0]
        # Compared with None by `==`, an error of the client fails.
        if outcome and outcome[0] is None:
            return
        # The topic may be gone.
        with self._lock:
            self._topic = None
        raise _error(topic, failure)

    def _connected(self, topic: LookTopic) -> Producer:
        with self._lock:
            if self._producer is None or topic != self._topic:
                ensure_looks_topic(topic.kafka, topic.name, topic.replication, topic.retention_ms, _SECONDS, topic.what)
                self._producer = topic.kafka.producer(_SETTINGS)
                self._topic = topic
            return self._producer


def _error(topic: LookTopic, failure: KafkaError | None) -> BridgeError:
    """The error of an entry that Kafka has not taken, with its reason if Kafka gave one."""
    servers, what = topic.kafka.servers, f"{topic.what} in topic '{topic.name}'"
    if failure is None or failure.code() in PASSING:
        why = failure.str() if failure else f"no answer within {_SECONDS:g} s"
        return UnreachableError(f"{what} cannot be written: {unavailable(servers, why)}")
    found = refusal(failure, servers, what, "WRITE")
    return found or HardFailureError(f"Kafka at {servers} refuses {what}: {failure.str()}")


def _mark(look: Look, at: Position) -> _Mark:
    return look.user, look.host, look.way, look.masked, at


def last_looks(topic: LookTopic, count: int, seconds: float, user: str = "") -> list[Look]:
    """Returns the newest entries, `count` at most, oldest first; none if the topic does not exist yet.

    With a `user`, only those whose user name has this text, in any case.

    Raises:
        HardFailureError: Kafka does not let this user read the topic.
        UnreachableError: Kafka does not answer within `seconds`.
    """
    return _last(topic, Look.parse, lambda look: user.casefold() in look.user.casefold(), count, seconds)


def last_actions(topic: LookTopic, question: ActionQuestion, count: int, seconds: float) -> list[AuditedAction]:
    """Returns the newest actions that are asked for, `count` at most, oldest first; raises as `last_looks`."""
    # Each action has two entries.
    return merged(_last(topic, AuditedAction.parse, question.takes, 2 * count, seconds))[-count:]


def _last(
    topic: LookTopic,
    parse: Callable[[bytes | None], _EntryT | None],
    takes: Callable[[_EntryT], bool],
    count: int,
    seconds: float,
) -> list[_EntryT]:
    if not exists(topic.kafka, topic.name, seconds):
        return []

    def is_asked_for(located: LocatedRecord) -> bool:
        entry = parse(located.record.value)
        return entry is not None and takes(entry)

    with KafkaTopicReader(topic.kafka, topic.name, seconds) as reader:
        found = (parse(located.record.value) for located in reader.last(count, is_asked_for))
        return [entry for entry in found if entry is not None]
