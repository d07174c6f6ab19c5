"""Connection to a broker, plain or TLS, that reads only when the caller asks.

Because nothing is read ahead, a source that waits stops its broker through TCP's own flow control. One thread reads;
other threads may write, such as one for heart-beats. Two threads must not use a TLS connection at once, not even one
for each direction, and a waiting read must not delay heart-beats. So the socket never blocks: a thread that has to wait
does so outside the lock.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.connectors.base import NotConnectedError
from engine.connectors.tls import why

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Endpoint", "Endpoints", "Pulse", "Wire", "greeting", "one_line"]

_CHUNK_BYTES = 256 * 1024
_LINE_CHARACTERS = 500
_SEND_SECONDS = 10.0


def one_line(text: str) -> str:
    """Returns a peer's text in a form safe to show: one line, printable, of at most 500 characters."""
    return " ".join("".join([char if char.isprintable() else " " for char in text]).split())[:_LINE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address at which a broker listens."""

    scheme: str
    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Endpoints:
    """Addresses of one broker: its own, and those of its backups."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        """Takes the addresses in the order in which they are tried first."""
        self._endpoints = deque(endpoints)

    @property
    def first(self) -> Endpoint:
        """Address that answered last, or that is tried next."""
        return self._endpoints[0]

    def connect(self, attempt: Callable[[Endpoint], None]) -> None:
        """Calls `attempt` with one address after the other until it connects, beginning with the one that did last.

        Raises:
            NotConnectedError: no address answers, or one refuses the login.
        """
        failures = []
        for _ in range(len(self._endpoints)):
            try:
                attempt(self.first)
            except NotConnectedError as error:
                if error.back_off_seconds or len(self._endpoints) == 1:
                    raise
                failures.append(f"{self.first}: {error}")
                self._endpoints.rotate(-1)
            else:
                return
        raise NotConnectedError("; ".join(failures))


@contextmanager
def greeting(endpoint: Endpoint, over_tls: str) -> Iterator[None]:
    """Adds a hint to connection errors in its block, which is the first exchange with a broker.

    A broker that expects TLS closes a plain connection or says nothing. `over_tls` is the scheme that the hint
    recommends.
    """
    try:
        yield
    except NotConnectedError as error:
        if endpoint.tls or error.back_off_seconds:
            raise
        remedy = f"if it wants TLS, write {over_tls}:// in place of {endpoint.scheme}:// in its url"
        raise NotConnectedError(f"{error}; {remedy}") from error


class Wire:
    """Byte stream of one connection."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout_seconds: float) -> None:
        """Connects, and negotiates TLS if `tls` is given.

        Raises:
            NotConnectedError: the attempt failed; the text says why.
        """
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
        """Monotonic time of the last sending, in seconds."""

    def send(self, data: bytes) -> None:
        """Sends all the data.

        Raises:
            NotConnectedError: the broker is gone, or has read nothing for ten seconds.
        """
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
        """Returns the bytes that have arrived; empty if none arrive within `timeout_seconds`.

        Raises:
            NotConnectedError: the broker has closed the connection, or is gone.
        """
        data = self._read_now()
        if data is None and timeout_seconds > 0 and self._await(select.POLLIN, timeout_seconds):
            data = self._read_now()
        return data or b""

    def close(self) -> None:
        """Closes the socket at once; only for the thread that reads."""
        # Closing in the middle of another thread's read or write would not be safe.
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
        """Shuts the socket down, which wakes a thread that waits for it, and makes the exception to raise.

        The thread that owns the socket closes it.
        """
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
    """Thread that sends heart-beats, also while the connection's user waits for something else."""

    def __init__(self, wire: Wire, interval_seconds: float, beat: bytes) -> None:
        """Starts the thread, which sends `beat` after `interval_seconds` without other data."""
        self._wire = wire
        self._interval = interval_seconds
        self._beat = beat
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="heart-beats", daemon=True).start()

    def stop(self) -> None:
        """Stops the heart-beats; one may still be on its way."""
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
                # The user of the connection gets this error, too.
                return
            wait = self._interval
