"""Messages to and from a broker, through the sinks and sources of the bridge itself.

Each command makes one connection and does not retry: an error goes to the user at once.
"""

from __future__ import annotations

import os
import time
import uuid
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING

from engine.cli.output import Item, note, progress, quiet_log
from engine.connectors.base import MissingError, NotConnectedError, Outgoing
from engine.errors import HardFailureError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.cli.destination import BrokerDestination
    from engine.connectors.base import Delivery, Outcome, Sink, Source
    from engine.connectors.endpoint import SystemEndpoint
    from engine.message import Message
    from routes.model import SinkConfig, SourceConfig

__all__ = ["give", "item", "listening", "next_delivery", "take", "who"]

_MOST_UNDER_WAY = 4_000
_MOST_BYTES_UNDER_WAY = 64 * 1024 * 1024
_BATCH = 500
_CONFIRM_SECONDS = 30.0
_QUIET_SECONDS = 1.0
_POLL_SECONDS = 0.2
_SAID = (
    "the broker says: ",
    "the broker says of ",
    "the broker refuses ",
    "the server says: ",
    "the server refuses ",
    "the server does not allow ",
)


def who(command: str) -> str:
    """A name at the broker that no other process has."""
    return f"jms-bridge-{command}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def give(
    target: BrokerDestination, own: SystemEndpoint[SinkConfig], message: Message, reply_to: str, number: int = 1
) -> None:
    """Sends a message `number` times and waits until the broker has confirmed all; `reply_to` may be empty.

    Raises:
        UnreachableError: the broker does not answer.
        HardFailureError: it refuses.
    """
    with _translated_errors(target):
        sink = target.system.make_sink(own, 1)
        try:
            sink.connect()
            _Giver(sink, target, message, number, reply_to or None).run()
        finally:
            sink.close()


def take(
    target: BrokerDestination, own: SystemEndpoint[SourceConfig], most: int | None, seconds: float | None
) -> Iterator[Item]:
    """Yields messages as they arrive, until none does within `seconds`; without end if that is None.

    A message is acknowledged once the caller asks for the next one.
    """
    with listening(target, own) as source:
        wait = seconds
        for number in count(1):
            delivery = next_delivery(source, wait)
            if delivery is None:
                return
            yield item(target, delivery)
            source.acknowledge([delivery.token])
            if number == most:
                return
            if most is None and wait is not None:
                wait = min(wait, _QUIET_SECONDS)


@contextmanager
def listening(target: BrokerDestination, own: SystemEndpoint[SourceConfig]) -> Iterator[Source]:
    """A source that is connected and has subscribed, until the block ends; raises as `give` does."""
    with _translated_errors(target):
        source = target.system.make_source(own, 1)
        try:
            source.connect()
            yield source
        finally:
            source.close()


def next_delivery(source: Source, seconds: float | None) -> Delivery | None:
    """Returns the next delivery; None if none arrives within `seconds`. Without `seconds` it waits without end."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        left = _POLL_SECONDS if deadline is None else min(deadline - time.monotonic(), _POLL_SECONDS)
        if (delivery := source.receive(max(left, 0))) is not None:
            return delivery
        if left <= 0:
            return None


def item(target: BrokerDestination, delivery: Delivery) -> Item:
    """Item to show for a delivery; prints a note at once if the delivery is faulty."""
    if delivery.fault is not None:
        note(f"the next message cannot be read as its format says: {delivery.fault}")
    if delivery.size is not None:
        note(f"the next body is larger than journal.max-message-bytes: only its beginning of {delivery.size} bytes")
    return Item(target.text, {"destination": target.text}, delivery.message.to_record())


class _Giver:
    """Sender of one message to a sink, any number of times, with many under way."""

    def __init__(
        self, sink: Sink, target: BrokerDestination, message: Message, number: int, reply_to: str | None
    ) -> None:
        self._sink = sink
        self._target = target
        self._message = message
        self._number = number
        self._reply_to = reply_to
        self._id = uuid.uuid4().hex
        self._begun_ms = time.time_ns() // 1_000_000
        self._most = max(1, min(_MOST_UNDER_WAY, _MOST_BYTES_UNDER_WAY // max(len(message.body), 1)))
        self._sent = 0
        self._confirmed = 0

    def run(self) -> None:
        """Sends the messages; returns when all are confirmed."""
        deadline = time.monotonic() + _CONFIRM_SECONDS
        try:
            while self._confirmed < self._number:
                room = min(self._most - (self._sent - self._confirmed), self._number - self._sent, _BATCH)
                if room > 0:
                    self._send(room)
                outcomes = self._sink.outcomes(0 if self._more else _POLL_SECONDS)
                self._note(outcomes)
                if outcomes:
                    deadline = time.monotonic() + _CONFIRM_SECONDS
                elif time.monotonic() > deadline:
                    raise NotConnectedError(f"it has confirmed nothing for {_CONFIRM_SECONDS:.0f} s")
        except NotConnectedError as error:
            # Receipts that came before the end of the connection may wait to be read.
            with suppress(NotConnectedError):
                self._note(self._sink.outcomes(0))
            raise NotConnectedError(f"{error}{self._so_far}", error.back_off_seconds) from error

    @property
    def _more(self) -> bool:
        """Returns True if another message can be sent at once."""
        return self._sent < self._number and self._sent - self._confirmed < self._most

    @property
    def _so_far(self) -> str:
        return progress(self._confirmed, self._sent, self._number)

    def _send(self, number: int) -> None:
        first = self._sent + 1
        self._sent += number
        self._sink.send([self._outgoing(each) for each in range(first, first + number)])

    def _outgoing(self, number: int) -> Outgoing:
        identity = f"{self._id}/{number}"
        return Outgoing(number, self._message, self._target.address, identity, self._reply_to, self._begun_ms)

    def _note(self, outcomes: Sequence[Outcome]) -> None:
        refusals = [outcome.refusal for outcome in outcomes if outcome.refusal is not None]
        self._confirmed += len(outcomes) - len(refusals)
        if refusals:
            self._sent -= len(refusals)
            raise HardFailureError(f"{self._target.url} refuses the message{self._so_far}: {refusals[0]}")


@contextmanager
def _translated_errors(target: BrokerDestination) -> Iterator[None]:
    """Turns errors of the connectors into errors of the command."""
    try:
        with quiet_log():
            yield
    except NotConnectedError as error:
        is_refused = isinstance(error, MissingError) or error.back_off_seconds is not None
        if is_refused or str(error).startswith(_SAID):
            raise HardFailureError(f"{target.url} refuses: {error}") from error
        raise UnreachableError(f"{target.url} does not answer ({error}){_hint(target, error)}") from error


def _hint(target: BrokerDestination, error: NotConnectedError) -> str:
    """Hint for a broker that cannot be reached."""
    if not target.configured:
        missing = f"no source or sink of type {target.system} is configured"
        return f"; {missing}: name a broker with --url, or start a bridge that has one"
    if not target.system.port_name or str(error).endswith("?"):
        return ""
    return f"; is the broker running, and is this its {target.system.port_name}?"
