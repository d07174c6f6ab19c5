"""Messages to a STOMP 1.2 broker: one SEND frame for each, confirmed by a receipt.

Many are on their way at once. Artemis sends a receipt when it has stored the message, and drops a message that comes
again with the same `_AMQ_DUPL_ID`, so that what a lost connection left in doubt is simply sent again. Not at once:
releases before the one that has ARTEMIS-5874 can take ten seconds to put into its queue what they have read from a
connection that was cut (the thread that would do it waits for a lock that is held until a time-out), but confirm
repetitions and take later messages meanwhile, which would come to stand before it.

After an ERROR the connection is of no more use. Whose fault it was, the frame tells only in part: `_Judge` decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.products import require
from engine.connectors.stomp.sending import to_frame
from engine.connectors.stomp.session import StompSession, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.stomp.frames import Frame
    from routes.model import Config, SinkConfig

__all__ = ["StompSink"]

_ANSWER_BYTES = 64 * 1024
_LAST_WORDS_SECONDS = 0.5
_DOUBT_SECONDS = 5.0
_MOST_DOUBTS = 3
_MOST_ADDRESSES = 10_000

_LONG_HEAD_BYTES = 32 * 1024

_CODE = re.compile(r"AMQ\d{6}")
_NOT_ITS_FAULT = "AMQ339010"
"""Artemis: the connection was of no more use already, after another message's error."""
_NOT_SENT = "AMQ339011"
"""Artemis: the address is full, the user may not send to it, or the headers are too long; it does not say which."""
_REFUSING = frozenset(
    {
        "AMQ229032",  # the user may not create the address or the queue
        "AMQ229216",  # no name for a queue
        "AMQ339001",  # there is no such address, and none is to be created
        "AMQ339041",  # the address is of the other kind
    }
)
"""Artemis: what no other try can change."""


class StompSink:
    """A connection of its own to the broker."""

    most_under_way = 4_000
    settle_seconds = 11.0

    def __init__(self, config: Config, sink: SinkConfig, worker: int) -> None:
        """SetupError where a TLS file is no good."""
        self._config = config
        self._sink = sink
        client_id = sink.client_id or f"{config.bridge_id}.sink.{sink.name}"
        self._session = StompSession(sink, f"sink '{sink.name}'", config.url(sink), client_id, _ANSWER_BYTES)
        self._open: dict[int, _Sent] = {}
        self._known: list[Outcome] = []
        self._failure: NotConnectedError | None = None
        self._judge = _Judge()

    @property
    def address(self) -> str:
        """`stomp://host:port`."""
        return str(self._session.endpoint)

    def connect(self) -> None:
        """Also logs in; a refused login is asked for again only after a while.

        HardFailureError where a route sends to a topic and the broker would put that into a queue.
        """
        self._open.clear()
        self._known.clear()
        self._failure = None
        self._session.open()
        require(self._config, self._sink, self._session.product, self._session.server)

    def send(self, messages: Sequence[Outgoing]) -> None:
        """All in one write."""
        frames = []
        for each in messages:
            try:
                frame = to_frame(each, self._session.product)
            except RefusedError as error:
                self._known.append(Outcome(each.number, str(error)))
            else:
                frames.append(frame)
                self._open[each.number] = _Sent(each.address, len(frame) - len(each.message.body))
        try:
            self._session.send(b"".join(frames))
        except NotConnectedError as error:
            # The broker may have said why; what it said of messages is told first.
            self._listen(0)
            self._failure = self._failure or self._lost(error)
            if not self._known:
                raise self._failure from None

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Receipts, and refusals; after an ERROR first what is known of others, then NotConnectedError."""
        if not self._known and self._failure is None:
            self._listen(timeout_seconds)
        if self._failure and not self._known:
            raise self._failure
        known, self._known = self._known, []
        return known

    def close(self) -> None:
        """Leaves in order."""
        self._session.close()

    def _listen(self, timeout_seconds: float) -> None:
        """Takes what has come, waiting so long for the first frame.

        What Artemis had read before an error it still takes or refuses, and says so before it hangs up: that is
        listened to for a moment.
        """
        try:
            while (frame := self._session.next(timeout_seconds)) is not None:
                timeout_seconds = 0 if self._take(frame) else _LAST_WORDS_SECONDS
        except NotConnectedError as error:
            self._failure = self._failure or self._lost(error)
        if self._failure:
            self._session.hang_up()

    def _lost(self, error: NotConnectedError) -> NotConnectedError:
        """What to raise when the connection has gone without a word."""
        return NotConnectedError(str(error), self.settle_seconds if self._open else error.back_off_seconds)

    def _take(self, frame: Frame) -> bool:
        """Whether more can be expected of this connection."""
        if frame.command == "RECEIPT":
            self._receipt(frame)
        elif frame.command == "ERROR":
            is_settled = self._judged(frame)
            why = f"the broker says: {said(frame)}"
            self._failure = self._failure or NotConnectedError(why, None if is_settled else _DOUBT_SECONDS)
        return self._failure is None

    def _receipt(self, frame: Frame) -> None:
        number = _number(frame)
        sent = self._open.pop(number, None)
        if sent is not None:
            self._judge.accepted(number, sent)
            self._known.append(Outcome(number))

    def _judged(self, frame: Frame) -> bool:
        """Whether the message that an ERROR is about is refused for good."""
        number = _number(frame)
        sent = self._open.get(number)
        if sent is None:
            return False
        refusal = self._judge.refusal(number, sent, said(frame))
        if refusal is None:
            return False
        del self._open[number]
        self._known.append(Outcome(number, refusal))
        return True


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is to be known of a message until its receipt comes."""

    address: str
    head_bytes: int
    """Its frame without the body."""


class _Judge:
    """Tells a message's own fault from the broker's state, over several connections."""

    def __init__(self) -> None:
        self._doubts: dict[int, int] = {}
        self._taking: set[str] = set()

    def accepted(self, number: int, sent: _Sent) -> None:
        """The broker has this message."""
        self._doubts.pop(number, None)
        if len(self._taking) >= _MOST_ADDRESSES:
            self._taking.clear()
        self._taking.add(sent.address)

    def refusal(self, number: int, sent: _Sent, text: str) -> str | None:
        """Why this message is refused for good; None if another try may help."""
        found = _CODE.match(text)
        code = found[0] if found else ""
        if code == _NOT_ITS_FAULT:
            return None
        doubts = self._doubts[number] = self._doubts.get(number, 0) + 1
        if code not in _REFUSING and (doubts < _MOST_DOUBTS or (code == _NOT_SENT and self._is_full(sent))):
            return None
        del self._doubts[number]
        hint = f"; may the bridge send to {sent.address}, and are its headers short?" if code == _NOT_SENT else ""
        return f"the broker says: {text}{hint}"

    def _is_full(self, sent: _Sent) -> bool:
        """An address that took other messages will take this one as well some time, unless its headers are too long."""
        return sent.address in self._taking and sent.head_bytes < _LONG_HEAD_BYTES


def _number(frame: Frame) -> int:
    """The message that a frame is about; -1 if it is about none."""
    text = frame.headers.get("receipt-id", "")
    return int(text) if text.isascii() and text.isdecimal() else -1
