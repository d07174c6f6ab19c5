"""Sockets of a listener: accepts clients, and reads from and writes to them without blocking.

One thread at a time drives all clients, and no client can hold it up: bytes that a client does not read wait in its
`ServerConnection`, and nothing more is read from a client that reads nothing. Clients are read in fair turns (`turns`)
of bounded length (`limits`). `connection` handles the protocol.
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

from engine.connectors.amqp.performatives import Condition
from engine.connectors.amqp.server_performatives import FORCED, RESOURCE_LIMIT
from engine.connectors.amqp_listener.connection import SELECTOR, ServerConnection
from engine.connectors.amqp_listener.turns import ClientTurns, Owner
from engine.connectors.base import NotConnectedError
from engine.connectors.tls import why

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.connectors.amqp_listener.limits import ListenerLimits
    from engine.connectors.amqp_listener.session import Host

__all__ = ["OFFERED", "STOPPING", "Server"]

OFFERED = ("APACHE.ORG:NO_LOCAL", SELECTOR)
"""Capabilities that a listener offers.

A client never gets messages that it has sent itself, and its selectors may name AMQP fields as Apache Qpid does.
"""
STOPPING = Condition(FORCED, "the bridge stops, or starts again; connect again")
"""Error with which a listener that closes ends its clients' connections."""

_PORTS = {"amqp": 5672, "amqps": 5671}
_BACKLOG = 128
_ACCEPT = 32
_CHUNK_BYTES = 64 * 1024
_TICK_SECONDS = 0.2
_LINGER_SECONDS = 2.0
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_log = structlog.get_logger(__name__)


class _Client:
    """Socket of one client, with its peer and the state of reading and writing."""

    __slots__ = ("is_named", "leaves_at", "mask", "owner", "peer", "progress", "socket", "unfinished", "used")

    def __init__(self, connection: socket.socket, peer: ServerConnection, owner: Owner, now: float) -> None:
        self.socket = connection
        self.peer = peer
        self.owner = owner
        self.is_named = False
        """True once the listener has looked for the client's certificate."""
        self.used = 0.0
        self.mask = _READ
        self.unfinished = False
        """True if frames that were read are still to be handled."""
        self.progress = now
        """Time when the client last took bytes, or when there were none for it to take."""
        self.leaves_at: float | None = None
        """Time to close the socket after AMQP's close, whether or not the client has read that; None before."""


class _Slice:
    """Frames and seconds of one client's turn."""

    __slots__ = ("_clock", "_end", "_frames")

    def __init__(self, limits: ListenerLimits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + limits.slice_seconds
        self._frames = limits.slice_frames

    def is_spent(self) -> bool:
        """Counts a frame; returns True if the turn is over."""
        self._frames -= 1
        return self._frames <= 0 or self._clock() >= self._end


class Server:
    """Listening socket of a source or sink, and the sockets of its clients."""

    def __init__(
        self, url: str, tls: ssl.SSLContext | None, host: Host, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Takes the URL to listen on, and a TLS context for amqps. `clock` gives seconds."""
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
        self._limits = host.limits
        self._clock = clock
        self._clients: set[_Client] = set()
        self._owners: dict[str, Owner] = {}
        self._ready: ClientTurns[_Client] = ClientTurns()
        """Clients that have input to read, in their sockets or as frames that are still to be handled."""
        self._paused: set[_Client] = set()
        """Clients with input that must wait, and that the selector may not report again."""
        self._ticked = 0.0
        self._deaf = False

    def open(self) -> None:
        """Starts to listen.

        Raises:
            NotConnectedError: the address cannot be listened on.
        """
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
        """Ends the waiting of `turn`; may be called from any thread."""
        alarm = self._alarm
        if alarm is not None:
            # A full buffer means that earlier wake-ups are still unread; after the end no `turn` waits.
            with suppress(OSError):
                alarm.send(b"\0")

    def turn(self, timeout_seconds: float) -> None:
        """Serves new and connected clients for a bounded time; waits up to `timeout_seconds` if there is nothing to do.

        Raises:
            NotConnectedError: the server does not listen.
        """
        if self._selector is None:
            raise NotConnectedError("not listening")
        for client in [each for each in self._paused if self._may_be_read(each)]:
            self._paused.discard(client)
            self._ready.add(client)
        for key, mask in self._selector.select(0 if self._ready else timeout_seconds):
            client = key.data
            if client is None:
                self._accept()
            elif isinstance(client, socket.socket):
                client.recv(_CHUNK_BYTES)
            elif mask & _READ:
                self._ready.add(client)
        self._serve()
        self.flush()
        now = self._clock()
        if now - self._ticked >= _TICK_SECONDS:
            self._ticked = now
            self._tick(now)

    def _serve(self) -> None:
        """Reads from clients, the one that has used the least time first."""
        end = self._clock() + self._limits.turn_seconds
        while self._ready and (begun := self._clock()) < end:
            client = self._ready.pop()
            if not self._may_be_read(client):
                if client.unfinished or self._tls is not None:
                    self._paused.add(client)
                continue
            more = self._read(client)
            self._ready.charge(client, self._clock() - begun)
            if more and client in self._clients:
                self._ready.add(client)

    def _may_be_read(self, client: _Client) -> bool:
        """Returns True if there is room for a client's messages and for the answers to them.

        A client whose connection has ended may always be read, since its bytes are ignored.
        """
        peer = client.peer
        return peer.ended or (self._host.takes(peer) and len(peer.outgoing) < self._limits.unread_bytes)

    def flush(self) -> None:
        """Sends the frames that wait for clients, as far as they take them."""
        for client in list(self._clients):
            if client.peer.outgoing or client.peer.ended:
                self._write(client)

    def close(self, condition: Condition) -> None:
        """Stops listening and tells all clients why; gives them up to two seconds to read what was sent before."""
        if self._selector is None:
            return
        if self._listening is not None:
            if not self._deaf:
                self._selector.unregister(self._listening)
            self._listening.close()
        for client in self._clients:
            client.peer.close(condition)
        deadline = self._clock() + _LINGER_SECONDS
        while self._clients and self._clock() < deadline:
            self.turn(max(deadline - self._clock(), 0))
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
                # For example too many open files: the next tick tries again, connected clients go on.
                _log.warning("cannot accept a client", listener=self._url, why=why(error))
                self._selector.unregister(self._listening)
                self._deaf = True
                return
            if len(self._clients) >= self._limits.clients and not self._make_room(address[0]):
                _log.warning("too many clients", listener=self._url, most=self._limits.clients, refused=address[0])
                connection.close()
                continue
            self._welcome(connection, address[0], address[1])

    def _make_room(self, newcomer: str) -> bool:
        """Disconnects a client in favour of one from address `newcomer`; returns False if none has to yield.

        Clients that have not opened their connections yield first, then clients without a link, then clients of
        addresses that have more connections than the newcomer's would have. Among several, the address with the most
        connections yields, and of its clients the one that has been inactive for longest.
        """
        owner = self._owners.get(newcomer)
        share = 1 + (owner.clients if owner else 0)
        for yields in (
            lambda client: not client.peer.opened,
            lambda client: not client.peer.links,
            lambda client: client.owner.clients > share,
        ):
            if yielding := [client for client in self._clients if yields(client)]:
                client = max(yielding, key=lambda each: (each.owner.clients, -each.peer.active))
                client.peer.close(Condition(RESOURCE_LIMIT, "the listener is full, and others want to connect"))
                self._write(client)
                if client in self._clients:
                    self._drop(client)
                return True
        return False

    def _welcome(self, connection: socket.socket, address: str, port: int) -> None:
        assert self._selector is not None
        name = f"{address}:{port}"
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        except OSError as error:
            # The client may have disconnected already.
            _log.warning("client left", client=name, why=why(error))
            connection.close()
            return
        now = self._clock()
        client = _Client(
            connection, ServerConnection(self._host, name, now, proven=self._proven), self._owner(address), now
        )
        self._clients.add(client)
        self._selector.register(connection, _READ, client)

    def _owner(self, name: str) -> Owner:
        """Owner of one more connection, by address or certificate."""
        owner = self._owners.setdefault(name, Owner(name))
        owner.clients += 1
        return owner

    def _disown(self, owner: Owner) -> None:
        owner.clients -= 1
        if not owner.clients:
            del self._owners[owner.name]

    def _name(self, client: _Client) -> None:
        """Counts a client with a certificate under the certificate, whatever address it connects from."""
        client.is_named = True
        if self._proven and isinstance(client.socket, ssl.SSLSocket):
            certificate = client.socket.getpeercert() or {}
            self._disown(client.owner)
            client.owner = self._owner(f"certificate {certificate.get('subject')}")

    def _read(self, client: _Client) -> bool:
        """Gives a client its turn.

        Returns:
            True if there may be more input that the selector does not report.
        """
        peer = client.peer
        turn = _Slice(self._limits, self._clock)
        if not client.unfinished:
            try:
                data = client.socket.recv(_CHUNK_BYTES)
            except _WAIT:
                return False
            except OSError as error:
                self._drop(client, why(error))
                return False
            if not data:
                self._drop(client)
                return False
            peer.receive(data, self._clock())
        client.unfinished = peer.work(turn.is_spent)
        if peer.opened and not client.is_named:
            self._name(client)
        if peer.held_bytes:
            self._limit_unfinished()
        return client.unfinished or self._tls is not None

    def _limit_unfinished(self) -> None:
        """Disconnects a client if all together hold too many bytes of incomplete frames and messages.

        It is the client that holds most, of the owner whose clients together hold most.
        """
        held: dict[Owner, int] = {}
        for client in self._clients:
            held[client.owner] = held.get(client.owner, 0) + client.peer.held_bytes
        if sum(held.values()) <= self._limits.unfinished_bytes_of_all + self._host.max_bytes:
            return
        owner = max(held, key=lambda each: held[each])
        largest = max((each for each in self._clients if each.owner is owner), key=lambda each: each.peer.held_bytes)
        why = f"{largest.peer.held_bytes} bytes in frames and messages that are not complete, and others have some, too"
        largest.peer.close(Condition(RESOURCE_LIMIT, why))
        self._write(largest)
        if largest in self._clients:
            self._drop(largest)

    def _write(self, client: _Client) -> None:
        peer = client.peer
        try:
            while peer.outgoing:
                peer.sent(client.socket.send(bytes(peer.outgoing[:_CHUNK_BYTES])), now := self._clock())
                client.progress = now
        except _WAIT:
            pass
        except OSError as error:
            self._drop(client, why(error))
            return
        if peer.ended and not peer.outgoing and client.leaves_at is None:
            # Closing the socket at once could discard bytes that the client has not read yet.
            client.leaves_at = self._clock() + _LINGER_SECONDS
            with suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
        self._arm(client)

    def _arm(self, client: _Client) -> None:
        assert self._selector is not None
        unread = len(client.peer.outgoing)
        mask = (_READ if unread < self._limits.unread_bytes else 0) | (_WRITE if unread else 0)
        if mask != client.mask:
            client.mask = mask
            self._selector.modify(client.socket, mask, client)

    def _tick(self, now: float) -> None:
        assert self._selector is not None
        for client in list(self._clients):
            peer = client.peer
            if not self._host.takes(peer) or client.unfinished or not client.mask & _READ:
                peer.excuse(now)
            if not peer.outgoing:
                client.progress = now
            peer.tick(now)
            if now - client.progress > self._limits.unread_seconds:
                self._drop(client, f"it has read nothing for {self._limits.unread_seconds:.0f} s")
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
        self._ready.discard(client)
        self._paused.discard(client)
        self._disown(client.owner)
        self._selector.unregister(client.socket)
        client.socket.close()
        client.peer.gone()
