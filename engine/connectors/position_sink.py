"""Sink that keeps its position in each partition of its topic at the broker, so that nothing is sent twice.

A queue at the broker holds one message for each partition: the offset of the last record that was sent, the time of the
newest, and the offsets of records that the broker refused. Each transaction sends messages, takes these positions out
of the queue and puts their successors in, so that position and messages change together or not at all. While a
transaction is open or in doubt, no other connection gets the position: the next one waits for it
(`docs/adr/0024-positions.md`). Others may write to the queue, so positions have seals (`position_seals`).

The transactions themselves are those of a `TransactedSink`, one for each protocol. Sinks of type `jms` do the same in
their client's process (`Positions.java`), with the same messages: a sink may change its type and keep its queue.
"""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import count, islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import structlog

from engine.connectors.base import NotConnectedError, Outcome, Sink
from engine.connectors.position_seals import PositionSeals, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint

__all__ = [
    "POSITION_PROPERTY",
    "PositionMessage",
    "PositionSink",
    "SinkPosition",
    "TransactedSink",
    "position_owner",
    "position_selector",
]

POSITION_PROPERTY = "jmsbridge_position"
"""Property of a position message that says of which sink and partition it is."""
_NO_PARTITION = -1
_HELD_SECONDS = 45.0
"""Time that another connection may hold a position, since its end is not noticed or its commit is in doubt."""
_OTHERS_SECONDS = 0.5
"""Time that a position may take which no other connection holds."""
_FIRST_SECONDS = 2.0
"""Time that a connection which ends may hold the position of a partition whose first record was never confirmed."""
_ANSWER_SECONDS = 60.0
_MOST_REFUSED = 2_000
_BATCH = 500
_FIRST_OWN_NUMBER = 1 << 62
_TEXT = re.compile(rf"-?[0-9]{{1,19}} -?[0-9]{{1,19}}( [0-9]{{1,19}}){{0,{_MOST_REFUSED}}}")
_SHOWN = 40
_UNSEALED = "it has no seal of this bridge"
_log = structlog.get_logger(__name__)


class PositionMessage(NamedTuple):
    """Message of a position queue, as the broker delivered it."""

    name: str
    """Value of `POSITION_PROPERTY`."""
    text: str
    token: Any
    """Token for `TransactedSink.replace`; valid only for the connection that received it."""


class TransactedSink(Sink, Protocol):
    """Sink whose messages the broker takes in transactions, which also replace messages of a position queue.

    The outcomes of messages are those inside the open transaction. A connection that ends undoes it.
    """

    def begin(self, number: int) -> None:
        """Begins a transaction for `send` and `replace`; an outcome with that number tells that it is open.

        The one before has to be committed. Messages may be sent before it is open.

        Raises:
            NotConnectedError: the connection is lost.
        """

    def watch(self, name: str) -> None:
        """Starts to receive the position messages of a name; no other connection gets them meanwhile.

        Raises:
            NotConnectedError: the connection is lost.
        """

    def arrived(self) -> Sequence[PositionMessage]:
        """Returns the position messages received since the last call; `outcomes` reads them."""

    def replace(self, number: int, tokens: Sequence[Any], name: str, text: str) -> None:
        """Takes position messages out of the queue and puts one in; its outcome has that number.

        Raises:
            NotConnectedError: the connection is lost, or the transaction can no longer be committed.
        """

    def commit(self, number: int) -> None:
        """Commits the transaction; an outcome with that number tells that it is done.

        Raises:
            NotConnectedError: the connection is lost, or the transaction can no longer be committed.
        """


def position_owner(endpoint: SystemEndpoint[Any]) -> str:
    """Returns the part of a position's name that the sink of a bridge has alone; the partition follows behind `/`."""
    return f"{endpoint.bridge_id}/{endpoint.settings.name}"


def position_selector(name: str) -> str:
    """Returns the JMS selector of the position messages of a name."""
    quoted = name.replace("'", "''")
    return f"{POSITION_PROPERTY} = '{quoted}'"


class SinkPosition:
    """Position of a sink in one partition of its topic, as its system keeps it."""

    def __init__(self, name: str, seals: PositionSeals) -> None:
        """Sets up the position before the first message; `name` says of which sink and partition it is."""
        self.name = name
        self._seals = seals
        self._offset = -1
        self._time_ms = -1
        self._refused: set[int] = set()
        self.text = ""
        """Text of the message in the queue."""

    def add(self, text: str, end: int) -> None:
        """Takes over the position in a message; ValueError unless it is one before `end`, the end of the partition."""
        if not _TEXT.fullmatch(text_of(text)):
            msg = "no position"
            raise ValueError(msg)
        offset, time_ms, *refused = map(int, text_of(text).split(" "))
        if offset >= end:
            msg = f"a position behind the end of the topic's partition, {end}"
            raise ValueError(msg)
        self._offset, self._time_ms = max(self._offset, offset), max(self._time_ms, time_ms)
        self._refused |= set(refused)

    def has(self, outgoing: Outgoing) -> bool:
        """Returns True if the broker has a message already; offsets begin anew when a topic is made anew."""
        return (
            outgoing.offset <= self._offset
            and outgoing.timestamp_ms <= self._time_ms
            and outgoing.offset not in self._refused
        )

    def pass_by(self, outgoing: Outgoing, *, is_refused: bool) -> None:
        """Moves past a message; one that is refused is tried again, should it come again."""
        self._offset = max(self._offset, outgoing.offset)
        self._time_ms = max(self._time_ms, outgoing.timestamp_ms)
        if not is_refused:
            self._refused.discard(outgoing.offset)
            return
        self._refused.add(outgoing.offset)
        if len(self._refused) > _MOST_REFUSED:
            self._refused.remove(min(self._refused))

    def write(self) -> str:
        """Returns the text of the position as it is now."""
        text = " ".join(map(str, (self._offset, self._time_ms, *sorted(self._refused))))
        self.text = self._seals.sealed(self.name, text)
        return self.text


@dataclass
class _Transaction:
    """Transaction that is open."""

    partitions: set[int]
    """Partitions whose position it replaces."""
    messages: dict[int, Outgoing] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    """Results of messages, which count when it is committed."""
    awaited: set[int] = field(default_factory=set)
    """Numbers whose outcome is not there yet."""
    is_moved: bool = False
    """True from the replacement of the positions on."""
    is_ending: bool = False
    """True from the commit on."""


class PositionSink:
    """Sink of one worker, which sends by another one in transactions, and leaves out messages that the broker has."""

    most_under_way = 2 * _BATCH
    settle_seconds = 0.0
    """None: the next connection gets the position when the broker has done with this one."""
    holds_partitions = True
    """See `Exclusive`: the connection holds the positions of its partitions."""

    def __init__(
        self,
        sink: TransactedSink,
        owner: str,
        clock: Callable[[], float] = time.monotonic,
        keys: Callable[[], tuple[bytes, ...]] = tuple,
    ) -> None:
        """Sets up the sink without connecting.

        `owner` is the part of a position's name that the sink has alone, `keys` are those of `PositionSeals`.
        """
        self._sink = sink
        self._owner = owner
        self._seals = PositionSeals(keys)
        self._clock = clock
        self._waiting: deque[Outgoing] = deque()
        self._positions: dict[int, SinkPosition] = {}
        """Positions known, by partition."""
        self._deadlines: dict[int, float] = {}
        """Times at which no further position messages are waited for, by partition that is not known yet."""
        self._found: dict[int, list[PositionMessage]] = {}
        """Position messages that this connection holds, by partition."""
        self._foreign: dict[int, list[PositionMessage]] = {}
        """Messages without a valid seal that the next transaction removes, by partition."""
        self._ends: dict[int, int] = {}
        """Greatest end known of each partition, kept over connections: no position lies behind it."""
        self._open: _Transaction | None = None
        self._refusals: dict[int, str] = {}
        """Refusals that the broker's position does not show yet, by message number; kept over connections."""
        self._own_numbers = count(_FIRST_OWN_NUMBER)
        self._progress_at = 0.0
        self._known: list[Outcome] = []
        self._failure: NotConnectedError | None = None

    @property
    def address(self) -> str:
        """Address of the sink that sends."""
        return self._sink.address

    def connect(self) -> None:
        """Connects; raises as the sink that sends."""
        self._waiting.clear()
        self._positions.clear()
        self._deadlines.clear()
        self._found.clear()
        self._foreign.clear()
        self._known.clear()
        self._open = self._failure = None
        self._sink.connect()

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Takes messages for this transaction or the following ones."""
        if self._failure is None:
            for each in messages:
                self._ends[each.partition] = max(self._ends.get(each.partition, 0), each.end)
            self._waiting.extend(messages)
            self._guarded(self._advance)
        if self._failure is not None and not self._known:
            raise self._failure

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns the results of messages whose transaction is committed, or that the broker had already."""
        if not self._known and self._failure is None:
            self._guarded(lambda: self._listen(timeout_seconds))
        if self._failure is not None and not self._known:
            raise self._failure
        known, self._known = self._known, []
        return known

    def close(self) -> None:
        """Ends the connection; the broker undoes an open transaction."""
        self._sink.close()

    def _guarded(self, step: Callable[[], None]) -> None:
        """Keeps the failure of a step: results that are known are returned before it is raised."""
        try:
            step()
        except NotConnectedError as error:
            self._failure = error

    def _listen(self, timeout_seconds: float) -> None:
        for outcome in self._sink.outcomes(timeout_seconds):
            self._progress_at = self._clock()
            self._note(outcome)
        for message in self._sink.arrived():
            self._progress_at = self._clock()
            self._take(message)
        self._advance()

    def _advance(self) -> None:
        """Takes the next steps of the open transaction, or begins one, as far as nothing has to be waited for."""
        while (transaction := self._open or self._next()) is not None:
            if transaction.awaited or (not transaction.is_moved and not transaction.partitions <= self._found.keys()):
                if self._clock() - self._progress_at > _ANSWER_SECONDS:
                    raise NotConnectedError(f"the broker has not gone on for {_ANSWER_SECONDS:.0f} s in a transaction")
                return
            if transaction.is_moved:
                transaction.is_ending = True
                self._sink.commit(self._awaited(transaction))
            else:
                self._move(transaction)

    def _next(self) -> _Transaction | None:
        """Begins the next transaction; None if there is nothing to send, or a position is still waited for."""
        while self._waiting:
            batch = list(islice(self._waiting, _BATCH))
            firsts: dict[int, Outgoing] = {}
            for each in batch:
                if each.partition > _NO_PARTITION:
                    firsts.setdefault(each.partition, each)
            if unknown := [first for partition, first in firsts.items() if partition not in self._positions]:
                return self._learn(unknown)
            for _ in batch:
                self._waiting.popleft()
            self._known += [Outcome(each.number) for each in batch if self._has(each)]
            if left := [each for each in batch if not self._has(each)]:
                return self._begin(left)
        return None

    def _has(self, outgoing: Outgoing) -> bool:
        return outgoing.partition > _NO_PARTITION and self._positions[outgoing.partition].has(outgoing)

    def _learn(self, firsts: Sequence[Outgoing]) -> _Transaction | None:
        """Waits for the positions of partitions, given by their first messages; then puts them back as new messages.

        Brokers count the deliveries of a message, and move one away that came too often.
        """
        now = self._clock()
        for each in firsts:
            if each.partition not in self._deadlines:
                # The transaction of a connection that broke may hold it. A new sink has none.
                self._deadlines[each.partition] = now + (_FIRST_SECONDS if each.offset == 0 else _HELD_SECONDS)
                self._sink.watch(self._name(each.partition))
        if any(now < self._deadlines[each.partition] for each in firsts):
            return None
        for each in firsts:
            self._positions[each.partition] = self._read(each)
        return self._opened({each.partition for each in firsts})

    def _read(self, first: Outgoing) -> SinkPosition:
        position = SinkPosition(self._name(first.partition), self._seals)
        found = self._found.setdefault(first.partition, [])
        foreign = self._foreign.pop(first.partition, [])
        if not found and first.offset > 0:
            _log.warning(
                "no position yet with the seal of this bridge" if foreign else "no position yet",
                to=self.address,
                position=self._name(first.partition),
                begins_at=first.offset,
            )
        # One of an older version or another secret; no version leaves one where nothing was ever confirmed.
        counts_unsealed = not found and first.offset > 0
        for message in found:
            self._add(position, message, self._ends[first.partition])
        for message in foreign:
            if counts_unsealed:
                self._add(position, message, self._ends[first.partition])
            else:
                self._leave_out(message, _UNSEALED)
        # The transaction takes all of them out of the queue.
        found += foreign
        return position

    def _add(self, position: SinkPosition, message: PositionMessage, end: int) -> None:
        try:
            position.add(message.text, end)
        except ValueError as error:
            self._leave_out(message, str(error))

    def _leave_out(self, message: PositionMessage, why: str) -> None:
        _log.warning(
            "a message of the position queue is left out and removed: others write to that queue",
            to=self.address,
            position=message.name,
            text=message.text[:_SHOWN],
            why=why,
        )

    def _begin(self, messages: Sequence[Outgoing]) -> _Transaction:
        transaction = self._opened({each.partition for each in messages if each.partition > _NO_PARTITION})
        transaction.messages = {each.number: each for each in messages}
        refused = [Outcome(each, self._refusals[each]) for each in transaction.messages if each in self._refusals]
        transaction.outcomes += refused
        left = [each for each in messages if each.number not in self._refusals]
        transaction.awaited |= {each.number for each in left}
        self._sink.send(left)
        return transaction

    def _opened(self, partitions: set[int]) -> _Transaction:
        self._progress_at = self._clock()
        self._open = _Transaction(partitions)
        self._sink.begin(self._awaited(self._open))
        return self._open

    def _move(self, transaction: _Transaction) -> None:
        """Puts the positions behind the messages of a transaction into the queue, in place of those that it has."""
        for outcome in transaction.outcomes:
            outgoing = transaction.messages[outcome.number]
            if outgoing.partition > _NO_PARTITION:
                self._positions[outgoing.partition].pass_by(outgoing, is_refused=outcome.refusal is not None)
        transaction.is_moved = True
        for partition in transaction.partitions:
            tokens = [each.token for each in (*self._found.pop(partition), *self._foreign.pop(partition, ()))]
            text = self._positions[partition].write()
            self._sink.replace(self._awaited(transaction), tokens, self._name(partition), text)

    def _awaited(self, transaction: _Transaction) -> int:
        """Returns a number for a part of a transaction other than a message of the topic, and awaits its outcome."""
        number = next(self._own_numbers)
        transaction.awaited.add(number)
        return number

    def _note(self, outcome: Outcome) -> None:
        """Handles an outcome of the sink that sends."""
        transaction = self._open
        if transaction is None or outcome.number not in transaction.awaited:
            return
        transaction.awaited.remove(outcome.number)
        if outcome.number in transaction.messages:
            transaction.outcomes.append(outcome)
            if outcome.refusal is not None:
                self._refusals[outcome.number] = outcome.refusal
        elif outcome.refusal is not None:
            raise NotConnectedError(f"the position queue does not take a message: {outcome.refusal}")
        elif transaction.is_ending:
            self._open = None
            self._known += transaction.outcomes
            # Those of messages that the loop gave to another worker go as well: numbers increase.
            last = max(transaction.messages, default=0)
            self._refusals = {number: why for number, why in self._refusals.items() if number > last}

    def _take(self, message: PositionMessage) -> None:
        """Handles a position message; NotConnectedError if it is not the one that this connection has put there."""
        partition = int(message.name.rpartition("/")[2])
        position = self._positions.get(partition)
        if (position is None or message.text != position.text) and not self._seals.holds(message.name, message.text):
            # The bridge's own may still be held by another connection, so this one ends no wait for it.
            self._foreign.setdefault(partition, []).append(message)
            if position is not None:
                self._leave_out(message, _UNSEALED)
            return
        if position is None:
            self._deadlines[partition] = self._clock() + _OTHERS_SECONDS
        elif message.text != position.text:
            raise NotConnectedError(f"another connection has moved the position {message.name}")
        self._found.setdefault(partition, []).append(message)

    def _name(self, partition: int) -> str:
        return f"{self._owner}/{partition}"
