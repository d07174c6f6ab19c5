"""Sink that sends each message to a STOMP 1.2 broker as a SEND frame, which the broker confirms with a receipt.

Many messages are on their way at once. Artemis sends a receipt when it has stored the message, and drops a message that
comes again with the same `_AMQ_DUPL_ID`; so messages without a receipt when a connection is lost are sent again.

They are not sent again at once, but after `settle_seconds`. Artemis releases before the fix of ARTEMIS-5874 can take
ten seconds to put messages that they have read from a cut connection into their queue, because the thread that would do
it waits for a lock that is held until a time-out. Meanwhile they confirm repetitions of these messages and accept later
messages, which would then precede the earlier ones in the queue.

An ERROR frame ends the connection. The frame tells only in part whether the message is at fault: `_Judge` decides. Some
brokers do not even tell which message it is about: after such an ERROR, the messages in doubt are sent one by one.
"""

from __future__ import annotations

import re
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError, Outcome, RefusedError
from engine.connectors.features import require
from engine.connectors.jms import MOST_IN_DOUBT, MOST_IN_FLIGHT, client_id_of
from engine.connectors.numbers import whole
from engine.connectors.stomp.message import to_frame
from engine.connectors.stomp.session import BROKER_SAYS, StompSession, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.stomp.frames import StompFrame
    from engine.connectors.stomp.settings import StompSinkConfig

__all__ = ["SentMessage", "StompSink"]

_ANSWER_BYTES = 64 * 1024
_LAST_WORDS_SECONDS = 0.5
_DOUBT_SECONDS = 5.0
_MOST_DOUBTS = 3
_MOST_ADDRESSES = 10_000

_LONG_HEAD_BYTES = 32 * 1024

_CODE = re.compile(r"AMQ\d{6}")
_NOT_ITS_FAULT = "AMQ339010"
"""Artemis: the connection had failed already, after another message's error."""
_NOT_SENT = "AMQ339011"
"""Artemis: the address is full, the user may not send to it, or the headers are too long; the code does not tell
which."""
_REFUSING = frozenset(
    {
        "AMQ229032",  # the user may not create the address or the queue
        "AMQ229216",  # the name is not valid for a queue
        "AMQ339001",  # the address does not exist and is not created automatically
        "AMQ339041",  # the address has the other routing type
    }
)
"""Artemis: errors that sending again cannot resolve."""


class StompSink:
    """Sink of one worker, with its own connection to the broker."""

    most_under_way = MOST_IN_FLIGHT
    settle_seconds = 11.0

    def __init__(self, endpoint: SystemEndpoint[StompSinkConfig], worker: int) -> None:
        """Reads TLS files; does not connect.

        Raises:
            SetupError: a TLS file is missing or invalid.
        """
        sink = endpoint.settings
        self._endpoint = endpoint
        self._sink = sink
        client_id = sink.client_id and client_id_of(sink.client_id, worker)
        self._session = StompSession(sink, f"sink '{sink.name}'", endpoint.url, client_id, _ANSWER_BYTES)
        self._frames: deque[tuple[int, bytes, SentMessage]] = deque()
        """Frames not written yet; more than none only while messages are sent one by one."""
        self._held: dict[str, float] = {}
        """Addresses of messages in doubt, and the times by the monotonic clock at which they are tried again."""
        self._later: list[tuple[int, bytes, SentMessage]] = []
        """Frames to addresses that are held."""
        self._open: dict[int, SentMessage] = {}
        self._singly = 0
        """Number of messages to send one by one, each after the outcome of the one before."""
        self._known: list[Outcome] = []
        self._failure: NotConnectedError | None = None
        self._judge = _Judge()

    @property
    def address(self) -> str:
        """Endpoint of the broker, `stomp://host:port`."""
        return str(self._session.endpoint)

    def connect(self) -> None:
        """Connects and logs in.

        Raises:
            NotConnectedError: connecting or the login failed; after a refused login with a back-off.
            HardFailureError: a route sends to a topic, and the broker would put the messages into a queue.
        """
        self._frames.clear()
        self._later.clear()
        self._open.clear()
        self._known.clear()
        self._failure = None
        self._session.open()
        require(self._endpoint, self._session)
        self.most_under_way = MOST_IN_FLIGHT if self._session.traits.drops_duplicates else MOST_IN_DOUBT

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Sends all messages in one write; the first of them only, after an ERROR about an unknown one.

        Messages to an address that has just refused one for a reason that may pass wait for some seconds; the others
        go on.
        """
        self._release()
        now = time.monotonic()
        for each in messages:
            try:
                frame = self._frame(each)
            except RefusedError as error:
                self._known.append(Outcome(each.number, str(error)))
            else:
                waiting = self._later if self._held.get(each.address, now) > now else self._frames
                waiting.append((each.number, frame, SentMessage(each.address, len(frame) - len(each.message.body))))
        self._write_or_fail()
        if self._failure and not self._known:
            raise self._failure

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns outcomes of receipts and refusals; raises NotConnectedError only when none is left to return."""
        if not self._known and self._failure is None and self._release():
            self._write_or_fail()
        if not self._known and self._failure is None:
            self._listen(timeout_seconds)
        if self._failure and not self._known:
            raise self._failure
        known, self._known = self._known, []
        return known

    def close(self) -> None:
        """Disconnects in order."""
        self._session.close()

    def _frame(self, outgoing: Outgoing) -> bytes:
        """Returns the SEND frame of a message; RefusedError if a frame cannot carry it."""
        return to_frame(outgoing, self._session.traits)

    def _release(self) -> bool:
        """Moves the frames to addresses that are no longer held to those to write; returns True if there are any."""
        now = time.monotonic()
        due = [each for each in self._later if self._held.get(each[2].address, 0.0) <= now]
        if due:
            self._later = [each for each in self._later if self._held.get(each[2].address, 0.0) > now]
            self._frames.extend(due)
        return bool(due)

    def _write_or_fail(self) -> None:
        """Writes the frames that may be sent by now; keeps the failure of a lost connection for `outcomes`."""
        try:
            self._write()
        except NotConnectedError as error:
            # The broker may have sent an ERROR before, or receipts; outcomes are returned before the error is raised.
            self._listen(0)
            self._failure = self._failure or self._lost(error)

    def _write(self) -> None:
        """Writes the frames that may be sent by now."""
        if self._singly and self._open:
            return
        count = 1 if self._singly else len(self._frames)
        frames = [self._frames.popleft() for _ in range(min(count, len(self._frames)))]
        self._open |= {number: sent for number, _, sent in frames}
        if frames:
            self._session.send(b"".join([frame for _, frame, _ in frames]))

    def _listen(self, timeout_seconds: float) -> None:
        """Handles the frames received, and waits up to `timeout_seconds` for the first one.

        After an ERROR the session is read for a moment longer, since Artemis still accepts or refuses the messages it
        had read before, and reports that before it closes the connection.
        """
        try:
            while (frame := self._session.next(timeout_seconds)) is not None:
                timeout_seconds = 0 if self._take(frame) else _LAST_WORDS_SECONDS
        except NotConnectedError as error:
            self._failure = self._failure or self._lost(error)
        if self._failure:
            self._session.hang_up()

    def _lost(self, error: NotConnectedError) -> NotConnectedError:
        """Returns the error for a connection lost without an ERROR; its back-off lets messages in doubt settle."""
        return NotConnectedError(str(error), self.settle_seconds if self._open else error.back_off_seconds)

    def _take(self, frame: StompFrame) -> bool:
        """Handles a frame; returns False if the connection has failed with an ERROR."""
        if frame.command == "RECEIPT":
            self._receipt(frame)
        elif frame.command == "ERROR":
            pause_seconds = self._judged(frame)
            self._failure = self._failure or NotConnectedError(f"{BROKER_SAYS}{said(frame)}", pause_seconds)
        return self._failure is None

    def _receipt(self, frame: StompFrame) -> None:
        number = _number(frame)
        sent = self._open.pop(number, None)
        if sent is not None:
            self._judge.accepted(number, sent)
            self._held.pop(sent.address, None)
            self._known.append(Outcome(number))
            self._settled()

    def _settled(self) -> None:
        """Goes on with the next frame after the outcome of a message that was sent by itself."""
        if self._singly:
            self._singly -= 1
            self._write()

    def _judged(self, frame: StompFrame) -> float | None:
        """Records the outcome of the message that an ERROR refuses for good, if it refuses one.

        Returns the shortest wait in seconds before the next connection. It is None for an error about one message,
        which must not hold up the others: only messages to its address wait. Else it is the time in which the broker's
        state may change.
        """
        number, traits = _number(frame), self._session.traits
        if number not in self._open and not traits.errors_name_messages and self._open:
            if len(self._open) > 1:
                self._singly = len(self._open)
                return None
            (number,) = self._open
        sent = self._open.get(number)
        if sent is None:
            return _DOUBT_SECONDS
        text = said(frame)
        is_final = traits.refusals is not None and traits.refusals.match(text) is not None
        refusal = self._judge.refusal(number, sent, text, is_final=is_final)
        if refusal is None:
            self._held[sent.address] = time.monotonic() + _DOUBT_SECONDS
            return None
        del self._open[number]
        self._held.pop(sent.address, None)
        self._singly = max(self._singly - 1, 0)
        self._known.append(Outcome(number, refusal))
        return None


@dataclass(frozen=True, slots=True)
class SentMessage:
    """Facts about a message that was sent and has no receipt yet."""

    address: str
    head_bytes: int
    """Size of the frame without the body."""


class _Judge:
    """Classifier of ERROR frames: decides whether the message or the broker's state is the cause.

    It keeps its counts over successive connections.
    """

    def __init__(self) -> None:
        self._doubts: dict[int, int] = {}
        self._taking: set[str] = set()
        """Addresses that have accepted a message."""
        self._refusing: set[str] = set()
        """Addresses that have refused a message for good, and accepted none since."""

    def accepted(self, number: int, sent: SentMessage) -> None:
        """Records that the broker has confirmed this message."""
        self._doubts.pop(number, None)
        self._refusing.discard(sent.address)
        _note(self._taking, sent.address)

    def refusal(self, number: int, sent: SentMessage, text: str, *, is_final: bool = False) -> str | None:
        """Returns the reason why this message is refused for good; None if sending it again may succeed.

        `is_final` is true for an error of which the broker is known to say it at every attempt.
        """
        code = _code(text)
        if code == _NOT_ITS_FAULT:
            return None
        doubts = self._doubts[number] = self._doubts.get(number, 0) + 1
        most = 1 if sent.address in self._refusing else _MOST_DOUBTS
        if code not in _REFUSING and not is_final and (doubts < most or self._is_full(sent, text)):
            return None
        del self._doubts[number]
        _note(self._refusing, sent.address)
        hint = f"; may the bridge send to {sent.address}, and are its headers short?" if code == _NOT_SENT else ""
        return f"the broker says: {text}{hint}"

    def _is_full(self, sent: SentMessage, text: str) -> bool:
        """Returns True if the address is probably full: it accepted other messages, and the headers are not too long.

        Such a message will be accepted when the address has room again.
        """
        return _code(text) == _NOT_SENT and sent.address in self._taking and sent.head_bytes < _LONG_HEAD_BYTES


def _code(text: str) -> str:
    """Returns the code of an error of Artemis; empty if there is none."""
    match = _CODE.match(text)
    return match[0] if match else ""


def _note(addresses: set[str], address: str) -> None:
    """Adds an address to a set that does not grow without bound."""
    if len(addresses) >= _MOST_ADDRESSES:
        addresses.clear()
    addresses.add(address)


def _number(frame: StompFrame) -> int:
    """Returns the number of the message to which a frame refers; -1 if it refers to none."""
    number = whole(frame.headers.get("receipt-id", ""))
    return -1 if number is None else number
