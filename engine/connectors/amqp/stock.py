"""Messages that wait at a listener for clients to take them, and those that clients have and have not answered.

A queue's message goes to one of its receivers in turn, and to another one when that client leaves or gives it back. A
topic's message goes to all receivers that are there when it comes. A message that expires while it waits is dropped.
JMS selectors are applied here. An answer in a transaction counts when that is committed.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakSet

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
from engine.connectors.base import Outcome, RefusedError
from engine.connectors.expiry import ExpiryTimes, has_expired
from routes.predicate import evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.amqp.coordinator import Transaction
    from engine.connectors.amqp.links import Sender
    from engine.connectors.amqp.peer_session import PeerSession
    from engine.connectors.base import Outgoing
    from routes.predicate import Predicate

__all__ = ["Held", "Stock"]

_MOST_UNREAD_BYTES = 1024 * 1024


class Held:
    """A message that has no outcome yet."""

    __slots__ = ("destination", "failed", "outgoing", "readers", "unfit")

    def __init__(self, outgoing: Outgoing, destination: str) -> None:
        self.outgoing = outgoing
        self.destination = destination
        self.failed = 0
        """How often a client had it in vain."""
        self.readers = 0
        """Of a topic: who has not answered yet."""
        self.unfit: WeakSet[_Reader] = WeakSet()
        """Receivers that do not take it."""

    @property
    def is_topics(self) -> bool:
        """Whether it is for all receivers, not for one."""
        return self.destination.startswith("topic:")


class _Reader:
    """A link by which a client receives."""

    def __init__(self, link: Sender, selector: Predicate | None) -> None:
        self.link = link
        self.selector = selector
        self.waiting: deque[Held] = deque()
        """Of a topic: what is for it."""
        self.deliveries: dict[int, int] = {}
        """Number of the message of each delivery that is not answered."""

    @property
    def room(self) -> int:
        """How many messages it takes now."""
        return self.link.room if len(self.session.peer.outgoing) < _MOST_UNREAD_BYTES else 0

    @property
    def session(self) -> PeerSession:
        return cast("PeerSession", self.link.session)

    def wants(self, held: Held) -> bool:
        if self in held.unfit:
            return False
        if self.selector is None or evaluate(self.selector, held.outgoing.message.lookup):
            return True
        held.unfit.add(self)
        return False


class _Answer(NamedTuple):
    """What a client says of a message that it has."""

    held: Held
    reader: _Reader
    state: int
    details: list[Any]


class Stock:
    """Everything that waits or is given."""

    def __init__(self, encoded: Callable[[Held], tuple[bytes, int]]) -> None:
        """`encoded` gives a message's bytes and format, or raises RefusedError."""
        self._encoded = encoded
        self._held: dict[int, Held] = {}
        """By `Outgoing.number`."""
        self._waiting: dict[str, list[Held]] = {}
        """Of queues, by destination, in order."""
        self._readers: dict[str, list[_Reader]] = {}
        self._by_link: dict[Sender, _Reader] = {}
        self._expiry = ExpiryTimes()
        self._undecided = 0
        """Answers in transactions that are not committed."""
        self.known: list[Outcome] = []
        """What became of messages."""

    @property
    def given(self) -> int:
        """How many deliveries are not answered."""
        return self._undecided + sum(len(reader.deliveries) for reader in self._by_link.values())

    def clear(self) -> None:
        """Forgets all messages and all receivers."""
        for each in (self._held, self._waiting, self._readers, self._by_link, self._expiry, self.known):
            each.clear()

    def add(self, outgoing: Outgoing, destination: str) -> None:
        """A message to `queue:NAME` or `topic:NAME`."""
        held = self._held[outgoing.number] = Held(outgoing, destination)
        self._expiry.add(outgoing)
        if not held.is_topics:
            self._waiting.setdefault(destination, []).append(held)
            return
        for reader in self._readers.get(destination, ()):
            if reader.wants(held):
                reader.waiting.append(held)
                held.readers += 1
        if not held.readers:
            self._told(held)

    def receive(self, link: Sender, selector: Predicate | None) -> None:
        """A client receives what the link's terminus says, as far as the selector wants it."""
        reader = self._by_link[link] = _Reader(link, selector)
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
        for held in reader.waiting:
            self._back(held, None)

    def serve(self) -> None:
        """Hands out what there is room for, the oldest first; what has expired meanwhile is dropped."""
        self._drop_expired()
        for destination, readers in list(self._readers.items()):
            if destination in self._waiting:
                self._share(destination, readers)
            for reader in readers:
                while reader.waiting and reader.room > 0:
                    self._give(reader.waiting.popleft(), reader)
                self._push(reader)

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
        for reader in [each for each in self._by_link.values() if each.session is session]:
            found = [first] if first == last else [each for each in reader.deliveries if serial(each - first) <= length]
            for each in found:
                if each == reader.link.half_sent:
                    # What it says of a message that it does not have counts for nothing.
                    raise PeerError(answers.ILLEGAL_STATE, f"delivery {each} is answered before it was sent as a whole")
                if (taken := reader.deliveries.pop(each, None)) is None:
                    continue
                said = _Answer(self._held[taken], reader, state, details)
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

    def _share(self, destination: str, readers: list[_Reader]) -> None:
        """A queue's messages, each to the receiver whose turn it is."""
        ready = [reader for reader in readers if reader.room > 0]
        waiting = deque(self._waiting.pop(destination))
        passed: list[Held] = []
        while waiting and ready:
            held = waiting.popleft()
            reader = next((each for each in ready if each.wants(held)), None)
            if reader is None:
                passed.append(held)
                continue
            self._give(held, reader)
            ready.remove(reader)
            readers.remove(reader)
            readers.append(reader)
            if reader.room > 0:
                ready.append(reader)
        passed.extend(waiting)
        if passed:
            self._waiting[destination] = passed

    def _give(self, held: Held, reader: _Reader) -> None:
        try:
            encoded, form = self._encoded(held)
        except RefusedError as error:
            self._told(held, str(error))
            return
        reader.link.add(held.outgoing.number, encoded, form)

    def _push(self, reader: _Reader) -> None:
        if frames := reader.link.frames(reader.deliveries):
            reader.session.peer.write(b"".join(frames))
        for each in reader.link.too_large():
            held = self._held[each]
            held.unfit.add(reader)
            self._back(held, None)

    def _back(self, held: Held, reader: _Reader | None) -> None:
        """A message is there to be given again: one of a topic to the same receiver, or to nobody."""
        if has_expired(held.outgoing):
            self._drop(held)
        elif not held.is_topics:
            insort(self._waiting.setdefault(held.destination, []), held, key=_number)
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
                for held in due.intersection(reader.waiting):
                    reader.waiting.remove(held)
                    self._drop(held)
            waiting = self._waiting.pop(destination, [])
            if kept := [held for held in waiting if held not in due]:
                self._waiting[destination] = kept
            for held in due.intersection(waiting):
                self._drop(held)

    def _drop(self, held: Held) -> None:
        """A receiver will not have a message, since it has expired; a topic's other receivers may have it already."""
        if held.is_topics:
            held.readers -= 1
        if held.readers == 0 and self._held.pop(held.outgoing.number, None) is not None:
            self.known.append(Outcome(held.outgoing.number, expired=True))

    def _told(self, held: Held, refusal: str | None = None) -> None:
        if self._held.pop(held.outgoing.number, None) is not None:
            self.known.append(Outcome(held.outgoing.number, refusal))


def _number(held: Held) -> int:
    return held.outgoing.number
