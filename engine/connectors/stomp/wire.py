"""The connection under a STOMP source or sink: a socket, plain or TLS, that is read only when somebody asks.

`stomp.py` makes the frames of a session and sends heart-beats on a thread of its own; this transport takes the place
of its reader thread. Because nothing reads ahead, a source that waits stops the broker through TCP's own flow control,
while its heart-beats go on. Its own transport was no choice: over TLS it writes from the thread that delivers messages,
so that a waiting source would fall silent, and it does not notice when the broker hangs up.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from stomp.connect import BaseConnection
from stomp.protocol import Protocol12
from stomp.transport import BaseTransport
from stomp.utils import Frame as StompFrame

from engine.connectors.base import NotConnectedError
from engine.connectors.tls import why

if TYPE_CHECKING:
    from engine.connectors.stomp.frames import Frame

__all__ = ["Endpoint", "StompConnection"]

_PORTS = {"stomp": 61613, "stomp+ssl": 61612}
_CHUNK_BYTES = 256 * 1024
_SEND_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker listens."""

    host: str
    port: int
    tls: bool

    @staticmethod
    def parse(url: str) -> Endpoint:
        """`stomp://host:port` or `stomp+ssl://host:port`, as the configuration has checked it."""
        parts = urlsplit(url)
        return Endpoint(parts.hostname or "127.0.0.1", parts.port or _PORTS[parts.scheme], parts.scheme != "stomp")

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'stomp+ssl' if self.tls else 'stomp'}://{host}:{self.port}"


class StompConnection(Protocol12, BaseConnection):  # type: ignore[misc] # stomp.py has no types
    """One STOMP 1.2 connection: `stomp.py`'s verbs, this module's transport."""

    # stomp.py's own watch over the broker's heart-beats would find none while nobody reads, so it is put off for
    # good; `StompSession` watches when it reads.
    _NEVER = 1e5

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float, heartbeat: float) -> None:
        """All in seconds: to wait for the connection, between heart-beats."""
        self.wire = _Wire(endpoint, tls, timeout)
        milliseconds = int(heartbeat * 1000)
        super().__init__(self.wire, (milliseconds, milliseconds), heart_beat_receive_scale=self._NEVER)

    def hear(self, frame: Frame) -> None:
        """Lets stomp.py know that it is connected: it starts heart-beats."""
        kind = frame.command.lower()
        self.wire.notify(kind, StompFrame(frame.command, dict(frame.headers), frame.body))


class _Wire(BaseTransport):  # type: ignore[misc] # stomp.py has no types
    """The bytes of one connection: read by one thread, written by that and by the one for heart-beats.

    A TLS connection may not be used by two threads at once, not even one for each direction, and a read that waits
    must not keep heart-beats from being sent. So the socket never blocks: who has to wait waits outside the lock.
    """

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout: float) -> None:
        super().__init__(auto_decode=False)
        self.vhost = endpoint.host
        self._endpoint = endpoint
        self._tls = tls
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._use = threading.Lock()
        self._sending = threading.Lock()

    def start(self) -> None:
        """Connects; stomp.py's own would start its reader thread as well."""
        self.running = True
        self.attempt_connection()

    def attempt_connection(self) -> None:
        """Connects and makes TLS; NotConnectedError tells why it could not."""
        where = (self._endpoint.host, self._endpoint.port)
        try:
            plain = socket.create_connection(where, self._timeout)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = self._tls.wrap_socket(plain, server_hostname=where[0]) if self._tls else plain
            except OSError:
                plain.close()
                raise
        except (OSError, UnicodeError) as error:
            raise NotConnectedError(why(error)) from error
        self._socket.setblocking(False)
        self.current_host_and_port = where

    def send(self, encoded_frame: bytes) -> None:
        """Sends all of it; NotConnectedError if the broker is gone or takes nothing for long."""
        rest = memoryview(encoded_frame)
        deadline = time.monotonic() + _SEND_SECONDS
        with self._sending:
            while rest:
                sock = self._opened()
                try:
                    with self._use:
                        sent = sock.send(rest)
                    rest = rest[sent:]
                except (BlockingIOError, ssl.SSLWantWriteError):
                    _await(sock, select.POLLOUT, deadline - time.monotonic())
                except ssl.SSLWantReadError:
                    _await(sock, select.POLLIN, deadline - time.monotonic())
                except OSError as error:
                    raise self._lost(why(error)) from error
                if rest and time.monotonic() > deadline:
                    raise self._lost(f"the broker has read nothing for {_SEND_SECONDS:.0f} s")

    def read(self, timeout_seconds: float) -> bytes:
        """What has come, empty if nothing did in time; NotConnectedError if the broker has hung up."""
        sock = self._opened()
        data = self._read_now(sock)
        if data is None and timeout_seconds > 0 and _await(sock, select.POLLIN, timeout_seconds):
            data = self._read_now(sock)
        return data or b""

    def disconnect_socket(self) -> None:
        """Closes at once; the heart-beats end. For the thread that reads."""
        self.running = False
        sock, self._socket = self._socket, None
        if sock is not None:
            # In the middle of a read or write of another thread it would not be safe.
            with self._use:
                sock.close()
        self.notify("disconnected")

    def _read_now(self, sock: socket.socket) -> bytes | None:
        try:
            with self._use:
                data = sock.recv(_CHUNK_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            raise self._lost(why(error)) from error
        if not data:
            raise self._lost("the broker has closed the connection")
        return data

    def _lost(self, why: str) -> NotConnectedError:
        """Wakes whoever waits for this socket; it may be another thread's, so closing it is left to its owner."""
        self.set_connected(False)
        sock = self._socket
        if sock is not None:
            with self._use, suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        return NotConnectedError(why)

    def _opened(self) -> socket.socket:
        if self._socket is None:
            msg = "not connected"
            raise NotConnectedError(msg)
        return self._socket


def _await(sock: socket.socket, event: int, timeout_seconds: float) -> bool:
    if sock.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(sock, event)
    return bool(poll.poll(max(timeout_seconds, 0) * 1000))
