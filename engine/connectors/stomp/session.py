"""STOMP session, shared by source and sink: connects, logs in, and reads the broker's frames.

The session also checks the broker's heart-beats, handles ERROR frames and disconnects in order. Subscribing, sending
and acknowledging are in `source` and `sink`.
"""

from __future__ import annotations

import re
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from stomp import utils
from stomp.connect import BaseConnection
from stomp.protocol import Protocol12
from stomp.transport import BaseTransport

from engine.connectors.base import NotConnectedError
from engine.connectors.numbers import whole
from engine.connectors.products import product_of
from engine.connectors.stomp.frames import StompFrameError, StompFrameParser
from engine.connectors.stomp.traits import SPECIFICATION, traits_of
from engine.connectors.tls import tls_context
from engine.connectors.wire import Endpoint, Endpoints, Wire, greeting, one_line
from engine.errors import HardFailureError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable, Mapping

    from engine.connectors.features import Feature
    from engine.connectors.jms import JmsConfig
    from engine.connectors.stomp.frames import StompFrame

__all__ = ["BROKER_SAYS", "StompSession", "said"]

BROKER_SAYS = "the broker says: "
"""Beginning of the error for a connection that the broker has ended with an ERROR frame."""

_PORTS = {"stomp": 61613, "stomp+ssl": 61612}
_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
_GOOD_BYE_SECONDS = 5.0
_REFUSED_SECONDS = 30.0
_KEPT_BYTES = 64 * 1024
_SILENT_BEATS = 3.0
_LONGEST_BEAT = 3_600_000
"""Longest interval between heart-beats, in milliseconds; timers do not take any number that a broker may send."""
_SAID_BYTES = 4096
_JAVA_CLASS = re.compile(r"^[\w.$]+(?:Exception|Error): ", re.ASCII)
"""Class of an exception in front of its text, as in the first line of a stack trace."""
_log = structlog.get_logger(__name__)


def _endpoint(url: str) -> Endpoint:
    """Returns the endpoint of `stomp://host:port` or `stomp+ssl://host:port`, a URL checked by the configuration."""
    parts = urlsplit(url)
    port = parts.port or _PORTS[parts.scheme]
    return Endpoint(parts.scheme, parts.hostname or "127.0.0.1", port, parts.scheme != "stomp")


class _StompConnection(Protocol12, BaseConnection):  # type: ignore[misc] # stomp.py has no types
    """STOMP 1.2 connection with the commands of `stomp.py`, on a transport that reads only when asked.

    `stomp.py` writes the frames of a session and sends heart-beats on a thread of its own. Its own transport is
    unsuitable: over TLS it writes from the thread that delivers messages, so that a waiting source would send no
    heart-beats, and it does not notice when the broker closes the connection.
    """

    # stomp.py's own check of the broker's heart-beats would find none while nothing is read, so this scale postpones it
    # indefinitely; `StompSession` checks them when it reads.
    _NEVER = 1e5

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float, heartbeat: float) -> None:
        """Creates the connection without connecting.

        `timeout` is the time limit for connecting, `heartbeat` the interval between heart-beats, both in seconds.
        """
        self.wire = _Transport(endpoint, tls, timeout)
        milliseconds = int(heartbeat * 1000)
        super().__init__(self.wire, (milliseconds, milliseconds), heart_beat_receive_scale=self._NEVER)

    def hear(self, connected: StompFrame, beats: tuple[int, int]) -> None:
        """Passes CONNECTED to stomp.py, which starts its heart-beats.

        `beats` are the intervals of the broker in milliseconds, which take the place of the header: stomp.py does not
        check it.
        """
        headers = {**connected.headers, "heart-beat": f"{beats[0]},{beats[1]}"}
        self.wire.notify("connected", utils.Frame(connected.command, headers, connected.body))


class _Transport(BaseTransport):  # type: ignore[misc] # stomp.py has no types
    """Transport to which stomp.py writes, and from which `StompSession` reads."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> None:
        super().__init__(auto_decode=False)
        self.vhost = endpoint.host
        self._endpoint = endpoint
        self._tls = tls
        self._timeout = timeout
        self._wire: Wire | None = None

    def start(self) -> None:
        """Connects; overrides the method of stomp.py, which would also start its reader thread."""
        self.running = True
        self.attempt_connection()

    def attempt_connection(self) -> None:
        """Connects and does the TLS handshake.

        Raises:
            NotConnectedError: the reason why it failed.
        """
        self._wire = Wire(self._endpoint, self._tls, self._timeout)
        self.current_host_and_port = (self._endpoint.host, self._endpoint.port)

    def send(self, encoded_frame: bytes) -> None:
        """Sends all bytes.

        Raises:
            NotConnectedError: the connection is lost, or the broker has taken nothing for too long.
        """
        try:
            self._opened().send(encoded_frame)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def read(self, timeout_seconds: float) -> bytes:
        """Returns received bytes; empty if none came in time.

        Raises:
            NotConnectedError: the broker has closed the connection.
        """
        try:
            return self._opened().read(timeout_seconds)
        except NotConnectedError:
            self.set_connected(False)
            raise

    def disconnect_socket(self) -> None:
        """Closes the socket at once and ends the heart-beats; to be called by the thread that reads."""
        self.running = False
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()
        self.notify("disconnected")

    def _opened(self) -> Wire:
        if self._wire is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._wire


class StompSession:
    """Session with one broker over successive connections; for use by one thread."""

    def __init__(self, broker: JmsConfig, who: str, url: str, client_id: str | None, max_body_bytes: int) -> None:
        """Reads TLS files; does not connect.

        The backups of the broker at `url` are in its settings. `who` names the source or sink in messages to the
        operator. A broker that has not noticed the end of a connection refuses the next one with its `client_id`. Of a
        body larger than `max_body_bytes` only the first `_KEPT_BYTES` are kept.

        Raises:
            SetupError: a TLS file is missing or invalid.
        """
        self._endpoints = Endpoints([_endpoint(each) for each in (url, *broker.backup_urls)])
        self.product = product_of("")
        """Broker product, as recognised at the last connection."""
        self.traits = SPECIFICATION
        """Traits of that product."""
        self.server = ""
        """Name and version of the broker from its CONNECTED frame."""
        self._broker = broker
        self._who = who
        self._client_id = client_id
        self._tls = tls_context(broker) if self.endpoint.tls else None
        self._max_body = max_body_bytes
        self._connection: _StompConnection | None = None
        self._parser = StompFrameParser(max_body_bytes, _KEPT_BYTES)
        self._frames: deque[StompFrame] = deque()
        self._silence = 0.0
        self._heard = 0.0

    @property
    def endpoint(self) -> Endpoint:
        """Address of the current connection, or of the next one."""
        return self._endpoints.first

    @property
    def connection(self) -> _StompConnection:
        """Current connection, which sends the protocol's commands.

        Raises:
            NotConnectedError: there is no connection.
        """
        if self._connection is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._connection

    def open(self) -> None:
        """Connects to the broker or one of its backups, and logs in.

        Raises:
            NotConnectedError: connecting or the login failed; after a refused login with a back-off, so that the
                session does not log in again at once.
            HardFailureError: the broker does not implement STOMP 1.2.
        """
        self.close()
        self._endpoints.connect(self._connect)

    def _connect(self, endpoint: Endpoint) -> None:
        self.hang_up()
        self._parser = StompFrameParser(self._max_body, _KEPT_BYTES)
        self._frames.clear()
        connection = _StompConnection(endpoint, self._tls, _CONNECT_SECONDS, self._broker.heartbeat_seconds)
        if self._broker.virtual_host is not None:
            connection.wire.vhost = self._broker.virtual_host
        connection.wire.start()
        self._connection, self._heard, self._silence = connection, time.monotonic(), 0.0
        connection.connect(
            self._broker.username,
            self._broker.password,
            with_connect_command=True,
            headers={"client-id": self._client_id} if self._client_id else {},
        )
        with greeting(endpoint, "stomp+ssl"):
            connected = self._connected()
        beats = _heart_beats(connected)
        if beats is None:
            text = connected.headers["heart-beat"]
            raise self.lost(f"the broker sent a heart-beat that is not a pair of numbers: {text[:40]!r}")
        connection.hear(connected, beats)
        if (version := connected.headers.get("version")) != "1.2":
            msg = f"{self._who}: {endpoint} speaks STOMP {version or '1.0'}, 1.2 is needed"
            raise HardFailureError(msg)
        self.server = one_line(connected.headers.get("server", ""))
        self.product = self._broker.broker or product_of(self.server)
        self.traits = traits_of(self.product, self.server)
        self._silence = max(beats[0] / 1000, self._broker.heartbeat_seconds) * _SILENT_BEATS if beats[0] else 0.0

    def send(self, frames: bytes) -> None:
        """Sends complete frames in one write.

        Raises:
            NotConnectedError: the connection is lost; with the text of the ERROR that the broker sent before, if it
                sent one. `next` still returns all frames that came before.
        """
        try:
            self.connection.wire.send(frames)
        except NotConnectedError as error:
            # The bridge need not react to the end of the broker's output.
            with suppress(NotConnectedError):
                while self._read(0):
                    pass
            error_frame = next((frame for frame in self._frames if frame.command == "ERROR"), None)
            if error_frame is None:
                raise
            raise NotConnectedError(f"{BROKER_SAYS}{said(error_frame)}") from error

    def next(self, timeout_seconds: float) -> StompFrame | None:
        """Returns the next frame from the broker; None if none came in time.

        Raises:
            NotConnectedError: the connection is lost, the broker has been silent for too long, or it sent bytes that
                are not STOMP 1.2.
        """
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
    ) -> StompFrame:
        """Waits for the frame with this command and receipt id, and returns it.

        MESSAGE frames that arrive before it are kept for `next`, unless `keep` is False.

        Raises:
            NotConnectedError: the broker sent an ERROR or nothing suitable within `seconds`, or the connection is lost.
        """
        deadline = time.monotonic() + seconds
        messages: deque[StompFrame] = deque()
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
    def drops_duplicates(self) -> bool:
        """See `ProductSession`."""
        return self.traits.drops_duplicates

    @property
    def lacks(self) -> Mapping[Feature, str]:
        """See `ProductSession`."""
        return self.traits.lacks

    @property
    def unnoticed_seconds(self) -> float:
        """Maximum seconds until a dead connection is noticed."""
        return self._broker.heartbeat_seconds * _SILENT_BEATS

    def close(self, subscriptions: Iterable[str] = ()) -> None:
        """Ends the subscriptions with these ids, and the connection. Never raises.

        If the connection still works, waits until the broker has confirmed that it has processed all sent frames.
        """
        if self._connection is None:
            return
        try:
            if self._connection.wire.is_connected():
                self._leave(self._connection, subscriptions)
        except NotConnectedError as error:
            _log.warning("closed without confirmation", who=self._who, broker=str(self.endpoint), why=str(error))
        finally:
            self._connection.wire.disconnect_socket()
            self._connection = None

    def refused(self, frame: StompFrame, back_off_seconds: float | None = None) -> NotConnectedError:
        """Ends the connection after an ERROR frame, and returns the error to raise.

        The broker closes the connection after an ERROR as well (STOMP 1.2, ERROR).
        """
        return self.lost(f"{BROKER_SAYS}{said(frame)}", back_off_seconds)

    def lost(self, why: str, back_off_seconds: float | None = None) -> NotConnectedError:
        """Ends the connection and returns the error to raise."""
        self.hang_up()
        return NotConnectedError(why, back_off_seconds)

    def hang_up(self) -> None:
        """Closes the socket without a DISCONNECT frame."""
        if self._connection:
            self._connection.wire.disconnect_socket()

    def _connected(self) -> StompFrame:
        """Waits for CONNECTED; adds the remedy if the broker has no virtual host with the name of the URL's host."""
        try:
            return self.expect("CONNECTED", seconds=_CONNECT_SECONDS, back_off_seconds=_REFUSED_SECONDS)
        except NotConnectedError as error:
            if self._broker.virtual_host is not None or "virtual host" not in str(error).lower():
                raise
            why = f"{error}; the key virtual-host names another one, as virtual-host=/"
            raise NotConnectedError(why, error.back_off_seconds) from error

    def _leave(self, connection: _StompConnection, subscriptions: Iterable[str]) -> None:
        self._frames.clear()
        for number in subscriptions:
            connection.unsubscribe(number)
        connection.disconnect(receipt="bye")
        # MESSAGE frames that still arrive are dropped; the broker redelivers them, since they are not acknowledged.
        self.expect("RECEIPT", "bye", seconds=_GOOD_BYE_SECONDS, keep=False)

    def _read(self, timeout_seconds: float) -> bool:
        """Reads frames, waiting for them at most `timeout_seconds`; returns False if nothing came."""
        data = self.connection.wire.read(timeout_seconds)
        now = time.monotonic()
        if data:
            self._heard = now
            try:
                self._frames.extend(self._parser.feed(data))
            except StompFrameError as error:
                raise self.lost(f"the broker sent {error}") from error
        elif self._silence and now - self._heard > self._silence:
            raise self.lost(f"the broker has been silent for {now - self._heard:.0f} s, in spite of heart-beats")
        return bool(data)


def said(frame: StompFrame) -> str:
    """Returns the text of an ERROR frame in one line: header `message`, and the body's first line if it says more.

    The dump of the message that Artemis may append (`CoreMessage[…`) is removed, and the class of a Java exception.
    """
    text = frame.body[:_SAID_BYTES].decode("utf-8", "replace").strip()
    message, body = (
        one_line(each.partition(" CoreMessage[")[0])
        for each in (frame.headers.get("message", ""), _JAVA_CLASS.sub("", next(iter(text.splitlines()), "")))
    )
    # Brokers repeat the header in the body, or the body in the header.
    return message if body in message else body if message in body else one_line(f"{message}: {body}")


def _heart_beats(connected: StompFrame) -> tuple[int, int] | None:
    """Returns the intervals at which the broker can send heart-beats and wants to get them, in milliseconds.

    0 stands for no heart-beats, and no interval is longer than `_LONGEST_BEAT`; None if the header is not a pair of
    numbers (STOMP 1.2, Heart-beating).
    """
    sends, _, wants = connected.headers.get("heart-beat", "0,0").partition(",")
    first, second = whole(sends.strip()), whole(wants.strip())
    return None if first is None or second is None else (min(first, _LONGEST_BEAT), min(second, _LONGEST_BEAT))
