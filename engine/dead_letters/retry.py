"""Replays of dead letters by the bridge itself: retries, and messages that were held while their route was paused.

By `routing.retry` each letter is replayed after a pause, a few times. Held messages (`DeadLetter.is_held`) are replayed
as soon as their route is not paused any more, in the order of their topic, which for each key is that of the journal.

Runs in a thread of the supervisor while the bridge leads. A retry is a replay like others, with an entry in the audit.
It has a transactional id of its own, so that it and an operator's replay do not end each other; that leaves out the
letters which are still to be retried.
"""

from __future__ import annotations

import heapq
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import structlog

from engine.background import BackgroundTask, ErrorLog
from engine.dead_letters.audit import Actor, AuditTail
from engine.dead_letters.correction import Correction
from engine.dead_letters.letter import DeadLetter
from engine.dead_letters.pace import MOST_BYTES, MOST_MESSAGES
from engine.dead_letters.replay import Options, ReplayOutcome, SettledLetters, commit, replay_judge
from engine.dead_letters.store import DeadLetterStore
from engine.dead_letters.transactions import Transactions
from engine.errors import UsageError
from engine.kafka.offsets import KafkaOffsets
from engine.kafka.reader import KafkaTopicReader, Position
from engine.kafka.topics import ensure_audit_topic

if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Event

    from engine.kafka.offsets import TopicFacts
    from routes.model import Config

__all__ = ["Retries"]

_LOOK_SECONDS = 1.0
_PAUSE_SECONDS = 10.0
"""Time after an error, such as a Kafka that is away, before another attempt."""
_JOIN_SECONDS = 8.0
_MOST_WAITING = 1_000_000
"""Most letters whose times are known at once; the others wait in their topic."""
_USER = "jms-bridge"
_COMMAND = "routing.retry"

_log = structlog.get_logger(__name__)


class Retries(BackgroundTask):
    """Replays dead letters when they are due."""

    def __init__(
        self, config: Callable[[], Config], is_wanted: Callable[[], bool], held: Callable[[], int] = lambda: 0
    ) -> None:
        """Creates it for the configuration in force; nothing is replayed while `is_wanted` is false.

        `held` returns the number of held messages; without any, and without `routing.retry`, no letter is read.
        """
        super().__init__("retries", _JOIN_SECONDS)
        self._held = held
        self._config = config
        self._is_wanted = is_wanted
        self._schedule: _Schedule | None = None
        self._errors = ErrorLog(_log, "dead letters cannot be retried")

    def run(self) -> None:
        """Looks each second for letters that are due, while the bridge leads."""
        pause = _LOOK_SECONDS
        while not self._stop.wait(pause):
            pause = _LOOK_SECONDS
            config = self._config()
            if self._schedule is not None and self._schedule.config is not config:
                self._drop()
            if not (config.routing.retry or self._held()) or not self._is_wanted():
                self._drop()
                continue
            try:
                self._schedule = self._schedule or _Schedule(config)
                self._schedule.advance(self._stop)
                self._errors.over()
            except Exception as error:
                self._drop()
                self._errors.note(error)
                pause = _PAUSE_SECONDS
        self._drop()

    def _drop(self) -> None:
        if self._schedule is not None:
            self._schedule.close()
            self._schedule = None


class _Schedule:
    """The letters of the topic that are to be retried, by the time at which they are due."""

    def __init__(self, config: Config) -> None:
        """Begins at the first letter of the topic."""
        self.config = config
        self._store = DeadLetterStore.of(config)
        self._pauses_ms = [round(seconds * 1000) for seconds in config.routing.retry]
        self._paused = frozenset(route.name for route in config.routes if route.paused)
        self._released = 0
        """Number of held messages that were replayed since the last report."""
        self._kafka = KafkaOffsets(self._store.kafka)
        self._topic: TopicFacts | None = None
        """The topic as it was when `_reader` was opened."""
        self._opened = ExitStack()
        """Resources that `close` frees."""
        self._reader: KafkaTopicReader | None = None
        self._next: dict[int, int] = {}
        """Offset by partition of the first letter that was not read yet."""
        self._due: list[tuple[int, Position]] = []
        """Heap of times, in milliseconds since 1970, and letters."""
        self._done = SettledLetters()
        self._audit: AuditTail | None = None
        self._bodies = self._store.bodies()
        self._transactions: Transactions | None = None

    def advance(self, stop: Event) -> None:
        """Reads new letters, and replays those that are due.

        Raises:
            UsageError: another bridge retries.
            HardFailureError: Kafka refuses something.
            UnreachableError: Kafka does not answer.
        """
        topic = self._kafka.topics([self._store.topic]).get(self._store.topic)
        if topic is None:
            return
        self._read(self._follow(topic))
        while self._due and self._due[0][0] <= time.time() * 1000 and not stop.is_set():
            self._replay()
        if self._released and not stop.is_set():
            _log.info("all held messages of resumed routes are replayed", messages=self._released)
            self._released = 0

    def close(self) -> None:
        """Closes the reader and the folder of bodies."""
        self._opened.close()
        self._bodies.close()

    def _follow(self, topic: TopicFacts) -> KafkaTopicReader:
        """The reader of the topic as it is now; begins anew with a topic that was created again."""
        if self._reader is None or topic != self._topic:
            if self._topic is None or topic.id != self._topic.id:
                self._topic, self._next, self._due, self._transactions = topic, {}, [], None
                self._follow_audit(anew=True)
            self._opened.close()
            self._topic = topic
            self._reader = self._opened.enter_context(KafkaTopicReader(self._store.kafka, self._store.topic))
        return self._reader

    def _read(self, reader: KafkaTopicReader) -> None:
        """Reads new letters, which are due after the pause of their attempt."""
        bounds = reader.bounds()
        room = _MOST_WAITING - len(self._due)
        starts = {each: max(low, self._next.get(each, low)) for each, (low, _) in bounds.items()}
        for located in reader.read(starts, {each: high for each, (_, high) in bounds.items()}):
            letter, position = DeadLetter(located), located.position
            due = self._due_ms(letter)
            if due is not None and self._done.entry(letter) is None:
                if not room:
                    return
                room -= 1
                heapq.heappush(self._due, (due, position))
            self._next[position.partition] = position.offset + 1

    def _due_ms(self, letter: DeadLetter) -> int | None:
        """The time at which a letter is to be replayed, in milliseconds since 1970; None: not by the bridge."""
        if letter.is_held:
            # The same time for all: they are then replayed in the order of their positions.
            return None if letter.route in self._paused else 0
        if letter.replays < len(self._pauses_ms):
            return letter.time_ms + self._pauses_ms[letter.replays]
        return None

    def _replay(self) -> None:
        """Replays the next letters that are due, in one transaction."""
        if self._transactions is None:
            ensure_audit_topic(self._store.kafka, self._store.topic, self._store.journal.replication)
            actor = Actor(_USER, Actor.here().host, _COMMAND)
            # It ends what another bridge has left open; so the audit is read anew.
            self._transactions = Transactions(
                self._store, actor, self._topic_id, self._bodies, Correction(), purpose="retry"
            )
            self._follow_audit(anew=True)
        letters = self._taken(time.time() * 1000)
        # Letters are discarded meanwhile.
        self._follow_audit()
        judge = replay_judge(self._store, Options(), self._bodies)
        batch = [(letter, judge(letter, self._done.entry(letter))) for letter in letters]
        for each in commit(self._transactions, batch, self._done):
            if each.letter.is_held and each.outcome is ReplayOutcome.REPLAYED:
                self._released += 1
                continue
            _log.info(
                "dead letter retried",
                position=str(each.position),
                outcome=str(each.outcome),
                detail=each.detail,
                attempt=each.letter.replays + 1,
                attempts=len(self._pauses_ms),
            )

    def _taken(self, now_ms: float) -> list[DeadLetter]:
        """Takes letters that are due from the heap, as many as fit into a transaction."""
        letters: list[DeadLetter] = []
        room = MOST_BYTES
        with KafkaTopicReader(self._store.kafka, self._store.topic, scattered=True) as reader:
            while self._due and self._due[0][0] <= now_ms and len(letters) < MOST_MESSAGES and room > 0:
                position = heapq.heappop(self._due)[1]
                try:
                    letters.append(DeadLetter(reader.at(position.partition, position.offset)))
                except UsageError:
                    # Retention has removed it.
                    continue
                room -= letters[-1].located.record.size
        return letters

    @property
    def _topic_id(self) -> str:
        return "" if self._topic is None else self._topic.id

    def _follow_audit(self, *, anew: bool = False) -> None:
        """Reads new entries of the audit, or all of them."""
        if self._audit is None or anew:
            self._audit, self._done = AuditTail(self._store, self._store.topic, self._topic_id), SettledLetters()
        for entry in self._audit.read():
            self._done.note(entry)
