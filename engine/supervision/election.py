"""Election of the leader among bridges with one `bridge.id`, by a group of Kafka consumers on a one-partition topic.

The bridge to which the partition is assigned leads. The assignment is sticky: a bridge that joins later does not take
the partition away. Beside its heartbeats the leader commits an offset about every second. Only a member whose session
lives gets that commit confirmed; the confirmation says that no other bridge can lead until a session after the request,
and so how long this bridge may lead without another confirmation. All times here are of `time.monotonic`, which all
processes of a machine share.

The commits also show the other bridges that the leader lives: while none arrives, no bridge leads.
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

from engine.errors import UnreachableError
from engine.kafka.clients import KafkaClients, member
from engine.kafka.errors import GONE, UNKNOWN_MEMBER, is_fatal, refusal
from engine.kafka.offsets import committed_positions
from engine.kafka.retry import Outage
from engine.kafka.topics import BridgeTopics
from engine.kafka.types import KafkaException, TopicPartition
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.errors import HardFailureError
    from engine.kafka.types import Consumer, KafkaError
    from routes.model import Config

__all__ = ["Election", "OtherLeader", "Term"]

_SESSION_SECONDS, _EMBEDDED_SESSION_SECONDS = 10.0, 45.0
"""Session timeout of the group: a leader that was silent for so long leads no more, and the next bridge takes over. It
is longer on the bridge's own Kafka, where no other bridge waits for the lead and the parts outlive a restart of that
Kafka."""
_END_SECONDS = 2.0
"""Safety margin: the lease ends so much earlier than a session after the confirmed request. It is the time that ending
the parts may take."""

_ASK_SECONDS = 1.0
_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 2.0
_POLL_SECONDS = 0.1
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 8.0
_UNLED_SESSIONS = 3
"""Number of sessions without any leader after which a bridge joins the group anew, if Kafka answers for the group."""
_LEAVE_SECONDS = 5.0
_SILENCE_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class Term:
    """The lease of a bridge that leads, computed from the commits that it sent and the confirmations that it got."""

    def __init__(self, session_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease_seconds = session_seconds - _END_SECONDS
        self._clock = clock
        self._has_partition = False
        self._asked: dict[int, float] = {}
        self._number = 0
        self._last_asked = float("-inf")
        self.until = 0.0
        """End of the lease: the bridge leads before this moment."""

    @property
    def has_partition(self) -> bool:
        """True while the partition is assigned to this bridge."""
        return self._has_partition

    @property
    def is_to_ask(self) -> bool:
        """True if the next commit is due."""
        return self._has_partition and self._clock() - self._last_asked >= _ASK_SECONDS

    def assigned(self) -> None:
        """Takes note that the group assigned the partition; the lease begins only with a confirmed commit."""
        self._has_partition = True
        self._last_asked = float("-inf")

    def lost(self) -> None:
        """Takes note that the group took the partition away; the lease ends at once."""
        self._has_partition = False
        self._asked.clear()
        self.until = 0.0

    def ask(self) -> int:
        """Takes note that a commit is sent; returns its number."""
        self._number += 1
        self._last_asked = self._clock()
        self._asked = {number: at for number, at in self._asked.items() if at > self._last_asked - self._lease_seconds}
        self._asked[self._number] = self._last_asked
        return self._number

    def deposed(self) -> None:
        """Ends the lease, because Kafka does not know this member any more.

        The group will revoke the partition in a moment.
        """
        self._asked.clear()
        self.until = 0.0

    def answered(self, number: int, *, confirmed: bool) -> None:
        """Takes note of Kafka's reply to a commit.

        A reply to a commit that was sent before the partition was lost does not count.
        """
        asked = self._asked.pop(number, None)
        if asked is not None and confirmed:
            self.until = max(self.until, asked + self._lease_seconds)


class OtherLeader:
    """The bridge that leads instead of this one, as seen by the offsets that it commits."""

    def __init__(self, me: str, session_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Creates the view; `me` is the name under which this bridge commits."""
        self._me = me
        self._session_seconds = session_seconds
        self._clock = clock
        self._last: tuple[int, str] | None = None
        self._heard_at = float("-inf")
        self.name = ""
        """Name of the bridge that committed last; empty if that was this bridge, or one that resigned."""

    @property
    def leads(self) -> bool:
        """True if the other bridge has committed within the last session."""
        return self._clock() - self._heard_at < self._session_seconds

    def committed(self, offset: int, name: str) -> None:
        """Takes note of the group's last offset and the name beside it; an offset seen before shows no life."""
        if (offset, name) == self._last:
            return
        self._last = offset, name
        self.name = "" if name == self._me else name
        self._heard_at = self._clock() if self.name else float("-inf")


class Election:
    """A candidate in the election, with a thread of its own from `start` to `resign`. Safe from any thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._servers = config.bootstrap_servers
        self._session = _EMBEDDED_SESSION_SECONDS if config.embedded_kafka else _SESSION_SECONDS
        self._term = Term(self._session)
        self._group = f"{config.bridge_id}.leader"
        self._topic = config.journal.state_topic
        started = datetime.now(UTC).isoformat(sep=" ", timespec="microseconds").replace("+00:00", " UTC")
        # The time makes it unique: in containers, hosts and processes of several bridges may have the same names.
        self._me = f"{socket.gethostname()}, process {os.getpid()}, started {started}"
        self._other = OtherLeader(self._me, self._session)
        self._stop = Event()
        self._thread: Thread | None = None
        self._outage = Outage(config.kafka_access)
        self._looked_at = 0.0
        self._led_at = 0.0
        """Time at which any bridge was last seen to lead, or at which this one joined the group."""
        self._joined = False
        self._is_gone = False
        self._is_broken = False
        self._refusal: HardFailureError | None = None
        self.why_not = ""
        """Reason, in one line, for which the bridge does not lead; empty while it is about to lead."""
        self.failure: BridgeError | None = None
        """The error that ended the election; None while the bridge can still lead."""

    @property
    def until(self) -> float:
        """End of the lease: the bridge leads before this moment."""
        return self._term.until

    @property
    def leads(self) -> bool:
        """True while this bridge leads."""
        return time.monotonic() < self._term.until

    @property
    def has_leader(self) -> bool:
        """True if this bridge or another one leads, as far as Kafka has told."""
        return self.leads or self._other.leads

    @property
    def stands_by(self) -> bool:
        """True if another bridge leads, as Kafka said a moment ago, and this one would take over."""
        silence = self._outage.seconds
        return not self.leads and self._other.leads and self._joined and silence < _SILENCE_SECONDS

    def start(self) -> None:
        """Joins the election; more calls do nothing."""
        if self._thread is None:
            self._outage.over()
            self._thread = Thread(target=self._run, name="election", daemon=True)
            self._thread.start()

    def resign(self) -> None:
        """Leaves the group, so that the next bridge leads at once. Only for a bridge whose parts have all ended."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_LEAVE_SECONDS)

    def _run(self) -> None:
        try:
            pause = _PAUSE_SECONDS
            while self._prepared():
                began = time.monotonic()
                self._stand()
                # Two members of one name fence each other for as long as there are two, so the pause grows.
                pause = _PAUSE_SECONDS if time.monotonic() - began > self._session else pause
                self._stop.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        except BridgeError as error:
            self.failure = error
        except Exception as error:
            _log.exception("the election ended by an unexpected error")
            self.failure = BridgeError(f"the election ended: {type(error).__name__}: {error}")

    def _prepared(self) -> bool:
        """Makes sure that the election's topic exists, waiting for Kafka; returns False if the thread is to end."""
        while not self._stop.is_set():
            try:
                BridgeTopics(self._config).ensure_state_topic(_SILENCE_SECONDS)
            except UnreachableError as error:
                if self._outage.is_too_long:
                    raise
                self.why_not = str(error)
                self._stop.wait(_PAUSE_SECONDS)
            else:
                self._outage.over()
                self.why_not = ""
                return True
        return False

    def _stand(self) -> None:
        """Takes part with one consumer; returns when the thread is to end, or when the consumer is of no more use."""
        self._is_broken = False
        client = KafkaClients(self._config.kafka_access).consumer(self._group, self._settings())
        self._joined, self._led_at = True, time.monotonic()
        client.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_lost, on_lost=self._on_lost)
        try:
            while not self._stop.is_set() and not self._is_broken:
                self._poll(client)
                if self._term.is_to_ask:
                    self._commit(client, self._me)
                elif not self._term.has_partition:
                    self._look(client)
                self._check()
            if self._term.has_partition:
                # The empty name says that no bridge leads from here on.
                self._commit(client, "")
        finally:
            self._joined = False
            self._term.lost()
            client.close()

    def _settings(self) -> dict[str, object]:
        settings: dict[str, object] = {
            **member(self._on_error, int(self._session * 1000)),
            "partition.assignment.strategy": "cooperative-sticky",
            # A member whose thread is stuck for so long leaves the group, though its heartbeats go on.
            "max.poll.interval.ms": int(self._session * 1500),
            "socket.timeout.ms": int(_SILENCE_SECONDS * 1000),
            "auto.offset.reset": "latest",
            "on_commit": self._on_commit,
        }
        if self._config.embedded_kafka:
            # The folder is locked, so a member that comes back on it is the one that was there, and its session need
            # not run out.
            folder = str(self._config.embedded.data.absolute())
            settings["group.instance.id"] = hashlib.sha256(folder.encode()).hexdigest()[:16]
        return settings

    def _poll(self, consumer: Consumer) -> None:
        try:
            message = consumer.poll(_POLL_SECONDS)
        except KafkaException as error:
            self._on_error(error.args[0])
        else:
            if message is not None and (failure := message.error()) is not None:
                self._on_error(failure)
        if self._is_gone:
            # The topic was deleted; a broker that has not yet heard of the topic answers the same.
            self._is_gone = False
            self._prepared()

    def _commit(self, consumer: Consumer, who: str) -> None:
        """Commits as `who`; the offset is the number of the request.

        The reply says whether the group still has this member.
        """
        question = TopicPartition(self._topic, 0, self._term.ask(), metadata=who)
        try:
            consumer.commit(offsets=[question], asynchronous=True)
        except KafkaException as error:
            self._on_error(error.args[0])

    def _look(self, consumer: Consumer) -> None:
        """Reads the group's last commit to find out which bridge leads instead."""
        if time.monotonic() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        try:
            (position,) = committed_positions(consumer, [TopicPartition(self._topic, 0)], _ANSWER_SECONDS)
        except KafkaException as error:
            self._on_error(error.args[0])
            return
        self._outage.over()
        self._other.committed(position.offset, position.metadata or "")
        if self._other.leads:
            self.why_not = f"another bridge leads ({self._other.name}); takes over when it ends"
        else:
            is_slow = time.monotonic() - self._led_at > self._session
            self.why_not = "Kafka has given the lead to no bridge of this id" if is_slow else ""

    def _check(self) -> None:
        if self._refusal:
            raise self._refusal
        self._outage.check()
        now, silence = time.monotonic(), self._outage.seconds
        if silence > _SILENCE_SECONDS:
            self.why_not = f"waiting for Kafka at {self._servers}"
        if self._term.has_partition or self._other.leads or silence > _SILENCE_SECONDS:
            self._led_at = now
        elif now - self._led_at > _UNLED_SESSIONS * self._session:
            self._stand_anew(f"no bridge has led for {now - self._led_at:.0f} s")

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.incremental_assign(partitions)
        if partitions:
            consumer.pause(partitions)
            self._term.assigned()

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._term.lost()

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        if error is not None and error.code() in UNKNOWN_MEMBER:
            self._term.deposed()
        if error is not None:
            self._on_error(error)
        for partition in partitions:
            confirmed = error is None and partition.error is None
            if confirmed:
                self._outage.over()
            self._term.answered(partition.offset, confirmed=confirmed)

    def _on_error(self, error: KafkaError) -> None:
        if is_fatal(error):
            self._stand_anew(error.str())
        elif error.code() in GONE:
            self._is_gone = True
        elif refused := refusal(error, self._servers, f"group '{self._group}' on topic '{self._topic}'"):
            self._refusal = refused

    def _stand_anew(self, why: str) -> None:
        """Makes the thread close the consumer and join the group with another one."""
        if not self._is_broken:
            _log.warning("stands for election anew", why=why)
        self._is_broken = True
