"""Watch over the dead letters: how many are open, why, since when, and whether their topic can be reached.

Runs in a thread of the supervisor while the bridge leads. The figures come from the topics themselves, so that they are
true after any restart: everything is read once, and from then on each new record. Dead letters are read to their end
before the audit that says which of them are settled.
"""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import structlog

from engine.background import BackgroundTask
from engine.dead_letters.audit import parse
from engine.dead_letters.backlog import MOST, Backlog
from engine.dead_letters.letter import DeadLetter
from engine.kafka.clients import NO_GROUP
from engine.kafka.cluster import describe, is_missing, problem_of_error, problems_of_access
from engine.kafka.errors import END, LOGIN, MISSING, is_fatal, is_of_unused_group, remedy
from engine.kafka.offsets import EARLIEST, LATEST, ask_offsets
from engine.kafka.reader import LocatedRecord
from engine.kafka.types import KafkaError, KafkaException, TopicPartition
from engine.telemetry.metrics import DEAD_LETTER_REASONS, NO_ROUTE
from engine.telemetry.status import DeadLetterCounts, Latest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.dead_letters.state import LetterState
    from engine.dead_letters.store import DeadLetterStore
    from engine.kafka.offsets import Place
    from engine.kafka.reader import Position
    from engine.kafka.types import Consumer, KafkaMessage, TopicDescription
    from engine.seals import SealKeys

__all__ = ["DeadLetterWatch"]

_LOOK_SECONDS = 1.0
_CATCH_UP_SECONDS = 0.1
_ANSWER_SECONDS = 5.0
_SILENCE_SECONDS = 8.0
"""Time without an answer after which the topic counts as out of reach."""
_READ_SECONDS = 1.5
"""Time spent reading before the figures are published and the topics looked at again."""
_QUIET_SECONDS = 0.1
_JOIN_SECONDS = 8.0
_QUEUED_KIB = 8 * 1024
_MOST_ROUTES = 1000
_MOST_TEXT = 500
_USERS = "dead letters"

_log = structlog.get_logger(__name__)


class DeadLetterWatch(BackgroundTask):
    """Looks at the dead letters about every second."""

    def __init__(
        self, store: Callable[[], DeadLetterStore], is_wanted: Callable[[], bool], clean: Callable[[str], str] = str
    ) -> None:
        """Creates the watch over the dead letters of the store in force; it looks while `is_wanted` is true.

        `clean` removes secrets from its texts.
        """
        super().__init__("dead letters", _JOIN_SECONDS)
        self._store_in_force = store
        self._store = store()
        self._is_wanted = is_wanted
        self._clean = clean
        self._look: _Look | None = None
        self._census: DeadLetterCounts | None = None
        self._answered = float("-inf")
        self._trouble = ""

    def census(self) -> DeadLetterCounts | None:
        """Returns the state of the dead letters a moment ago; None while the watch is not wanted.

        Safe from any thread.
        """
        return self._census

    @property
    def held(self) -> int:
        """Number of messages that are held while their routes are paused, a moment ago. Safe from any thread."""
        return 0 if self._census is None else self._census.held

    def state(self, position: Position) -> LetterState | None:
        """Returns the state of a dead letter; None if it is not known. Safe from any thread."""
        look = self._look
        return None if look is None else look.state(position)

    def run(self) -> None:
        """Reads what is new, more often while there is much of it; drops the counts while they are not wanted."""
        while not self._stop.wait(_CATCH_UP_SECONDS if self._is_behind else _LOOK_SECONDS):
            self._follow()
            if self._is_wanted():
                self._look_once(self._store.topic)
            else:
                self._census = None
                self._close()
        self._close()

    @property
    def _is_behind(self) -> bool:
        """True if there are more records to read before the counts are complete."""
        census = self._census
        return census is not None and census.reachable and census.open is None and not census.trouble

    def _follow(self) -> None:
        """Adopts a changed configuration; counts of other topics are dropped."""
        before, self._store = self._store, self._store_in_force()
        if self._store.topic != before.topic:
            self._census = None
            self._close()

    def _look_once(self, topic: str) -> None:
        try:
            self._look = self._look or _Look(self._store)
            census = self._look.now()
        except KafkaException as error:
            if is_fatal(error.args[0]):
                self._drop()
            why = f"Kafka at {self._store.kafka.servers} does not answer ({error.args[0].str()})"
            census = DeadLetterCounts(topic, trouble=why)
        except Exception as error:
            census = DeadLetterCounts(topic, trouble=f"{type(error).__name__}: {error}")
            if census.trouble != self._trouble:
                _log.exception("the dead letters cannot be watched")
        census = replace(census, trouble=self._clean(census.trouble))
        self._log_trouble(census)
        if census.reachable:
            self._answered = time.monotonic()
        elif self._census is not None and time.monotonic() - self._answered < _SILENCE_SECONDS:
            return  # Kafka is silent for a moment; the last counts still hold.
        self._census = census

    def _log_trouble(self, census: DeadLetterCounts) -> None:
        if census.trouble != self._trouble:
            self._trouble = census.trouble
            # It is for the router to create a topic that never existed, or to complain of it.
            if census.trouble and (census.reachable or self._answered > 0):
                _log.warning("the dead letters cannot be counted", topic=census.topic, why=census.trouble)

    def _close(self) -> None:
        self._drop()
        self._answered = float("-inf")

    def _drop(self) -> None:
        """Closes the clients; the next look makes new ones, and counts anew."""
        if self._look:
            self._look.close()
            self._look = None


class _Look:
    """The Kafka clients and the counts of what they have read so far. For one thread, except `state`.

    Raises:
        KafkaException: Kafka does not answer.
    """

    def __init__(self, store: DeadLetterStore) -> None:
        self._store = store
        self._topic, self._audit, self._quarantine = store.topic, store.audit, store.quarantine
        self._lock = Lock()
        """Guards the backlogs, which pages ask from their threads."""
        self._admin = store.kafka.admin()
        self._consumer: Consumer | None = None
        self._ids: dict[str, str] = {}
        """Kafka's ids of the topics that exist."""
        self._keys: tuple[SealKeys, ...] = ()
        self._begin()

    def now(self) -> DeadLetterCounts:
        """Reads on, and returns the state of the dead letters."""
        names = [self._topic, self._audit, self._quarantine]
        topics = describe(self._admin, names, _ANSWER_SECONDS)
        if problems := problems_of_access(self._topic, _USERS, topics[self._topic], ("WRITE",)):
            return DeadLetterCounts(self._topic, trouble=str(problems[0]))
        there = {name: each for name, each in topics.items() if not isinstance(each, KafkaError)}
        ids = {name: str(each.topic_id) for name, each in there.items()}
        if any(ids.get(name) != known for name, known in self._ids.items()):
            self._begin()  # A topic was deleted or created again: the letters counted are not there any more.
        self._ids = ids
        # The router makes its secret at its first start, when there is no letter yet.
        self._keys = self._keys or self._store.keys()
        self._is_complete = self._read_all(there)
        return self._census(self._trouble(topics))

    def state(self, position: Position) -> LetterState | None:
        """Returns the state of a letter, see `DeadLetterWatch.state`."""
        with self._lock:
            backlog = self._backlogs.get(position.topic)
            # Before the audit was read to its end, all letters look open.
            if backlog is None or not self._is_complete:
                return None
            return backlog.state(position.partition, position.offset)

    def close(self) -> None:
        """Closes the consumer."""
        if self._consumer:
            self._consumer.close()
            self._consumer = None

    def _begin(self) -> None:
        self.close()
        self._ids = {}
        self._is_complete = False
        self._backlogs = {name: Backlog(DEAD_LETTER_REASONS) for name in (self._topic, self._quarantine)}
        self._latest: dict[str, Latest] = {}
        self._assigned: set[Place] = set()
        self._ended: set[Place] = set()
        """Partitions that were read to the end once."""
        self._refused: dict[str, str] = {}
        """Topics that this user may not read, each with a sentence."""
        settings = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}
        settings["queued.max.messages.kbytes"] = _QUEUED_KIB
        self._consumer = self._store.kafka.consumer(NO_GROUP, settings)

    def _trouble(self, topics: Mapping[str, TopicDescription | KafkaError]) -> str:
        for name, each in topics.items():
            if isinstance(each, KafkaError) and not is_missing(each):
                return str(problem_of_error(name, _USERS, each))
        return next(iter(self._refused.values()), "")

    def _read_all(self, there: Mapping[str, TopicDescription]) -> bool:
        """Reads new records for a moment; returns True if all topics were read to their end by now."""
        letters = [place for name in self._backlogs for place in _places(there.get(name))]
        firsts = self._offsets(letters, EARLIEST)
        ends = self._offsets([place for place in letters if place not in self._assigned], LATEST)
        starts = {}
        for (topic, partition), end in ends.items():
            most = MOST // len(there[topic].partitions)
            starts[topic, partition] = start = max(firsts[topic, partition], end - most)
            self._backlogs[topic].begin(partition, start, most)
        self._assign(starts)
        self._read()
        with self._lock:
            for (topic, partition), first in firsts.items():
                self._backlogs[topic].forget_before(partition, first)
        if not self._ended.issuperset(letters):
            return False
        audit = _places(there.get(self._audit))
        self._assign(self._offsets([place for place in audit if place not in self._assigned], EARLIEST))
        self._read()
        return self._ended.issuperset(audit)

    def _assign(self, starts: Mapping[Place, int]) -> None:
        if starts and self._consumer:
            self._consumer.incremental_assign([TopicPartition(*place, offset) for place, offset in starts.items()])
            self._assigned.update(starts)

    def _read(self) -> None:
        """Reads to the end of the partitions, but no longer than `_READ_SECONDS`."""
        until = time.monotonic() + _READ_SECONDS
        while self._consumer and self._assigned and time.monotonic() < until:
            message = self._consumer.poll(_QUIET_SECONDS)
            if message is None:
                return
            error, topic = message.error(), str(message.topic())
            if is_of_unused_group(error):
                continue
            if error is not None and error.code() not in END:
                why = remedy(error)
                if why is None or error.code() in LOGIN | MISSING:
                    raise KafkaException(error)
                self._refused[topic] = f"topic '{topic}': {why}"
                continue
            self._refused.pop(topic, None)
            if error is None:
                with self._lock:
                    self._take(message)
            else:
                self._ended.add((topic, message.partition() or 0))

    def _take(self, message: KafkaMessage) -> None:
        located = LocatedRecord.of(message)
        at = located.position
        if at.topic != self._audit:
            letter = DeadLetter(located)
            self._backlogs[at.topic].add(
                at.partition, at.offset, letter.reason, letter.time_ms, has_seal=letter.has_seal
            )
            if at.topic == self._topic:
                self._note(letter)
            return
        entry = parse(located, self._keys)
        if entry is None or (backlog := self._backlogs.get(entry.position.topic)) is None:
            return
        if entry.topic_id in ("", self._ids.get(entry.position.topic)):
            at = entry.position
            backlog.close(at.partition, at.offset, entry.state, is_sure=not entry.is_doubtful)

    def _note(self, letter: DeadLetter) -> None:
        route, time_ms, at = letter.route or NO_ROUTE, letter.time_ms, letter.position
        known = self._latest.get(route)
        # Any writer of the topic chooses routes and texts, so their number and length are limited.
        if (len(self._latest) < _MOST_ROUTES) if known is None else (known.time_ms <= time_ms):
            place = f"{at.partition}:{at.offset}"
            self._latest[route] = Latest(time_ms, letter.reason[:_MOST_TEXT], letter.detail[:_MOST_TEXT], place)

    def _census(self, trouble: str) -> DeadLetterCounts:
        if trouble or not self._is_complete:
            return DeadLetterCounts(self._topic, reachable=True, trouble=trouble)
        letters, quarantine = self._backlogs[self._topic], self._backlogs[self._quarantine]
        return DeadLetterCounts(
            self._topic,
            reachable=True,
            open=letters.open,
            oldest=letters.oldest,
            quarantined=sum(quarantine.open.values()),
            latest=dict(self._latest),
        )

    def _offsets(self, places: list[Place], spec: Any) -> dict[Place, int]:
        futures = ask_offsets(self._admin, places, spec, _ANSWER_SECONDS)
        return {place: future.result().offset for place, future in futures.items()}


def _places(topic: TopicDescription | None) -> list[Place]:
    return [] if topic is None else [(topic.name, partition.id) for partition in topic.partitions]
