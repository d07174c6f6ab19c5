"""What a STOMP source and a STOMP sink have in common: a connection that is logged in, and the frames that come by it.

Connecting, the login, heart-beats and silence, ERROR frames and the good-bye are here. What is subscribed, sent or
acknowledged is the business of `source` and `sink`.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

import structlog

from engine.connectors.base import NotConnectedError
from engine.connectors.products import ARTEMIS, product_of
from engine.connectors.stomp.frames import FrameError, FrameParser
from engine.connectors.stomp.wire import StompConnection, endpoint
from engine.connectors.tls import tls_context
from engine.connectors.wire import greeting, one_line
from engine.errors import HardFailureError
from routes.targets import System

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.connectors.stomp.frames import Frame
    from routes.model import BrokerConfig

__all__ = ["ROUTING", "StompSession", "said"]

ROUTING = {"queue": "ANYCAST", "topic": "MULTICAST"}
"""What Artemis calls the two kinds of destination."""

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_GOOD_BYE_SECONDS = 5.0
_REFUSED_SECONDS = 30.0
_KEPT_BYTES = 64 * 1024
_SILENT_BEATS = 3.0
_SAID_BYTES = 4096
_log = structlog.get_logger(__name__)


class StompSession:
    """One connection after the other to one broker; for one thread."""

    def __init__(self, broker: BrokerConfig, who: str, url: str, client_id: str, max_body_bytes: int) -> None:
        """`who` is the source or sink, for people. Of bodies over `max_body_bytes` only the beginning is kept.

        SetupError where a TLS file is no good.
        """
        self.endpoint = endpoint(url)
        self.product = product_of(System.STOMP, "")
        """The broker, as far as it told when it was connected to last."""
        self.server = ""
        """Its name and version in its own words."""
        self._broker = broker
        self._who = who
        self._client_id = client_id
        self._tls = tls_context(broker) if self.endpoint.tls else None
        self._max_body = max_body_bytes
        self._connection: StompConnection | None = None
        self._parser = FrameParser(max_body_bytes, _KEPT_BYTES)
        self._frames: deque[Frame] = deque()
        self._silence = 0.0
        self._heard = 0.0

    @property
    def connection(self) -> StompConnection:
        """The verbs of the protocol; NotConnectedError without a connection."""
        if self._connection is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._connection

    def open(self) -> None:
        """Connects and logs in; a refused login is to be asked for again only after a while.

        Raises:
            NotConnectedError: it could not.
            HardFailureError: the broker does not speak STOMP 1.2.
        """
        self.close()
        self._parser = FrameParser(self._max_body, _KEPT_BYTES)
        self._frames.clear()
        connection = StompConnection(self.endpoint, self._tls, _CONNECT_SECONDS, self._broker.heartbeat_seconds)
        if self._broker.virtual_host is not None:
            connection.wire.vhost = self._broker.virtual_host
        connection.wire.start()
        self._connection, self._heard, self._silence = connection, time.monotonic(), 0.0
        connection.connect(
            self._broker.username,
            self._broker.password,
            with_connect_command=True,
            headers={"client-id": self._client_id},
        )
        with greeting(self.endpoint, "stomp+ssl"):
            connected = self.expect("CONNECTED", seconds=_CONNECT_SECONDS, back_off_seconds=_REFUSED_SECONDS)
        connection.hear(connected)
        if (version := connected.headers.get("version")) != "1.2":
            msg = f"{self._who}: {self.endpoint} speaks STOMP {version or '1.0'}, 1.2 is needed"
            raise HardFailureError(msg)
        self.server = one_line(connected.headers.get("server", ""))
        self.product = product_of(System.STOMP, self.server)
        self._silence = _promised_seconds(connected, self._broker.heartbeat_seconds) * _SILENT_BEATS

    def send(self, frames: bytes) -> None:
        """Sends whole frames in one write; NotConnectedError if the connection is gone."""
        self.connection.wire.send(frames)

    def next(self, timeout_seconds: float) -> Frame | None:
        """The next frame from the broker; None if none came in time. NotConnectedError if the connection is gone."""
        if not self._frames:
            self._read(timeout_seconds)
            if not self._frames:
                return None
        return self._frames.popleft()

    def expect(
        self,
        command: str,
        receipt: str = "",
        *,
        seconds: float = _ANSWER_SECONDS,
        back_off_seconds: float | None = None,
        keep: bool = True,
    ) -> Frame:
        """The broker's answer; messages that come before it are kept for `next`, unless `keep` is false."""
        deadline = time.monotonic() + seconds
        messages: deque[Frame] = deque()
        while (left := deadline - time.monotonic()) > 0:
            frame = self.next(left)
            if frame is None:
                continue
            if frame.command == "ERROR":
                raise self.refused(frame, back_off_seconds)
            if frame.command == command and receipt in ("", frame.headers.get("receipt-id")):
                self._frames.extendleft(reversed(messages))
                return frame
            if frame.command == "MESSAGE" and keep:
                messages.append(frame)
        raise self.lost(f"the broker has not answered for {seconds:.0f} s; is this its STOMP port?")

    @property
    def artemis(self) -> bool:
        """Whether the broker is ActiveMQ Artemis."""
        return self.product is ARTEMIS

    @property
    def unnoticed_seconds(self) -> float:
        """For how long a dead connection may go unnoticed."""
        return self._broker.heartbeat_seconds * _SILENT_BEATS

    def close(self, subscriptions: Iterable[str] = ()) -> None:
        """Ends subscriptions and connection; never raises.

        Where the connection still works it returns when the broker has taken everything that was sent.
        """
        if self._connection is None:
            return
        try:
            if self._connection.wire.is_connected():
                self._leave(self._connection, subscriptions)
        except NotConnectedError as error:
            _log.warning("left without a good-bye", who=self._who, broker=str(self.endpoint), why=str(error))
        finally:
            self._connection.wire.disconnect_socket()
            self._connection = None

    def refused(self, frame: Frame, back_off_seconds: float | None = None) -> NotConnectedError:
        """What to raise after an ERROR: the broker hangs up then (STOMP 1.2, ERROR)."""
        return self.lost(f"the broker says: {said(frame)}", back_off_seconds)

    def lost(self, why: str, back_off_seconds: float | None = None) -> NotConnectedError:
        """Hangs up; what to raise then."""
        self.hang_up()
        return NotConnectedError(why, back_off_seconds)

    def hang_up(self) -> None:
        """Ends the connection without a good-bye."""
        if self._connection:
            self._connection.wire.disconnect_socket()

    def _leave(self, connection: StompConnection, subscriptions: Iterable[str]) -> None:
        self._frames.clear()
        for number in subscriptions:
            connection.unsubscribe(number)
        connection.disconnect(receipt="bye")
        # Messages that are still on their way go back to where they came from.
        self.expect("RECEIPT", "bye", seconds=_GOOD_BYE_SECONDS, keep=False)

    def _read(self, timeout_seconds: float) -> None:
        data = self.connection.wire.read(timeout_seconds)
        now = time.monotonic()
        if data:
            self._heard = now
            try:
                self._frames.extend(self._parser.feed(data))
            except FrameError as error:
                raise self.lost(f"the broker sent {error}") from error
        elif self._silence and now - self._heard > self._silence:
            raise self.lost(f"the broker has been silent for {now - self._heard:.0f} s, in spite of heart-beats")


def said(frame: Frame) -> str:
    """The text of an ERROR frame in one line: header `message`, and the first line of the body where it says more.

    Without the message that Artemis may append to it.
    """
    text = frame.body[:_SAID_BYTES].decode("utf-8", "replace").strip()
    message, body = (
        one_line(each.partition(" CoreMessage[")[0])
        for each in (frame.headers.get("message", ""), next(iter(text.splitlines()), ""))
    )
    # Brokers repeat the one in the other.
    return message if body in message else body if message in body else one_line(f"{message}: {body}")


def _promised_seconds(connected: Frame, wanted_seconds: float) -> float:
    """How often the broker will show that it is alive; 0 if it will not."""
    beats = connected.headers.get("heart-beat", "0,0").partition(",")[0].strip()
    offered = int(beats) / 1000 if beats.isdecimal() else 0.0
    return max(offered, wanted_seconds) if offered else 0.0
