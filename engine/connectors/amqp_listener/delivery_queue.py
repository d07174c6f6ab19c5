"""Messages of a listener sink that wait for clients, or that clients have and have not answered.

A queue's message goes to one of its receivers in turn, and to another when that client leaves or gives it back. A
topic's message goes to all receivers that are attached when it comes. A message that expires while it waits is dropped.
JMS selectors are applied here. An answer in a transaction takes effect when the transaction commits.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from engine.connectors.amqp import server_performatives
from engine.connectors.amqp.performatives import (
    ACCEPTED,
    Condition,
    DeliveryState,
    Role,
    condition_of,
    disposition,
    field,
    number,
    outcome_of,
    serial,
    transactional,
)
from engine.connectors.amqp_listener.receivers import (
    DestinationBacklog,
    Held,
    ListenerReceiver,
    SelectorTime,
    number_of,
)
from engine.connectors.amqp_listener.session import ClientError
from engine.connectors.base import Outcome, RefusedError
from engine.connectors.expiry import ExpiryTimes, has_expired

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp_listener.coordinator import Transaction
    from engine.connectors.amqp_listener.limits import ListenerLimits
    from engine.connectors.amqp_listener.session import ServerSession
    from engine.connectors.base import Outgoing
    from routes.predicate import Predicate

__all__ = ["DeliveryQueue", "Held"]

_DRAIN_SECONDS = 0.025
"""Seconds of evaluations for a receiver that wants back the credit for which there is no message."""


class _Answer(NamedTuple):
    """Answer of a client to a message that it has."""

    held: Held
    reader: ListenerReceiver
    state: int
    details: list[Any]


class DeliveryQueue:
    """Messages of a listener sink that have no outcome yet, and the receivers that get them."""

    def __init__(
        self,
        encoded: Callable[[Held], tuple[bytes, int]],
        limits: ListenerLimits,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Takes `encoded`, which gives a message's bytes and message format, or raises RefusedError.

        `clock` gives seconds.
        """
        self._encoded = encoded
        self._limits = limits
        self._clock = clock
        self._is_postponed = False
        """True if a destination in this round of `serve` has messages left for lack of time."""
        self._unvisited = 0
        """Number of destinations, the first in `_readers`, that this round of `serve` has still to handle."""
        self._held: dict[int, Held] = {}
        """Messages by `Outgoing.number`."""
        self._backlogs: dict[str, DestinationBacklog] = {}
        self._relieved = -math.inf
        """Time when a message was last refused to make room."""
        self._waiting: dict[str, list[Held]] = {}
        """Waiting messages of queues by destination, in order."""
        self._readers: dict[str, list[ListenerReceiver]] = {}
        self._by_link: dict[Sender, ListenerReceiver] = {}
        self._expiry = ExpiryTimes()
        self._undecided = 0
        """Number of answers in transactions that are not committed."""
        self.known: list[Outcome] = []
        """Outcomes that `AmqpListenerSink.outcomes` has still to return."""

    @property
    def given(self) -> int:
        """Number of deliveries that are not answered, or only in an open transaction."""
        return self._undecided + sum(len(reader.deliveries) for reader in self._by_link.values())

    @property
    def is_unfinished(self) -> bool:
        """True if `serve` has more to do than it had time for."""
        return self._unvisited > 0 or self._is_postponed

    def clear(self) -> None:
        """Forgets all messages and all receivers."""
        held = self._held, self._backlogs, self._waiting, self._readers, self._by_link, self._expiry, self.known
        for each in held:
            each.clear()
        self._undecided = self._unvisited = 0
        self._is_postponed = False

    def add(self, outgoing: Outgoing, destination: str) -> None:
        """Adds a message to `queue:NAME` or `topic:NAME`; a topic's message without receivers is done at once."""
        held = self._held[outgoing.number] = Held(outgoing, destination)
        self._backlogs.setdefault(destination, DestinationBacklog(self._clock())).messages += 1
        self._expiry.add(outgoing)
        if not held.is_topics:
            self._waiting.setdefault(destination, []).append(held)
            return
        readers = self._readers.get(destination, ())
        held.readers = len(readers)
        for reader in readers:
            reader.unseen.append(held)
        if not readers:
            self._record_outcome(held)

    def receive(self, link: Sender, selector: Predicate | None) -> None:
        """Adds a receiver for the destination of the link's terminus; without a selector it wants every message."""
        reader = self._by_link[link] = ListenerReceiver(link, selector, self._limits)
        self._readers.setdefault(link.terminus.destination, []).append(reader)

    def left(self, link: Sender) -> None:
        """Removes the receiver of a link that has ended.

        A queue's messages go to other receivers, a topic's are done. Messages of which any part was sent count as
        delivered in vain.
        """
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
        """Hands out messages, the oldest first, for a bounded time; drops messages that have expired."""
        self._drop_expired()
        if not self._unvisited:
            self._unvisited = len(self._readers)
            self._is_postponed = False
        end = self._clock() + self._limits.turn_seconds
        for destination in list(self._readers)[: self._unvisited]:
            if self._clock() >= end:
                return
            self._unvisited -= 1
            # A destination that was handled goes behind the others.
            readers = self._readers[destination] = self._readers.pop(destination)
            if destination in self._waiting:
                self._share(destination, readers, self._limits.selecting_seconds, end)
            for reader in readers:
                self._serve_topic(reader, self._limits.selecting_seconds)
                self._push(reader)
        self._unvisited = 0

    def serve_link(self, link: Sender) -> None:
        """Hands out messages to one receiver, which may want its credit back if there are none."""
        reader = self._by_link.get(link)
        if reader is None:
            return
        destination = link.terminus.destination
        if destination in self._waiting:
            self._share(destination, [reader], _DRAIN_SECONDS, self._clock() + _DRAIN_SECONDS)
        self._serve_topic(reader, _DRAIN_SECONDS)
        self._push(reader)

    def relieve(self) -> None:
        """Makes room for other addresses; called when no more messages can be held.

        Does nothing unless a client of an address that has not stalled waits for messages. Addresses whose clients have
        taken nothing for `stalled_seconds` give way: receivers that do not answer are detached, and waiting messages
        beyond the limits are refused, the newest of the longest queues first. For as long after such a refusal,
        addresses without receivers give way at once, new ones too.
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
                reader.session.refuse(reader.link, Condition(server_performatives.RESOURCE_LIMIT, why))
        self._refuse_waiting(
            stalled, f"no client has taken a message from there for {seconds}, and other addresses wait"
        )

    def _refuse_waiting(self, destinations: Collection[str], why: str) -> None:
        """Refuses messages of queues beyond the limits for stalled addresses."""
        queues = [self._waiting[each] for each in destinations if each in self._waiting]
        by_rank = sorted((rank, number_of(held), held) for queue in queues for rank, held in enumerate(queue))
        size = 0
        for count, (_, at, held) in enumerate(by_rank, 1):
            size += len(held.outgoing.message.body)
            if count > self._limits.stalled_messages or size > self._limits.stalled_bytes:
                queue = self._waiting[held.destination]
                del queue[bisect_left(queue, at, key=number_of)]
                self._record_outcome(held, why)
                self._relieved = self._clock()

    def _serve_topic(self, reader: ListenerReceiver, seconds: float) -> None:
        if reader.unseen:
            self._select(reader, seconds)
        while reader.waiting and reader.room > 0:
            self._give(reader.waiting.popleft(), reader)

    def _select(self, reader: ListenerReceiver, seconds: float) -> None:
        """Applies a selector to a topic's messages.

        Also applies it if the receiver has no room, since the receiver is finished with messages that it does not want.
        """
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

    def settled(self, session: ServerSession, fields: list[Any], outcome: Any, transaction: Transaction | None) -> None:
        """Takes a client's answer to deliveries of a session: see `Host.settled`.

        Raises:
            PeerError: the client answers a delivery that was not sent as a whole.
        """
        first = number(fields, 1)
        last = number(fields, 2, first)
        state, details = outcome_of(outcome)
        if not field(fields, 3):
            if state in (0, DeliveryState.RECEIVED):
                return
            answer = ACCEPTED if transaction is None else transactional(transaction.id, outcome)
            session.send(disposition(Role.SENDER, serial(first), serial(last), answer))
        length = serial(last - first)
        for link in session.links.values():
            reader = self._by_link.get(cast("Sender", link))
            for each in () if reader is None else _answered_of(reader, first, length):
                assert reader is not None
                if each == reader.link.half_sent:
                    # An answer to a message that the client does not have yet cannot count.
                    raise ClientError(
                        server_performatives.ILLEGAL_STATE, f"delivery {each} is answered before it was sent as a whole"
                    )
                said = _Answer(self._held[reader.deliveries.pop(each)], reader, state, details)
                if transaction is None:
                    self._answered(said)
                else:
                    transaction.work.append(said)
                    self._undecided += 1

    def commit(self, transaction: Transaction) -> None:
        """Lets the answers in a transaction take effect."""
        for each in self._work(transaction):
            self._answered(each)

    def roll_back(self, transaction: Transaction) -> None:
        """Drops the answers in a transaction; the messages wait again, as delivered in vain."""
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
        if state == DeliveryState.ACCEPTED:
            self._done(held)
        elif state == DeliveryState.REJECTED:
            condition = condition_of(field(details, 0)) or Condition("amqp:rejected", "")
            self._done(held, f"the client says: {condition}")
        elif state == DeliveryState.MODIFIED and field(details, 1) and has_expired(held.outgoing.message):
            self._drop(held)
        elif state == DeliveryState.MODIFIED and field(details, 1):
            self._done(held, "the client says that it cannot be delivered")
        else:
            # Without a state the default outcome of the listener's links counts, which is modified.
            held.failed += state != DeliveryState.RELEASED
            self._back(held, reader)

    def _share(self, destination: str, readers: list[ListenerReceiver], seconds: float, end: float) -> None:
        """Hands a queue's messages to its receivers in turn until `end`.

        Each receiver has `seconds` for evaluating its selector.
        """
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

    def _next(self, reader: ListenerReceiver, waiting: list[Held], seconds: float) -> Held | None:
        """First message of a queue that a receiver wants; None if none is found in `seconds`."""
        if self._clock() < reader.rests_until:
            return None
        left = SelectorTime(self._clock, seconds)
        while True:
            if reader.again:
                held = reader.again.pop(0)
                index = bisect_left(waiting, held.outgoing.number, key=number_of)
                if index == len(waiting) or waiting[index] is not held:
                    # Another receiver has it.
                    continue
            else:
                index = bisect_right(waiting, reader.seen, key=number_of)
                if index == len(waiting):
                    return None
                held = waiting[index]
                reader.seen = held.outgoing.number
            if reader.wants(held):
                return held
            if left.is_over:
                left.rest(reader)
                self._is_postponed = True
                return None

    def _give(self, held: Held, reader: ListenerReceiver) -> None:
        try:
            encoded, form = self._encoded(held)
        except RefusedError as error:
            held.refusal = str(error)
            self._done(held, held.refusal)
            return
        held.size = len(encoded)
        if 0 < reader.link.most < held.size:
            self._back(held, None)
        else:
            reader.link.add(held.outgoing.number, encoded, form)

    def _push(self, reader: ListenerReceiver) -> None:
        if frames := reader.link.frames(reader.deliveries):
            reader.session.peer.write(b"".join(frames))

    def _back(self, held: Held, reader: ListenerReceiver | None) -> None:
        """Makes a message wait again: a queue's for any receiver, a topic's for `reader` alone.

        An expired message is dropped; a topic's message without `reader` is done.
        """
        if has_expired(held.outgoing.message):
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
        """Takes note that a receiver is finished with a message.

        Each receiver of a topic speaks for itself alone, so its refusal does not count. A message that could not be
        encoded for any of them is refused.
        """
        if held.is_topics:
            held.readers -= 1
            if held.readers == 0:
                self._record_outcome(held, None if held.size else held.refusal)
        else:
            self._record_outcome(held, refusal)

    def _drop_expired(self) -> None:
        """Drops messages that expire while they wait; of a message that a client has, the client's answer counts."""
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
        """Drops an expired message for one receiver; other receivers of a topic may have it already."""
        if held.is_topics:
            held.readers -= 1
        if held.readers == 0:
            self._record_outcome(held, expired=True)

    def _record_outcome(self, held: Held, refusal: str | None = None, *, expired: bool = False) -> None:
        """Notes the outcome of a message and forgets it; does nothing for a message that has its outcome."""
        if self._held.pop(held.outgoing.number, None) is None:
            return
        self._expiry.discard(held.outgoing.number)
        backlog = self._backlogs[held.destination]
        backlog.messages -= 1
        backlog.moved = self._clock()
        if not backlog.messages:
            del self._backlogs[held.destination]
        self.known.append(Outcome(held.outgoing.number, refusal, expired))


def _answered_of(reader: ListenerReceiver, first: int, length: int) -> list[int]:
    """Deliveries of a receiver among the `length` + 1 delivery ids from `first` on.

    Looks through the smaller of the two.
    """
    if length < len(reader.deliveries):
        wanted = (serial(first + each) for each in range(length + 1))
        return [each for each in wanted if each in reader.deliveries]
    return [each for each in reader.deliveries if serial(each - first) <= length]
