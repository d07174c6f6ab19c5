"""A connection to a broker, plain or TLS, that is read only when somebody asks.

Because nothing reads ahead, a source that waits stops its broker through TCP's own flow control. One thread reads;
others may write, such as one for heart-beats. A TLS connection may not be used by two threads at once, not even one for
each direction, and a read that waits must not keep heart-beats from being sent. So the socket never blocks: who has to
wait waits outside the lock.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.tls import why

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Endpoint", "Pulse", "Wire", "greeting", "one_line"]

_CHUNK_BYTES = 256 * 1024
_LINE_CHARACTERS = 500
_SEND_SECONDS = 10.0


def one_line(text: str) -> str:
    """The words of a peer as people may be shown them: one line, printable, of at most 500 characters."""
    return " ".join("".join([char if char.isprintable() else " " for char in text]).split())[:_LINE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a broker listens."""

    scheme: str
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@contextmanager
def greeting(endpoint: Endpoint, over_tls: str) -> Iterator[None]:
    """The first words to a broker: one that expects TLS hangs up or says nothing, which is told with the remedy.

    `over_tls` is the scheme to write then.
    """
    try:
        yield
    except NotConnectedError as error:
        if endpoint.tls or error.back_off_seconds:
            raise
        remedy = f"if it wants TLS, write {over_tls}:// in place of {endpoint.scheme}:// in its url"
        raise NotConnectedError(f"{error}; {remedy}") from error


class Wire:
    """The bytes of one connection."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout_seconds: float) -> None:
        """Connects and makes TLS; NotConnectedError tells why it could not."""
        where = (endpoint.host, endpoint.port)
        try:
            plain = socket.create_connection(where, timeout_seconds)
            try:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._socket = tls.wrap_socket(plain, server_hostname=endpoint.host) if tls else plain
            except OSError:
                plain.close()
                raise
        except (OSError, UnicodeError) as error:
            raise NotConnectedError(why(error)) from error
        self._socket.setblocking(False)
        self._use = threading.Lock()
        self._sending = threading.Lock()
        self.sent_at = time.monotonic()
        """When something was sent last."""

    def send(self, data: bytes) -> None:
        """Sends all of it; NotConnectedError if the broker is gone or takes nothing for long."""
        rest = memoryview(data)
        with self._sending:
            deadline = time.monotonic() + _SEND_SECONDS
            while rest:
                try:
                    with self._use:
                        sent = self._socket.send(rest)
                    rest = rest[sent:]
                    deadline = time.monotonic() + _SEND_SECONDS
                except (BlockingIOError, ssl.SSLWantWriteError):
                    self._await(select.POLLOUT, deadline - time.monotonic())
                except ssl.SSLWantReadError:
                    self._await(select.POLLIN, deadline - time.monotonic())
                except OSError as error:
                    raise self._lost(why(error)) from error
                if rest and time.monotonic() > deadline:
                    raise self._lost(f"the broker has read nothing for {_SEND_SECONDS:.0f} s")
            self.sent_at = time.monotonic()

    def read(self, timeout_seconds: float) -> bytes:
        """What has come, empty if nothing did in time; NotConnectedError if the broker has hung up."""
        data = self._read_now()
        if data is None and timeout_seconds > 0 and self._await(select.POLLIN, timeout_seconds):
            data = self._read_now()
        return data or b""

    def close(self) -> None:
        """At once; for the thread that reads."""
        # In the middle of a read or write of another thread it would not be safe.
        with self._use:
            self._socket.close()

    def _read_now(self) -> bytes | None:
        try:
            with self._use:
                data = self._socket.recv(_CHUNK_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return None
        except OSError as error:
            raise self._lost(why(error)) from error
        if not data:
            raise self._lost("the broker has closed the connection")
        return data

    def _lost(self, why: str) -> NotConnectedError:
        """Wakes whoever waits for this socket; it may be another thread's, so closing it is left to its owner."""
        with self._use, suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        return NotConnectedError(why)

    def _await(self, event: int, timeout_seconds: float) -> bool:
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket, event)
        return bool(poll.poll(max(timeout_seconds, 0) * 1000))


class Pulse:
    """Heart-beats, also while whoever uses the connection waits for something else."""

    def __init__(self, wire: Wire, interval_seconds: float, beat: bytes) -> None:
        """Sends `beat` where nothing else was sent for so long."""
        self._wire = wire
        self._interval = interval_seconds
        self._beat = beat
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="heart-beats", daemon=True).start()

    def stop(self) -> None:
        """No more; one may be on its way."""
        self._stopped.set()

    def _run(self) -> None:
        wait = self._interval
        while not self._stopped.wait(wait):
            wait = self._wire.sent_at + self._interval - time.monotonic()
            if wait > 0:
                continue
            try:
                self._wire.send(self._beat)
            except NotConnectedError:
                # Whoever uses the connection hears it, too.
                return
            wait = self._interval
