"""Messages that wait at a listener for clients to take them, and those that clients have and have not answered.

A queue's message goes to one of its receivers in turn, and to another one when that client leaves or gives it back. A
topic's message goes to all receivers that are there when it comes. A message that expires while it waits is dropped.
JMS selectors are applied here. An answer in a transaction counts when that is committed.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from engine.connectors.amqp import answers
from engine.connectors.amqp.peer_session import PeerError
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Condition,
    Role,
    condition_of,
    disposition,
    field,
    number,
    outcome_of,
)
from engine.connectors.amqp.performatives import Outcome as State
from engine.connectors.amqp.session import serial
from engine.connectors.amqp.stock_readers import Backlog, Held, QueueReader, SelectorTime, number_of
from engine.connectors.base import Outcome, RefusedError
from engine.connectors.expiry import ExpiryTimes, has_expired

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from engine.connectors.amqp.coordinator import Transaction
    from engine.connectors.amqp.limits import ListenerLimits
    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp.peer_session import PeerSession
    from engine.connectors.base import Outgoing
    from routes.predicate import Predicate

__all__ = ["Held", "Stock"]

_DRAIN_SECONDS = 0.025
"""Evaluations for a receiver that wants its credit back if there is nothing for it."""


class _Answer(NamedTuple):
    """What a client says of a message that it has."""

    held: Held
    reader: QueueReader
    state: int
    details: list[Any]


class Stock:
    """Everything that waits or is given."""

    def __init__(
        self,
        encoded: Callable[[Held], tuple[bytes, int]],
        limits: ListenerLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`encoded` gives a message's bytes and format, or raises RefusedError; `clock` gives seconds."""
        self._encoded = encoded
        self._limits = limits
        self._clock = clock
        self._is_postponed = False
        """Whether messages of a destination that was visited in this round were not dealt with for want of time."""
        self._unvisited = 0
        """Destinations, the first ones in `_readers`, that a round of `serve` has not come to."""
        self._held: dict[int, Held] = {}
        """By `Outgoing.number`."""
        self._backlogs: dict[str, Backlog] = {}
        self._relieved = -math.inf
        """When something was refused to make room."""
        self._waiting: dict[str, list[Held]] = {}
        """Of queues, by destination, in order."""
        self._readers: dict[str, list[QueueReader]] = {}
        self._by_link: dict[Sender, QueueReader] = {}
        self._expiry = ExpiryTimes()
        self._undecided = 0
        """Answers in transactions that are not committed."""
        self.known: list[Outcome] = []
        """What became of messages."""

    @property
    def given(self) -> int:
        """How many deliveries are not answered."""
        return self._undecided + sum(len(reader.deliveries) for reader in self._by_link.values())

    @property
    def is_unfinished(self) -> bool:
        """Whether `serve` has more to do than it had time for."""
        return self._unvisited > 0 or self._is_postponed

    def clear(self) -> None:
        """Forgets all messages and all receivers."""
        held = self._held, self._backlogs, self._waiting, self._readers, self._by_link, self._expiry, self.known
        for each in held:
            each.clear()

    def add(self, outgoing: Outgoing, destination: str) -> None:
        """A message to `queue:NAME` or `topic:NAME`."""
        held = self._held[outgoing.number] = Held(outgoing, destination)
        self._backlogs.setdefault(destination, Backlog(self._clock())).messages += 1
        self._expiry.add(outgoing)
        if not held.is_topics:
            self._waiting.setdefault(destination, []).append(held)
            return
        readers = self._readers.get(destination, ())
        held.readers = len(readers)
        for reader in readers:
            reader.unseen.append(held)
        if not readers:
            self._told(held)

    def receive(self, link: Sender, selector: Predicate | None) -> None:
        """A client receives what the link's terminus says, as far as the selector wants it."""
        reader = self._by_link[link] = QueueReader(link, selector, self._limits)
        self._readers.setdefault(link.terminus.destination, []).append(reader)

    def left(self, link: Sender) -> None:
        """A link has ended: what its client had goes to others, as delivered in vain."""
        reader = self._by_link.pop(link, None)
        if reader is None:
            return
        readers = self._readers[link.terminus.destination]
        readers.remove(reader)
        if not readers:
            del self._readers[link.terminus.destination]
        begun = set(reader.deliveries.values())
        for each in begun.union(link.unsent):
            held = self._held[each]
            held.failed += each in begun
            self._back(held, None)
        for held in (*reader.waiting, *reader.unseen):
            self._back(held, None)

    def serve(self) -> None:
        """Hands out what there is room for, the oldest first, for a bounded time; drops what has expired."""
        self._drop_expired()
        if not self._unvisited:
            self._unvisited = len(self._readers)
            self._is_postponed = False
        end = self._clock() + self._limits.turn_seconds
        for destination in list(self._readers)[: self._unvisited]:
            if self._clock() >= end:
                return
            self._unvisited -= 1
            # Those that were visited stand behind the others.
            readers = self._readers[destination] = self._readers.pop(destination)
            if destination in self._waiting:
                self._share(destination, readers, self._limits.selecting_seconds, end)
            for reader in readers:
                self._serve_topic(reader, self._limits.selecting_seconds)
                self._push(reader)
        self._unvisited = 0

    def serve_link(self, link: Sender) -> None:
        """Hands out what there is for one receiver, which may want its credit back if that is nothing."""
        reader = self._by_link.get(link)
        if reader is None:
            return
        destination = link.terminus.destination
        if destination in self._waiting:
            self._share(destination, [reader], _DRAIN_SECONDS, self._clock() + _DRAIN_SECONDS)
        self._serve_topic(reader, _DRAIN_SECONDS)
        self._push(reader)

    def relieve(self) -> None:
        """Makes room where no more can be held and clients of other addresses wait.

        Addresses whose clients have taken nothing for a while give way. Receivers that do not answer are detached, and
        what waits there beyond a bound is refused, the newest of the longest queues first. Once that was necessary,
        addresses without receivers have no time left, also new ones.
        """
        latest = self._clock() - self._limits.stalled_seconds
        stalled = {destination for destination, each in self._backlogs.items() if each.moved < latest}
        if self._relieved > latest:
            stalled.update(self._backlogs.keys() - self._readers.keys())
        others = [reader for reader in self._by_link.values() if reader.link.terminus.destination not in stalled]
        if not any(reader.room > 0 and not reader.deliveries for reader in others):
            return
        seconds = f"{self._limits.stalled_seconds:.0f} s"
        for reader in list(self._by_link.values()):
            if reader.link.terminus.destination in stalled and (reader.deliveries or reader.waiting):
                why = f"it has answered no message for {seconds}, and other addresses wait"
                reader.session.refuse(reader.link, Condition(answers.RESOURCE_LIMIT, why))
        self._refuse_waiting(stalled, f"nobody has taken a message from there for {seconds}, and other addresses wait")

    def _refuse_waiting(self, destinations: Collection[str], why: str) -> None:
        """Refuses what waits at queues beyond the bound for stalled ones."""
        queues = [self._waiting[each] for each in destinations if each in self._waiting]
        by_rank = sorted((rank, number_of(held), held) for queue in queues for rank, held in enumerate(queue))
        size = 0
        for count, (_, at, held) in enumerate(by_rank, 1):
            size += len(held.outgoing.message.body)
            if count > self._limits.stalled_messages or size > self._limits.stalled_bytes:
                queue = self._waiting[held.destination]
                del queue[bisect_left(queue, at, key=number_of)]
                self._told(held, why)
                self._relieved = self._clock()

    def _serve_topic(self, reader: QueueReader, seconds: float) -> None:
        if reader.unseen:
            self._select(reader, seconds)
        while reader.waiting and reader.room > 0:
            self._give(reader.waiting.popleft(), reader)

    def _select(self, reader: QueueReader, seconds: float) -> None:
        """Applies a selector to a topic's messages, also where the receiver has no room: the others are done."""
        if self._clock() < reader.rests_until:
            return
        left = SelectorTime(self._clock, seconds)
        while reader.unseen:
            held = reader.unseen.popleft()
            if reader.wants(held):
                reader.waiting.append(held)
            else:
                self._done(held)
            if left.is_over:
                left.rest(reader)
                self._is_postponed |= bool(reader.unseen)
                return

    def settled(self, session: PeerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """A client has answered deliveries of a session: see `Host`. PeerError for one that it does not have yet."""
        first = number(fields, 1)
        last = number(fields, 2, first)
        state, details = outcome_of(outcome)
        if not field(fields, 3):
            if state in (0, State.RECEIVED):
                return
            answer = ACCEPTED if transaction is None else answers.transactional(transaction.id, outcome)
            session.send(disposition(Role.SENDER, serial(first), serial(last), answer))
        length = serial(last - first)
        for link in session.links.values():
            reader = self._by_link.get(cast("Sender", link))
            for each in () if reader is None else _answered_of(reader, first, length):
                assert reader is not None
                if each == reader.link.half_sent:
                    # What it says of a message that it does not have counts for nothing.
                    raise PeerError(answers.ILLEGAL_STATE, f"delivery {each} is answered before it was sent as a whole")
                said = _Answer(self._held[reader.deliveries.pop(each)], reader, state, details)
                if transaction is None:
                    self._answered(said)
                else:
                    transaction.work.append(said)
                    self._undecided += 1

    def commit(self, transaction: Transaction) -> None:
        """The answers in a transaction count."""
        for each in self._work(transaction):
            self._answered(each)

    def roll_back(self, transaction: Transaction) -> None:
        """They do not: the messages are there again, as delivered in vain."""
        for each in reversed(self._work(transaction)):
            each.held.failed += 1
            self._back(each.held, each.reader)

    def _work(self, transaction: Transaction) -> list[_Answer]:
        work: list[_Answer] = transaction.work
        self._undecided -= len(work)
        transaction.work = []
        return work

    def _answered(self, answer: _Answer) -> None:
        held, reader, state, details = answer
        if state == State.ACCEPTED:
            self._done(held)
        elif state == State.REJECTED:
            condition = condition_of(field(details, 0)) or Condition("amqp:rejected", "")
            self._done(held, f"the client says: {condition}")
        elif state == State.MODIFIED and field(details, 1) and has_expired(held.outgoing):
            self._drop(held)
        elif state == State.MODIFIED and field(details, 1):
            self._done(held, "the client says that it cannot be delivered")
        else:
            # Without a state it is the default outcome of our links, which is modified.
            held.failed += state != State.RELEASED
            self._back(held, reader)

    def _share(self, destination: str, readers: list[QueueReader], seconds: float, end: float) -> None:
        """A queue's messages, each to the receiver whose turn it is; each has so many seconds for its selector."""
        waiting = self._waiting[destination]
        ready = deque(reader for reader in readers if reader.room > 0)
        while ready and waiting:
            if self._clock() >= end:
                self._is_postponed = True
                break
            reader = ready.popleft()
            held = self._next(reader, waiting, seconds)
            if held is None:
                continue
            del waiting[bisect_left(waiting, held.outgoing.number, key=number_of)]
            self._give(held, reader)
            if len(readers) > 1:
                readers.remove(reader)
                readers.append(reader)
            if reader.room > 0:
                ready.append(reader)
        if not waiting:
            self._waiting.pop(destination, None)

    def _next(self, reader: QueueReader, waiting: list[Held], seconds: float) -> Held | None:
        """The first message of a queue that a receiver wants, as far as it is found in that time."""
        if self._clock() < reader.rests_until:
            return None
        left = SelectorTime(self._clock, seconds)
        while True:
            if reader.again:
                held = reader.again.pop(0)
                at = bisect_left(waiting, held.outgoing.number, key=number_of)
                if at == len(waiting) or waiting[at] is not held:
                    # Another receiver has it.
                    continue
            else:
                at = bisect_right(waiting, reader.seen, key=number_of)
                if at == len(waiting):
                    return None
                held = waiting[at]
                reader.seen = held.outgoing.number
            if reader.wants(held):
                return held
            if left.is_over:
                left.rest(reader)
                self._is_postponed = True
                return None

    def _give(self, held: Held, reader: QueueReader) -> None:
        try:
            encoded, form = self._encoded(held)
        except RefusedError as error:
            self._told(held, str(error))
            return
        held.size = len(encoded)
        if 0 < reader.link.most < held.size:
            self._back(held, None)
        else:
            reader.link.add(held.outgoing.number, encoded, form)

    def _push(self, reader: QueueReader) -> None:
        if frames := reader.link.frames(reader.deliveries):
            reader.session.peer.write(b"".join(frames))

    def _back(self, held: Held, reader: QueueReader | None) -> None:
        """A message is there to be given again: one of a topic to the same receiver, or to nobody."""
        if has_expired(held.outgoing):
            self._drop(held)
        elif not held.is_topics:
            insort(self._waiting.setdefault(held.destination, []), held, key=number_of)
            for each in self._readers.get(held.destination, ()):
                each.came_back(held)
        elif reader is not None and reader.link in self._by_link:
            reader.waiting.appendleft(held)
        else:
            self._done(held)

    def _done(self, held: Held, refusal: str | None = None) -> None:
        """A receiver is finished with it. Of a topic's each is for itself: none refuses for others."""
        if held.is_topics:
            held.readers -= 1
            if held.readers == 0:
                self._told(held)
        else:
            self._told(held, refusal)

    def _drop_expired(self) -> None:
        """Drops messages that have expired while they wait; of those that clients have, what they answer counts."""
        due = {held for number in self._expiry.due() if (held := self._held.get(number)) is not None}
        for destination in {held.destination for held in due}:
            for reader in self._readers.get(destination, ()):
                for waiting in (reader.waiting, reader.unseen):
                    for held in due.intersection(waiting):
                        waiting.remove(held)
                        self._drop(held)
            queue = self._waiting.pop(destination, [])
            if kept := [held for held in queue if held not in due]:
                self._waiting[destination] = kept
            for held in due.intersection(queue):
                self._drop(held)

    def _drop(self, held: Held) -> None:
        """A receiver will not have a message, since it has expired; a topic's other receivers may have it already."""
        if held.is_topics:
            held.readers -= 1
        if held.readers == 0:
            self._told(held, expired=True)

    def _told(self, held: Held, refusal: str | None = None, *, expired: bool = False) -> None:
        if self._held.pop(held.outgoing.number, None) is None:
            return
        self._expiry.discard(held.outgoing.number)
        backlog = self._backlogs[held.destination]
        backlog.messages -= 1
        backlog.moved = self._clock()
        if not backlog.messages:
            del self._backlogs[held.destination]
        self.known.append(Outcome(held.outgoing.number, refusal, expired))


def _answered_of(reader: QueueReader, first: int, length: int) -> list[int]:
    """The deliveries of a receiver among `length` + 1 from `first` on, by the shorter way of looking."""
    if length < len(reader.deliveries):
        wanted = (serial(first + each) for each in range(length + 1))
        return [each for each in wanted if each in reader.deliveries]
    return [each for each in reader.deliveries if serial(each - first) <= length]
