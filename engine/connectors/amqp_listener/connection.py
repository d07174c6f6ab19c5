"""Connection of one client to a listener, without its socket and clock: bytes in, bytes out.

`ServerConnection` handles protocol headers, login, open and close; `session` handles everything within a session, and
`server` has sockets and clock. Whatever bytes a client sends, at worst its own connection ends, with an error that says
why if the client can read one. Specification: OASIS AMQP 1.0, parts 2.2, 2.4 and 5.3.
"""

from __future__ import annotations

from enum import Enum, auto
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import structlog

from engine.connectors.amqp import performatives, server_performatives
from engine.connectors.amqp.codec.values import AmqpError
from engine.connectors.amqp.frames import (
    AMQP,
    EMPTY,
    MAX_FRAME_BYTES,
    PROTOCOL_HEADER,
    SASL,
    SASL_HEADER,
    AmqpFrameError,
    AmqpFrameParser,
    frame,
)
from engine.connectors.amqp.performatives import Code, Condition, condition_of, field, names, number
from engine.connectors.amqp_listener.limits import TransactionUse
from engine.connectors.amqp_listener.session import ClientError, ServerSession

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.connectors.amqp_listener.session import Host

__all__ = ["SELECTOR", "ServerConnection"]

SELECTOR = "APACHE.ORG:SELECTOR"
"""Capability of a client whose selectors name AMQP fields as Apache Qpid does."""

_LEAST_FRAME_BYTES = 512
_SILENT_BEATS = 3.0
_LEAST_BEAT_SECONDS = 0.25
_log = structlog.get_logger(__name__)


class _Stage(Enum):
    """Part of the protocol that the client has to send next."""

    HEADER = auto()
    LOGIN = auto()
    AMQP_HEADER = auto()
    FRAMES = auto()


class ServerConnection:
    """Connection of one client, from its first byte to its last."""

    def __init__(self, host: Host, name: str, now: float, *, proven: bool = False) -> None:
        """Takes the listener's host and the client's `name` for logs.

        `proven`: the client has shown a trusted certificate. All times are seconds of the server's monotonic clock.
        """
        self.host = host
        self.name = name
        self.outgoing = bytearray()
        """Bytes to be sent to the client."""
        self.ended = False
        """True if the connection is over once `outgoing` is sent; the client's further bytes are ignored."""
        self.max_frame_bytes = _LEAST_FRAME_BYTES
        self.translates = False
        """True if the client's selectors name AMQP fields as Apache Qpid does."""
        self.sessions: dict[int, ServerSession] = {}
        """Sessions by channel."""
        self._proven = proven
        self._limits = host.limits
        self._stage = _Stage.HEADER
        self._parser = AmqpFrameParser(self._limits.frame_bytes)
        self._steps: Iterator[None] = iter(())
        """Iterator over the frames of the last `receive` that are still to be handled."""
        self._logged_in = False
        self._opened = False
        self._before_open = 0
        self._held = 0
        self._beat = host.heartbeat_seconds
        self.begun = self._heard = self._spoke = now
        """Time of the connection; at first also that of the last bytes from the client (`_heard`) and to it (`_spoke`).
        """
        self.active = now
        """Time of the client's last frame that was more than a heart-beat."""
        self._frame_begun: float | None = None
        """Time of the first byte of an incomplete frame; None if no frame is incomplete."""
        self._part_came = now
        self.transaction_use = TransactionUse()

    @property
    def opened(self) -> bool:
        """True if the client has opened the connection, after a login where one is required."""
        return self._opened

    @property
    def now(self) -> float:
        """Time at which the bytes came that are being handled."""
        return self._heard

    @property
    def held_bytes(self) -> int:
        """Bytes of incomplete frames and messages."""
        return self._held + self._parser.held_bytes

    @property
    def links(self) -> int:
        """Number of links in all sessions of the client."""
        return sum(len(session.links) for session in self.sessions.values())

    def write(self, data: bytes) -> None:
        """Appends data to `outgoing`."""
        self.outgoing += data

    def sent(self, count: int, now: float) -> None:
        """Removes the first `count` bytes of `outgoing`, which have been sent."""
        del self.outgoing[:count]
        self._spoke = now

    def excuse(self, now: float) -> None:
        """Restarts a client's time limits while nothing is read from it, since its silence then means nothing."""
        self._heard = self._part_came = now
        if self._frame_begun is not None:
            self._frame_begun = now

    def hold(self, count: int) -> None:
        """Adds `count` bytes of incomplete messages, or takes them away if negative.

        Raises:
            ClientError: the client has too many bytes in incomplete messages.
        """
        self._held += count
        self._part_came = self._heard
        if count > 0 and self._held > self._limits.unfinished_bytes + self.host.max_bytes:
            raise ClientError(
                server_performatives.RESOURCE_LIMIT, f"{self._held} bytes in messages that are not complete"
            )

    def feed(self, data: bytes, now: float) -> None:
        """Takes bytes from the client and handles all their frames."""
        self.receive(data, now)
        self.work(lambda: False)

    def receive(self, data: bytes, now: float) -> None:
        """Takes bytes from the client for `work`, which must have handled all bytes before them."""
        if self.ended:
            return
        self._heard = now
        self._steps = self._advance(data)

    def work(self, is_spent: Callable[[], bool]) -> bool:
        """Handles frames until `is_spent` returns True, but at least one.

        Returns:
            True if frames are left.
        """
        if self.ended:
            return False
        try:
            for _ in self._steps:
                if is_spent():
                    return not self.ended
        except AmqpFrameError as error:
            if self._stage is _Stage.HEADER:
                self.write(self._wanted_header)
            self.close(Condition(server_performatives.FRAMING_ERROR, str(error)))
        except AmqpError as error:
            self.close(Condition(server_performatives.DECODE_ERROR, str(error)))
        except ClientError as error:
            self.close(error.condition)
        return False

    def tick(self, now: float) -> None:
        """Sends a heart-beat if one is due, and ends connections and transactions that exceed a time limit.

        The server calls it several times a second.
        """
        if self.ended:
            return
        if not self._opened:
            if now - self.begun > self._limits.hello_seconds:
                self.close(Condition(server_performatives.RESOURCE_LIMIT, "no connection was opened"))
        elif self._frame_begun is not None and now - self._frame_begun > self._limits.frame_seconds:
            seconds = f"{self._limits.frame_seconds:.0f} s"
            self.close(Condition(server_performatives.RESOURCE_LIMIT, f"a frame did not come whole within {seconds}"))
        elif self._held and now - self._part_came > self._limits.part_seconds:
            seconds = f"{self._limits.part_seconds:.0f} s"
            self.close(
                Condition(server_performatives.RESOURCE_LIMIT, f"a message was begun and not continued for {seconds}")
            )
        elif now - self._heard > self.host.heartbeat_seconds * _SILENT_BEATS:
            self.close(
                Condition(server_performatives.RESOURCE_LIMIT, f"nothing was heard for {now - self._heard:.0f} s")
            )
        elif now - self._spoke > self._beat and not self.outgoing:
            self.write(EMPTY)
        if not self.ended:
            self._expire(now)

    def _expire(self, now: float) -> None:
        """Fails transactions that are open for too long."""
        for session in self.sessions.values():
            for transaction in session.transactions.values():
                transaction.expire(now, self._limits.transaction_seconds)

    def close(self, condition: Condition | None = None) -> None:
        """Ends the connection, with an error if `condition` is given."""
        if self.ended:
            return
        if condition is not None:
            _log.warning("client left", client=self.name, why=str(condition))
        if self._opened:
            self.write(frame(0, server_performatives.closed(condition)))
        self.gone()

    def gone(self) -> None:
        """Ends the connection and its sessions without telling the client."""
        self.ended = True
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.leave()

    def _advance(self, data: bytes) -> Iterator[None]:
        """Handles bytes from the client, pausing after each frame."""
        if not self._opened:
            self._before_open += len(data)
            if self._before_open > self._limits.before_open_bytes:
                raise ClientError(server_performatives.FRAMING_ERROR, "too much before the connection is open")
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
        """Handles protocol headers and login, as far as their bytes have come."""
        while self._stage is not _Stage.FRAMES and not self.ended:
            if self._stage is _Stage.LOGIN:
                frame = self._parser.one(data)
                if frame is None:
                    return
                self._login(*frame)
            else:
                header = self._parser.header(data)
                if header is None:
                    return
                self._greet(header)
            data = b""

    @property
    def _wanted_header(self) -> bytes:
        """Protocol header that the listener expects (part 2.2).

        A client that sends an unsuitable one gets this header as the answer and is disconnected.
        """
        return SASL_HEADER if self.host.logins.required and not self._logged_in else PROTOCOL_HEADER

    def _greet(self, header: bytes) -> None:
        wanted = self._wanted_header
        if header == SASL_HEADER and self._stage is _Stage.HEADER:
            mechanisms = self.host.logins.mechanisms(proven=self._proven)
            self.write(SASL_HEADER + frame(0, server_performatives.sasl_mechanisms(mechanisms), SASL))
            self._stage = _Stage.LOGIN
        elif header == PROTOCOL_HEADER == wanted:
            self.write(PROTOCOL_HEADER)
            self._stage = _Stage.FRAMES
        else:
            self.write(wanted)
            what = "a login" if wanted == SASL_HEADER else "AMQP 1.0"
            raise ClientError(server_performatives.FRAMING_ERROR, f"header {header!r} in place of {what}")

    def _login(self, kind: int, _: int, body: bytes) -> None:
        code, fields = performatives.read(body)
        mechanism, response = field(fields, 0), field(fields, 1) or b""
        if kind != SASL or code != Code.SASL_INIT or not isinstance(mechanism, str) or not isinstance(response, bytes):
            raise ClientError(server_performatives.FRAMING_ERROR, "something else in place of a login")
        welcome = self.host.logins.admit(mechanism, response, proven=self._proven)
        self.write(frame(0, server_performatives.sasl_outcome(welcome=welcome), SASL))
        if not welcome:
            raise ClientError("amqp:unauthorized-access", f"the login ({mechanism[:20]}) is refused")
        self._logged_in = True
        self._stage = _Stage.AMQP_HEADER

    def _take(self, kind: int, channel: int, body: bytes) -> None:
        if kind != AMQP:
            raise ClientError(server_performatives.FRAMING_ERROR, f"a frame of type {kind}")
        self.active = self._heard
        session = self.sessions.get(channel)
        if session is not None and performatives.is_transfer(body):
            session.transferred(body)
            return
        if len(body) > (most := self._limits.performative_bytes):
            raise ClientError(
                server_performatives.FRAMING_ERROR, f"a performative of {len(body)} bytes; at most {most} are taken"
            )
        code, fields = performatives.read(body)
        if code == Code.OPEN and not self._opened:
            self._open(fields)
        elif code == Code.CLOSE and self._opened:
            self._closed(fields)
        elif session is not None:
            session.take(code, fields)
        elif code == Code.BEGIN and self._opened and channel < self._limits.channels:
            self.sessions[channel] = ServerSession(self, channel, fields)
        else:
            raise ClientError(
                server_performatives.ILLEGAL_STATE,
                f"performative {code:#x} on channel {channel}, where it has no place",
            )

    def _open(self, fields: list[Any]) -> None:
        host = self.host
        self.max_frame_bytes = max(min(number(fields, 2, MAX_FRAME_BYTES), MAX_FRAME_BYTES), _LEAST_FRAME_BYTES)
        if wanted := number(fields, 4):
            self._beat = max(min(self._beat, wanted / 2000), _LEAST_BEAT_SECONDS)
        self.translates = SELECTOR in (
            *names(field(fields, 7)),
            *names(field(fields, 8)),
        )
        # A client sends heart-beats at half of the idle time-out that it is told.
        idle = int(host.heartbeat_seconds * 2000)
        frame_bytes, most_channel = self._limits.frame_bytes, self._limits.channels - 1
        product = version("jms-bridge")
        answer = server_performatives.opened(host.container, idle, frame_bytes, most_channel, host.offered, product)
        self.write(frame(0, answer))
        self._opened = True

    def _closed(self, fields: list[Any]) -> None:
        condition = condition_of(field(fields, 0))
        if condition is not None:
            _log.warning("client left", client=self.name, why=str(condition))
        self.close()
