"""Which of several bridges of one `bridge.id` leads: a group of Kafka consumers of a topic with one partition decides.

Who has the partition leads. The assignment is sticky: who joins later does not take it. Beside its heart-beats the
leader commits an offset about every second: the answer, which only a member gets whose session lives, says that nobody
else can lead until a session after the question, and so for how long this bridge may go on without another answer.
Every time here is one of `time.monotonic`, which all processes of a machine share.

The offsets tell the other bridges, too, that the leader is there: while none arrives, no bridge leads.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from datetime import UTC, datetime
from threading import Event, Thread
from typing import TYPE_CHECKING

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from engine.connectors.group import REFUSED, member
from engine.errors import HardFailureError, UnreachableError
from engine.kafka import SILENT, is_fatal, librdkafka
from engine.topics import ensure_state_topic
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from routes.model import Config

__all__ = ["Election", "OtherLeader", "Term"]

_SESSION_SECONDS, _EMBEDDED_SESSION_SECONDS = 10.0, 45.0
"""A leader that has not been heard for so long is one no more, and the next one leads. Nobody waits for the lead on the
bridge's own Kafka, and its parts live through a restart of it."""
_END_SECONDS = 2.0
"""A leader goes on for so much less than a session after a question that was answered: what an end may take."""

_ASK_SECONDS = 1.0
_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.1
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0
_UNLED_SESSIONS = 3
"""A group that Kafka answers for, and in which no bridge leads for so many sessions, is joined anew."""
_LEAVE_SECONDS = 5.0
_SILENCE_SECONDS = 5.0
_GONE = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
_UNKNOWN = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID)
_log = structlog.get_logger(__name__)


class Term:
    """For how long a bridge may lead, from what was asked of Kafka and answered."""

    def __init__(self, session_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease_seconds = session_seconds - _END_SECONDS
        self._clock = clock
        self._has_partition = False
        self._asked: dict[int, float] = {}
        self._number = 0
        self._last_asked = float("-inf")
        self.until = 0.0
        """The bridge leads before this moment."""

    @property
    def has_partition(self) -> bool:
        """Whether the group has given it the partition."""
        return self._has_partition

    @property
    def is_to_ask(self) -> bool:
        """Whether it is time for another question."""
        return self._has_partition and self._clock() - self._last_asked >= _ASK_SECONDS

    def assigned(self) -> None:
        """The group gives it the partition; whether that is still so is to be asked first."""
        self._has_partition = True
        self._last_asked = float("-inf")

    def lost(self) -> None:
        """The group has taken it away."""
        self._has_partition = False
        self._asked.clear()
        self.until = 0.0

    def ask(self) -> int:
        """A question goes out; its number."""
        self._number += 1
        self._last_asked = self._clock()
        self._asked = {number: at for number, at in self._asked.items() if at > self._last_asked - self._lease_seconds}
        self._asked[self._number] = self._last_asked
        return self._number

    def deposed(self) -> None:
        """Kafka does not know this member any more; the group will say so in a moment."""
        self._asked.clear()
        self.until = 0.0

    def answered(self, number: int, *, confirmed: bool) -> None:
        """What Kafka said to a question; one from before the partition was lost does not count."""
        asked = self._asked.pop(number, None)
        if asked is not None and confirmed:
            self.until = max(self.until, asked + self._lease_seconds)


class OtherLeader:
    """The bridge that leads instead of this one, by the offsets that it commits."""

    def __init__(self, me: str, session_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`me` is the name under which this bridge commits."""
        self._me = me
        self._session_seconds = session_seconds
        self._clock = clock
        self._last: tuple[int, str] | None = None
        self._heard_at = float("-inf")
        self.name = ""
        """Name of the bridge that committed last; empty if that was this one, or one that resigned."""

    @property
    def leads(self) -> bool:
        """Whether it has committed within the last session."""
        return self._clock() - self._heard_at < self._session_seconds

    def committed(self, offset: int, name: str) -> None:
        """Takes note of the group's last offset and the name beside it; an offset seen before is no sign of life."""
        if (offset, name) == self._last:
            return
        self._last = offset, name
        self.name = "" if name == self._me else name
        self._heard_at = self._clock() if self.name else float("-inf")


class Election:
    """A bridge that stands for election, in a thread of its own from `start` to `resign`. Safe from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._session = _EMBEDDED_SESSION_SECONDS if config.embedded_kafka else _SESSION_SECONDS
        self._term = Term(self._session)
        self._group = f"{config.bridge_id}.leader"
        self._topic = config.journal.state_topic
        started = datetime.now(UTC).isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")
        # The time, since in containers hosts and processes of several bridges may have the same names.
        self._me = f"{socket.gethostname()}, process {os.getpid()}, started {started}"
        self._other = OtherLeader(self._me, self._session)
        self._stop = Event()
        self._thread: Thread | None = None
        self._contact = time.monotonic()
        self._looked_at = 0.0
        self._led_at = 0.0
        """When a bridge led for the last time, or this one joined the group."""
        self._joined = False
        self._is_gone = False
        self._is_broken = False
        self._refusal: HardFailureError | None = None
        self.why_not = ""
        """Why the bridge does not lead, in one line; nothing while it is about to."""
        self.failure: BridgeError | None = None
        """Why it can never lead."""

    @property
    def until(self) -> float:
        """The bridge leads before this moment."""
        return self._term.until

    @property
    def leads(self) -> bool:
        """Whether it leads now."""
        return time.monotonic() < self._term.until

    @property
    def has_leader(self) -> bool:
        """Whether this bridge or another one leads, as far as Kafka has told."""
        return self.leads or self._other.leads

    @property
    def stands_by(self) -> bool:
        """Whether another one leads, as Kafka said a moment ago, and this one would take over."""
        silence = time.monotonic() - self._contact
        return not self.leads and self._other.leads and self._joined and silence < _SILENCE_SECONDS

    def start(self) -> None:
        """Stands for election from now on; more calls do nothing."""
        if self._thread is None:
            self._contact = time.monotonic()
            self._thread = Thread(target=self._run, name="election", daemon=True)
            self._thread.start()

    def resign(self) -> None:
        """Leaves the group, so that the next one leads at once. For a bridge whose parts have all ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_LEAVE_SECONDS)

    def _run(self) -> None:
        try:
            pause = _PAUSE_SECONDS
            while self._prepared():
                began = time.monotonic()
                self._stand()
                # Two members of one name fence each other for as long as there are two.
                pause = _PAUSE_SECONDS if time.monotonic() - began > self._session else pause
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        except BridgeError as error:
            self.failure = error
        except Exception as error:
            _log.exception("the election ended by an unforeseen error")
            self.failure = BridgeError(f"the election ended: {type(error).__name__}: {error}")

    def _prepared(self) -> bool:
        """Whether there is a topic to elect with, Kafka being waited for; False when this is to end instead."""
        while not self._stop.is_set():
            try:
                ensure_state_topic(self._config, _SILENCE_SECONDS)
            except UnreachableError as error:
                if time.monotonic() - self._contact > self._config.router.outage_timeout_seconds:
                    raise
                self.why_not = str(error)
                self._stop.wait(_PAUSE_SECONDS)
            else:
                self._contact = time.monotonic()
                self.why_not = ""
                return True
        return False

    def _stand(self) -> None:
        """Returns when this is to end, or when the consumer is of no more use."""
        self._is_broken = False
        consumer = Consumer(self._settings(), logger=SILENT)
        self._joined, self._led_at = True, time.monotonic()
        consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_lost, on_lost=self._on_lost)
        try:
            while not self._stop.is_set() and not self._is_broken:
                self._poll(consumer)
                if self._term.is_to_ask:
                    self._commit(consumer, self._me)
                elif not self._term.has_partition:
                    self._look(consumer)
                self._check()
            if self._term.has_partition:
                # Nobody leads from here on.
                self._commit(consumer, "")
        finally:
            self._joined = False
            self._term.lost()
            consumer.close()

    def _settings(self) -> dict[str, object]:
        settings: dict[str, object] = librdkafka(self._config, "consumer") | member(
            self._group, self._on_error, int(self._session * 1000)
        )
        settings |= {
            "partition.assignment.strategy": "cooperative-sticky",
            # Whose thread is stuck for so long is no member any more, though its heart still beats.
            "max.poll.interval.ms": int(self._session * 1500),
            "socket.timeout.ms": int(_SILENCE_SECONDS * 1000),
            "auto.offset.reset": "latest",
            "on_commit": self._on_commit,
        }
        if self._config.embedded_kafka:
            # Its folder is locked: who comes back on it is the one that was there, and need not be waited for.
            folder = str(self._config.embedded.data.absolute())
            settings["group.instance.id"] = hashlib.sha256(folder.encode()).hexdigest()[:16]
        return settings

    def _poll(self, consumer: Consumer) -> None:
        try:
            message = consumer.poll(_POLL_SECONDS)
        except KafkaException as error:
            self._on_error(error.args[0])
        else:
            if message is not None and (said := message.error()) is not None:
                self._on_error(said)
        if self._is_gone:
            # Deleted by somebody; a broker that has not yet heard of it says the same.
            self._is_gone = False
            self._prepared()

    def _commit(self, consumer: Consumer, who: str) -> None:
        """Asks whether the group still has this member; the number of the question is the offset."""
        question = TopicPartition(self._topic, 0, self._term.ask(), metadata=who)
        try:
            consumer.commit(offsets=[question], asynchronous=True)
        except KafkaException as error:
            self._on_error(error.args[0])

    def _look(self, consumer: Consumer) -> None:
        """Finds out which bridge leads instead."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            (found,) = consumer.committed([TopicPartition(self._topic, 0)], timeout=_ANSWER_SECONDS)
        except KafkaException as error:
            self._on_error(error.args[0])
            return
        self._contact = time.monotonic()
        self._other.committed(found.offset, found.metadata or "")
        if self._other.leads:
            self.why_not = f"another bridge leads ({self._other.name}); takes over when it ends"
        else:
            is_slow = time.monotonic() - self._led_at > self._session
            self.why_not = "Kafka has given the lead to no bridge of this id" if is_slow else ""

    def _check(self) -> None:
        if self._refusal:
            raise self._refusal
        now, most = time.monotonic(), self._config.router.outage_timeout_seconds
        silence = now - self._contact
        servers = self._config.bootstrap_servers
        if silence > most:
            msg = (
                f"Kafka at {servers} has not been usable for {most:g} seconds (router.outage-timeout). "
                "Start the bridge again when Kafka is back: nothing is lost"
            )
            raise UnreachableError(msg)
        if silence > _SILENCE_SECONDS:
            self.why_not = f"waiting for Kafka at {servers}"
        if self._term.has_partition or self._other.leads or silence > _SILENCE_SECONDS:
            self._led_at = now
        elif now - self._led_at > _UNLED_SESSIONS * self._session:
            self._stand_anew(f"no bridge has led for {now - self._led_at:.0f} s")

    def _on_assign(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        consumer.incremental_assign(places)
        if places:
            consumer.pause(places)
            self._term.assigned()

    def _on_lost(self, _: Consumer, places: list[TopicPartition]) -> None:
        if places:
            self._term.lost()

    def _on_commit(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        if error is not None and error.code() in _UNKNOWN:
            self._term.deposed()
        if error is not None:
            self._on_error(error)
        for place in places:
            confirmed = error is None and place.error is None
            if confirmed:
                self._contact = time.monotonic()
            self._term.answered(place.offset, confirmed=confirmed)

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._stand_anew(error.str())
        elif error.code() in _GONE:
            self._is_gone = True
        elif remedy := REFUSED.get(error.code()):
            where = f"Kafka at {self._config.bootstrap_servers} refuses group '{self._group}'"
            self._refusal = HardFailureError(f"{where} on topic '{self._topic}': {remedy}")

    def _stand_anew(self, why: str) -> None:
        """Has the consumer closed and another one made."""
        if not self._is_broken:
            _log.warning("stands for election anew", why=why)
        self._is_broken = True
