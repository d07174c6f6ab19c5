"""One client of a listener: bytes in, bytes out. No socket and no clock of its own, `server` has them.

The protocol headers, the login, open and close are here, everything else is the business of a session. Whatever bytes
come, the worst is that this client's connection ends, with an error that says why where the client can read one.
Specification: OASIS AMQP 1.0, parts 2.2, 2.4 and 5.3.
"""

from __future__ import annotations

from enum import Enum, auto
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog

from engine.codecs.amqp.values import AmqpError
from engine.connectors.amqp import answers, performatives
from engine.connectors.amqp.frames import (
    AMQP,
    EMPTY,
    MAX_FRAME_BYTES,
    PROTOCOL_HEADER,
    SASL,
    SASL_HEADER,
    FrameError,
    FrameParser,
    frame,
)
from engine.connectors.amqp.limits import TransactionUse
from engine.connectors.amqp.peer_session import PeerError, PeerSession
from engine.connectors.amqp.performatives import Code, Condition, condition_of, field, number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.connectors.amqp.peer_session import Host

__all__ = ["SELECTOR", "Peer"]

SELECTOR = "APACHE.ORG:SELECTOR"
"""Capability of who writes selectors with the names of Apache Qpid."""

_LEAST_FRAME_BYTES = 512
_SILENT_BEATS = 3.0
_LEAST_BEAT_SECONDS = 0.25
_log = structlog.get_logger(__name__)


class _Stage(Enum):
    HEADER = auto()
    LOGIN = auto()
    AMQP_HEADER = auto()
    FRAMES = auto()


class Peer:
    """A connection, from the first byte to the last."""

    def __init__(self, host: Host, name: str, now: float, *, proven: bool = False) -> None:
        """`proven`: it has shown a certificate that is to be trusted; times are those of `time.monotonic`."""
        self.host = host
        self.name = name
        self.outgoing = bytearray()
        """What is to be sent to it."""
        self.ended = False
        """Whether it is over once `outgoing` is sent; what still comes says nothing any more."""
        self.max_frame_bytes = _LEAST_FRAME_BYTES
        self.translates = False
        """Whether its selectors have the names of Apache Qpid."""
        self.sessions: dict[int, PeerSession] = {}
        """By channel."""
        self._proven = proven
        self._limits = host.limits
        self._stage = _Stage.HEADER
        self._parser = FrameParser(self._limits.frame_bytes)
        self._steps: Iterator[None] = iter(())
        """Frames of what came last that are still to be dealt with."""
        self._logged_in = False
        self._opened = False
        self._before_open = 0
        self._held = 0
        self._beat = host.heartbeat_seconds
        self.begun = self._heard = self._spoke = now
        """When it connected."""
        self.active = now
        """When it last said more than that it is there."""
        self._frame_begun: float | None = None
        """When the first byte of a frame came that is not complete."""
        self._part_came = now
        self.transactions = TransactionUse()

    @property
    def opened(self) -> bool:
        """Whether it has logged in, where that is asked for, and opened the connection."""
        return self._opened

    @property
    def now(self) -> float:
        """When the bytes came that are being dealt with."""
        return self._heard

    @property
    def held_bytes(self) -> int:
        """Of frames and messages that have not come whole."""
        return self._held + self._parser.held_bytes

    @property
    def links(self) -> int:
        """How many it has, of all its sessions."""
        return sum(len(session.links) for session in self.sessions.values())

    def write(self, data: bytes) -> None:
        """Appends to `outgoing`."""
        self.outgoing += data

    def sent(self, count: int, now: float) -> None:
        """So many bytes of `outgoing` are on their way."""
        del self.outgoing[:count]
        self._spoke = now

    def excuse(self, now: float) -> None:
        """Nothing is read from it just now, so it cannot be heard."""
        self._heard = self._part_came = now
        if self._frame_begun is not None:
            self._frame_begun = now

    def hold(self, count: int) -> None:
        """So many bytes more, or less, of messages that have not come whole. PeerError: that is too many."""
        self._held += count
        self._part_came = self._heard
        if count > 0 and self._held > self._limits.unfinished_bytes + self.host.max_bytes:
            raise PeerError(answers.RESOURCE_LIMIT, f"{self._held} bytes in messages that are not complete")

    def feed(self, data: bytes, now: float) -> None:
        """Takes what has come, and deals with all of it."""
        self.receive(data, now)
        self.work(lambda: False)

    def receive(self, data: bytes, now: float) -> None:
        """Takes what has come, for `work`, which must have dealt with all that came before."""
        if self.ended:
            return
        self._heard = now
        self._steps = self._advance(data)

    def work(self, is_spent: Callable[[], bool]) -> bool:
        """Deals with frames until `is_spent`, one at least.

        Returns:
            Whether some are left.
        """
        if self.ended:
            return False
        try:
            for _ in self._steps:
                if is_spent():
                    return not self.ended
        except FrameError as error:
            if self._stage is _Stage.HEADER:
                self.write(self._wanted_header)
            self.close(Condition(answers.FRAMING_ERROR, str(error)))
        except AmqpError as error:
            self.close(Condition(answers.DECODE_ERROR, str(error)))
        except PeerError as error:
            self.close(error.condition)
        return False

    def tick(self, now: float) -> None:
        """To be called several times a second: heart-beats, and who is silent for too long."""
        if self.ended:
            return
        if not self._opened:
            if now - self.begun > self._limits.hello_seconds:
                self.close(Condition(answers.RESOURCE_LIMIT, "no connection was opened"))
        elif self._frame_begun is not None and now - self._frame_begun > self._limits.frame_seconds:
            seconds = f"{self._limits.frame_seconds:.0f} s"
            self.close(Condition(answers.RESOURCE_LIMIT, f"a frame did not come whole within {seconds}"))
        elif self._held and now - self._part_came > self._limits.part_seconds:
            seconds = f"{self._limits.part_seconds:.0f} s"
            self.close(Condition(answers.RESOURCE_LIMIT, f"a message was begun and not continued for {seconds}"))
        elif now - self._heard > self.host.heartbeat_seconds * _SILENT_BEATS:
            self.close(Condition(answers.RESOURCE_LIMIT, f"nothing was heard for {now - self._heard:.0f} s"))
        elif now - self._spoke > self._beat and not self.outgoing:
            self.write(EMPTY)
        if not self.ended:
            self._expire(now)

    def _expire(self, now: float) -> None:
        """Ends transactions that take too long."""
        for session in self.sessions.values():
            for transaction in session.transactions.values():
                transaction.expire(now, self._limits.transaction_seconds)

    def close(self, condition: Condition | None = None) -> None:
        """Says good-bye, with why."""
        if self.ended:
            return
        if condition is not None:
            _log.warning("client left", client=self.name, why=str(condition))
        if self._opened:
            self.write(frame(0, answers.closed(condition)))
        self.gone()

    def gone(self) -> None:
        """It is not there any more."""
        self.ended = True
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.leave()

    def _advance(self, data: bytes) -> Iterator[None]:
        """Deals with what has come, pausing behind each frame."""
        if not self._opened:
            self._before_open += len(data)
            if self._before_open > self._limits.before_open_bytes:
                raise PeerError(answers.FRAMING_ERROR, "too much before the connection is open")
        if self._stage is not _Stage.FRAMES:
            self._welcome(data)
            data = b""
        if self._stage is not _Stage.FRAMES:
            return
        completed = self._parser.completed
        for kind, channel, body in self._parser.feed(data):
            self._take(kind, channel, body)
            yield
            if self.ended:
                return
        if not self._parser.held_bytes:
            self._frame_begun = None
        elif self._frame_begun is None or self._parser.completed > completed:
            self._frame_begun = self._heard

    def _welcome(self, data: bytes) -> None:
        """Headers and login, as far as they have come."""
        while self._stage is not _Stage.FRAMES and not self.ended:
            if self._stage is _Stage.LOGIN:
                found = self._parser.one(data)
                if found is None:
                    return
                self._login(*found)
            else:
                header = self._parser.header(data)
                if header is None:
                    return
                self._greet(header)
            data = b""

    @property
    def _wanted_header(self) -> bytes:
        """Whoever comes with another one is told which would do, and left."""
        return SASL_HEADER if self.host.logins.required and not self._logged_in else PROTOCOL_HEADER

    def _greet(self, header: bytes) -> None:
        wanted = self._wanted_header
        if header == SASL_HEADER and self._stage is _Stage.HEADER:
            mechanisms = self.host.logins.mechanisms(proven=self._proven)
            self.write(SASL_HEADER + frame(0, answers.sasl_mechanisms(mechanisms), SASL))
            self._stage = _Stage.LOGIN
        elif header == PROTOCOL_HEADER == wanted:
            self.write(PROTOCOL_HEADER)
            self._stage = _Stage.FRAMES
        else:
            self.write(wanted)
            what = "a login" if wanted == SASL_HEADER else "AMQP 1.0"
            raise PeerError(answers.FRAMING_ERROR, f"header {header!r} in place of {what}")

    def _login(self, kind: int, _: int, body: bytes) -> None:
        code, fields = performatives.read(body)
        mechanism, response = field(fields, 0), field(fields, 1) or b""
        if kind != SASL or code != Code.SASL_INIT or not isinstance(mechanism, str) or not isinstance(response, bytes):
            raise PeerError(answers.FRAMING_ERROR, "something else in place of a login")
        welcome = self.host.logins.admit(mechanism, response, proven=self._proven)
        self.write(frame(0, answers.sasl_outcome(welcome=welcome), SASL))
        if not welcome:
            raise PeerError("amqp:unauthorized-access", f"the login ({mechanism[:20]}) is refused")
        self._logged_in = True
        self._stage = _Stage.AMQP_HEADER

    def _take(self, kind: int, channel: int, body: bytes) -> None:
        if kind != AMQP:
            raise PeerError(answers.FRAMING_ERROR, f"a frame of type {kind}")
        self.active = self._heard
        session = self.sessions.get(channel)
        if session is not None and performatives.is_transfer(body):
            session.transferred(body)
            return
        if len(body) > (most := self._limits.performative_bytes):
            raise PeerError(answers.FRAMING_ERROR, f"a performative of {len(body)} bytes; at most {most} are taken")
        code, fields = performatives.read(body)
        if code == Code.OPEN and not self._opened:
            self._open(fields)
        elif code == Code.CLOSE and self._opened:
            self._closed(fields)
        elif session is not None:
            session.take(code, fields)
        elif code == Code.BEGIN and self._opened and channel < self._limits.channels:
            self.sessions[channel] = PeerSession(self, channel, fields)
        else:
            raise PeerError(
                answers.ILLEGAL_STATE, f"performative {code:#x} on channel {channel}, where it has no place"
            )

    def _open(self, fields: list[Any]) -> None:
        host = self.host
        self.max_frame_bytes = max(min(number(fields, 2, MAX_FRAME_BYTES), MAX_FRAME_BYTES), _LEAST_FRAME_BYTES)
        if wanted := number(fields, 4):
            self._beat = max(min(self._beat, wanted / 2000), _LEAST_BEAT_SECONDS)
        self.translates = SELECTOR in (*answers.names(field(fields, 7)), *answers.names(field(fields, 8)))
        # A client shows itself in half of the time that it is told.
        idle = int(host.heartbeat_seconds * 2000)
        frame_bytes, most_channel = self._limits.frame_bytes, self._limits.channels - 1
        product = version("jms-bridge")
        answer = answers.opened(host.container, idle, frame_bytes, most_channel, host.offered, product)
        self.write(frame(0, answer))
        self._opened = True

    def _closed(self, fields: list[Any]) -> None:
        condition = condition_of(field(fields, 0))
        if condition is not None:
            _log.warning("client left", client=self.name, why=str(condition))
        self.close()
