"""The sockets of a listener: one thread drives all of its clients, and none of them can hold it up.

Nothing blocks: what a client does not read waits in its `Peer`, and of one that reads nothing nothing more is read. The
protocol is the business of `peer`.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from engine.connectors.amqp.answers import FORCED, RESOURCE_LIMIT
from engine.connectors.amqp.peer import SELECTOR, Peer
from engine.connectors.amqp.performatives import Condition
from engine.connectors.base import NotConnectedError
from engine.connectors.tls import why

if TYPE_CHECKING:
    from engine.connectors.amqp.peer_session import Host

__all__ = ["OFFERED", "STOPPING", "Server"]

OFFERED = ("APACHE.ORG:NO_LOCAL", SELECTOR)
"""What a listener offers: a client never gets what it has sent itself, and selectors may name fields as Qpid does."""
STOPPING = Condition(FORCED, "the bridge stops, or starts again; connect again")
"""Why all clients are left."""

_PORTS = {"amqp": 5672, "amqps": 5671}
_MOST_CLIENTS = 500
_BACKLOG = 128
_ACCEPT = 32
_CHUNK_BYTES = 256 * 1024
_MOST_UNREAD_BYTES = 1024 * 1024
_MOST_HELD_BYTES = 256 * 1024 * 1024
"""Of messages that have not come whole, of all clients together."""
_TICK_SECONDS = 0.2
_STUCK_SECONDS = 30.0
_LINGER_SECONDS = 2.0
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_log = structlog.get_logger(__name__)


class _Client:
    """A connection and its peer."""

    __slots__ = ("leaves_at", "mask", "peer", "progress", "socket")

    def __init__(self, connection: socket.socket, peer: Peer, now: float) -> None:
        self.socket = connection
        self.peer = peer
        self.mask = _READ
        self.progress = now
        """When it last took something, or there was nothing for it to take."""
        self.leaves_at: float | None = None
        """When it is left after the good-bye, whether it has read that or not."""


class Server:
    """Listens, and talks to everybody who comes."""

    def __init__(self, url: str, tls: ssl.SSLContext | None, host: Host) -> None:
        parts = urlsplit(url)
        self._where = (parts.hostname or "127.0.0.1", parts.port or _PORTS[parts.scheme])
        self._url = url
        self._tls = tls
        self._proven = tls is not None and tls.verify_mode is ssl.CERT_REQUIRED
        self._host = host
        self._selector: selectors.BaseSelector | None = None
        self._listening: socket.socket | None = None
        self._alarm: socket.socket | None = None
        self._woken: socket.socket | None = None
        self._clients: set[_Client] = set()
        self._buffered: set[_Client] = set()
        """Those of whom TLS has read more than was asked for."""
        self._ticked = 0.0
        self._deaf = False

    def open(self) -> None:
        """Listens; NotConnectedError tells why it cannot."""
        family = socket.AF_INET6 if ":" in self._where[0] else socket.AF_INET
        try:
            self._listening = socket.create_server(self._where, family=family, backlog=_BACKLOG)
        except (OSError, UnicodeError) as error:
            raise NotConnectedError(f"cannot listen there: {why(error)}") from error
        self._listening.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, _READ)
        self._alarm, self._woken = socket.socketpair()
        self._alarm.setblocking(False)
        self._selector.register(self._woken, _READ, self._woken)
        self._deaf = False

    def wake(self) -> None:
        """Ends the waiting of `turn`; from any thread."""
        alarm = self._alarm
        if alarm is not None:
            # Where there is no room for it others were not heard yet, and after the end there is nobody to wake.
            with suppress(OSError):
                alarm.send(b"\0")

    def turn(self, timeout_seconds: float) -> None:
        """Does what there is to do, waiting so long for some; while the host is full nobody is listened to."""
        if self._selector is None:
            raise NotConnectedError("not listening")
        buffered, self._buffered = self._buffered, set()
        for key, mask in self._selector.select(0 if buffered else timeout_seconds):
            client = key.data
            if client is None:
                self._accept()
            elif isinstance(client, socket.socket):
                client.recv(_CHUNK_BYTES)
            elif mask & _READ:
                buffered.add(client)
        for client in buffered:
            if not self._host.full:
                self._read(client)
            elif self._tls is not None:
                self._buffered.add(client)
        self.flush()
        now = time.monotonic()
        if now - self._ticked >= _TICK_SECONDS:
            self._ticked = now
            self._tick(now)

    def flush(self) -> None:
        """Sends what there is to send, as far as clients take it."""
        for client in list(self._clients):
            if client.peer.outgoing or client.peer.ended:
                self._write(client)

    def close(self, condition: Condition) -> None:
        """Says good-bye to everybody, and why; what was said before is read first where a client reads at all."""
        if self._selector is None:
            return
        if self._listening is not None:
            if not self._deaf:
                self._selector.unregister(self._listening)
            self._listening.close()
        for client in self._clients:
            client.peer.close(condition)
        deadline = time.monotonic() + _LINGER_SECONDS
        while self._clients and time.monotonic() < deadline:
            self.turn(max(deadline - time.monotonic(), 0))
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        for each in (self._alarm, self._woken):
            if each is not None:
                each.close()
        self._selector = self._listening = self._alarm = self._woken = None

    def _accept(self) -> None:
        assert self._listening is not None
        assert self._selector is not None
        for _ in range(_ACCEPT):
            try:
                connection, address = self._listening.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Such as too many open files: asked again at the next tick, others go on.
                _log.warning("cannot accept a client", listener=self._url, why=why(error))
                self._selector.unregister(self._listening)
                self._deaf = True
                return
            if len(self._clients) >= _MOST_CLIENTS and not self._make_room():
                _log.warning("too many clients", listener=self._url, most=_MOST_CLIENTS, refused=address[0])
                connection.close()
                continue
            self._welcome(connection, f"{address[0]}:{address[1]}")

    def _make_room(self) -> bool:
        """Leaves the client that has been connected longest without logging in and opening; False if there is none.

        Who opens connections and says nothing keeps out nobody who has something to say.
        """
        strangers = [client for client in self._clients if not client.peer.opened]
        if strangers:
            self._drop(min(strangers, key=lambda client: client.peer.begun), "others want to come in")
        return bool(strangers)

    def _welcome(self, connection: socket.socket, name: str) -> None:
        assert self._selector is not None
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            # It may have gone already.
            _log.warning("client left", client=name, why=why(error))
            connection.close()
            return
        now = time.monotonic()
        client = _Client(connection, Peer(self._host, name, now, proven=self._proven), now)
        self._clients.add(client)
        self._selector.register(connection, _READ, client)

    def _read(self, client: _Client) -> None:
        left = _CHUNK_BYTES
        while left > 0 and client in self._clients:
            try:
                data = client.socket.recv(left)
            except _WAIT:
                return
            except OSError as error:
                self._drop(client, why(error))
                return
            if not data:
                self._drop(client)
                return
            client.peer.feed(data, time.monotonic())
            if client.peer.held_bytes:
                self._limit_held()
            left -= len(data)
            if self._tls is None:
                # What is left makes the selector tell again.
                return
        if client in self._clients:
            self._buffered.add(client)

    def _limit_held(self) -> None:
        """Leaves the client that holds most where all together hold too much."""
        if sum(client.peer.held_bytes for client in self._clients) > _MOST_HELD_BYTES + self._host.max_bytes:
            most = max(self._clients, key=lambda client: client.peer.held_bytes)
            why = f"{most.peer.held_bytes} bytes in messages that are not complete, and others have some, too"
            most.peer.close(Condition(RESOURCE_LIMIT, why))

    def _write(self, client: _Client) -> None:
        peer = client.peer
        try:
            while peer.outgoing:
                peer.sent(client.socket.send(bytes(peer.outgoing[:_CHUNK_BYTES])), now := time.monotonic())
                client.progress = now
        except _WAIT:
            pass
        except OSError as error:
            self._drop(client, why(error))
            return
        if peer.ended and not peer.outgoing and client.leaves_at is None:
            # Closing at once could take away what it has not read yet.
            client.leaves_at = time.monotonic() + _LINGER_SECONDS
            with suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
        self._arm(client)

    def _arm(self, client: _Client) -> None:
        assert self._selector is not None
        unread = len(client.peer.outgoing)
        mask = (_READ if unread < _MOST_UNREAD_BYTES else 0) | (_WRITE if unread else 0)
        if mask != client.mask:
            client.mask = mask
            self._selector.modify(client.socket, mask, client)

    def _tick(self, now: float) -> None:
        assert self._selector is not None
        for client in list(self._clients):
            peer = client.peer
            if self._host.full or not client.mask & _READ:
                peer.excuse(now)
            if not peer.outgoing:
                client.progress = now
            peer.tick(now)
            if now - client.progress > _STUCK_SECONDS:
                self._drop(client, f"it has read nothing for {_STUCK_SECONDS:.0f} s")
            elif client.leaves_at is not None and now > client.leaves_at:
                self._drop(client)
        if self._deaf and self._listening is not None and self._listening.fileno() >= 0:
            self._deaf = False
            self._selector.register(self._listening, _READ)
        self.flush()

    def _drop(self, client: _Client, why: str | None = None) -> None:
        assert self._selector is not None
        if why is not None and not client.peer.ended:
            _log.warning("client left", client=client.peer.name, why=why)
        self._clients.discard(client)
        self._buffered.discard(client)
        self._selector.unregister(client.socket)
        client.socket.close()
        client.peer.gone()
