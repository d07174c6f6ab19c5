"""What a source reads from a stream of JetStream, by a durable consumer that it pulls from.

Specification: ADR-13 (pull requests) of nats-io/nats-architecture-and-design. Some hundred messages are always asked
for beforehand. A message stays open until it is acknowledged: it is prolonged while it waits for the journal, and given
back when the connection is left, so that it comes again at once and not after the consumer's ack_wait. What the server
sends again although this connection has had it is not handed over twice.
"""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING

from engine.connectors.nats.headers import parse, status
from engine.connectors.nats.jetstream import API, Consumer, acknowledged, ensure_consumer
from engine.connectors.nats.message import Incoming, stored
from engine.connectors.nats.place import Place, furthest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.connectors.nats.connection import Connection
    from engine.connectors.nats.message import Stored
    from routes.model import SourceConfig

__all__ = ["Stream"]

_WINDOW = 1000
"""Messages asked for and waiting here, together at most."""
_WINDOW_BYTES = 4 * 1024 * 1024
"""Of messages on their way at once, and again of those that wait here before more are asked for. On their way is no
more than the system keeps for a socket that nobody reads while Kafka is away: the server would hang up."""
_FRAMING_BYTES = 64 * 1024
_EXPIRES_SECONDS = 30.0
_LATE_SECONDS = 5.0
_NO_SEQUENCE = -1
_TOKENS = 9
_REMEMBERED = 25_000
_PENDING = "Nats-Pending-Messages"
_GONE = 503
_SIGN_OF_LIFE = 100
_ENDED = (404, 408)
_ENDED_EARLY = 409
_REFUSED_SECONDS = 30.0
_TOO_MANY_BYTES = "Message Size Exceeds MaxBytes"
_EARLY_ENDS = (_TOO_MANY_BYTES, "Batch Completed", "Leadership Change", "Server Shutdown")
"""Texts with which a request ends that can be made again; the others say that it was wrong."""


class Stream:
    """The messages of one consumer, on one connection after the other."""

    def __init__(self, connection: Connection, source: SourceConfig, bridge_id: str) -> None:
        self._connection = connection
        self._source = source
        self._bridge_id = bridge_id
        self._consumer: Consumer | None = None
        self._inbox = ""
        self._number = 0
        self._waiting: deque[tuple[Incoming, bytes]] = deque()
        self._bytes = 0
        """Of the bodies that wait."""
        self._open: dict[int, bytes] = {}
        """Stream sequence to acknowledgement subject, in the order in which they came."""
        self._done: tuple[set[int], set[int]] = (set(), set())
        """Sequences that were acknowledged on this connection, newer and older ones; see `_take`."""
        self._left: tuple[float, list[bytes]] = (0.0, [])
        self._asked = 0
        self._came = False
        self._most_bytes = _WINDOW_BYTES
        self._silent_at = 0.0
        self._prolonged_at = 0.0
        self._last_open = _NO_SEQUENCE
        self._acknowledged_ms = 0
        self._past: Place | None = None

    def start(self) -> None:
        """Finds or makes the consumer on a new connection, and asks for messages."""
        self._waiting.clear()
        self._bytes = 0
        self._open, self._done = {}, (set(), set())
        self._asked = 0
        self._most_bytes = max(_WINDOW_BYTES, self._connection.max_payload + _FRAMING_BYTES)
        self._consumer = ensure_consumer(self._connection, self._source, self._bridge_id)
        self._inbox = self._connection.new_inbox()
        self._number = self._connection.listen(self._inbox, self._take)
        when, left = self._left
        if left and time.monotonic() - when < self._consumer.ack_wait_seconds:
            self._connection.send(_lines(left, b"-NAK"))
        self._left = (0.0, [])
        self._prolonged_at = time.monotonic()
        self._ask()

    def next(self) -> tuple[Incoming, object] | None:
        """The next message, with its token; None if there is none."""
        # First: what has come on a connection that is gone can no longer be acknowledged.
        self._connection.check()
        if self._asked + len(self._waiting) <= _WINDOW // 2 and self._bytes < self._most_bytes:
            self._ask()
        if not self._waiting:
            return None
        incoming, reply = self._waiting.popleft()
        self._bytes -= len(incoming.body)
        return incoming, reply

    @property
    def ack_wait_seconds(self) -> float:
        """After how long the server sends again what was not acknowledged; of the consumer on this connection."""
        assert self._consumer is not None
        return self._consumer.ack_wait_seconds

    @property
    def ready(self) -> bool:
        """Whether there is a next message."""
        return bool(self._waiting)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """All in one write."""
        # First: what is not acknowledged stays open, and is given back on the next connection.
        self._connection.check()
        replies = []
        newer, older = self._done
        for token in tokens:
            assert isinstance(token, bytes)
            sequence, _ = _place(token)
            self._open.pop(sequence, None)
            newer.add(sequence)
            replies.append(token)
        if replies and (last := stored(replies[-1].decode("utf-8", "replace"))):
            self._acknowledged_ms = max(self._acknowledged_ms, last.milliseconds)
        if len(newer) > _REMEMBERED:
            older.clear()
            self._done = (older, newer)
        self._connection.send(_lines(replies, b""))

    def place(self) -> str:
        """How far the consumer is, for a later `recall`. Raises `NotConnectedError`."""
        assert self._consumer is not None
        floor = acknowledged(self._connection, self._source.stream or "", self._consumer.name)
        return str(Place(self._consumer.created, floor, self._acknowledged_ms))

    def recall(self, notes: Iterable[str]) -> None:
        """What `place` has said before, on any connection."""
        assert self._consumer is not None
        self._past = furthest(notes, self._consumer.created)

    def is_past(self, message: Stored) -> bool:
        """Whether the server had counted a message as acknowledged, and has forgotten that."""
        return self._past is not None and self._past.covers(message)

    def tend(self) -> None:
        """Prolongs what has been open for long, and asks again where a request got lost. To be called often."""
        now = time.monotonic()
        if self._asked and now > self._silent_at:
            self._asked = 0
        assert self._consumer is not None
        if now - self._prolonged_at < self._consumer.ack_wait_seconds / 3:
            return
        self._prolonged_at = now
        old = []
        if self._last_open in self._open:
            for sequence, reply in self._open.items():
                old.append(reply)
                if sequence == self._last_open:
                    break
        if old:
            self._connection.send(_lines(old, b"+WPI"))
        self._last_open = next(reversed(self._open), _NO_SEQUENCE)

    def leave(self) -> None:
        """Gives back what is not acknowledged, after nothing more can come."""
        self._connection.forget(self._number)
        self._connection.flush()
        self._connection.send(_lines(self._open.values(), b"-NAK"))
        self._open = {}

    def left(self) -> None:
        """The connection is gone; what could not be given back on it is on the next one."""
        if self._open:
            self._left = (time.monotonic(), list(self._open.values()))
        self._open = {}
        self._waiting.clear()

    def _ask(self) -> None:
        assert self._consumer is not None
        batch = _WINDOW - self._asked - len(self._waiting)
        batch = min(batch, self._consumer.max_batch or batch)
        expires = min(_EXPIRES_SECONDS, self._consumer.max_expires_seconds or _EXPIRES_SECONDS)
        most = min(self._most_bytes, self._consumer.max_bytes or self._most_bytes)
        wanted = json.dumps({"batch": batch, "expires": int(expires * 1e9), "max_bytes": most}).encode()
        subject = f"{API}.CONSUMER.MSG.NEXT.{self._source.stream}.{self._consumer.name}"
        self._connection.send(b"PUB %b %b %d\r\n%b\r\n" % (subject.encode(), self._inbox.encode(), len(wanted), wanted))
        self._asked += batch
        self._came = False
        self._silent_at = time.monotonic() + expires + _LATE_SECONDS

    def _take(self, subject: bytes, reply: bytes, headers: bytes, body: bytes) -> None:
        if not reply.startswith(b"$JS.ACK."):
            self._hear(headers)
            return
        self._asked = max(self._asked - 1, 0)
        self._came = True
        sequence, first = _place(reply)
        if not first and sequence in self._open:
            # It was here for longer than ack_wait while nobody called.
            return
        if not first and any(sequence in done for done in self._done):
            # The same, and the acknowledgement went out while it was on its way.
            self._connection.put(_lines([reply], b""))
            return
        self._open[sequence] = reply
        self._bytes += len(body)
        incoming = Incoming(subject.decode("utf-8", "replace"), reply.decode("utf-8", "replace"), headers, body)
        self._waiting.append((incoming, reply))

    def _hear(self, headers: bytes) -> None:
        """What the server says of a request for messages."""
        code, text = status(headers) or (_SIGN_OF_LIFE, "")
        if code in _ENDED or (code == _ENDED_EARLY and text in _EARLY_ENDS):
            if text == _TOO_MANY_BYTES and not self._came:
                self._ask_for_more()
            pending = dict(parse(headers)).get(_PENDING, "")
            self._asked = max(self._asked - int(pending), 0) if pending.isdecimal() else 0
        elif code == _GONE:
            self._connection.fail("JetStream does not answer any more")
        elif code != _SIGN_OF_LIFE:
            self._connection.fail(f"JetStream says of the consumer: {text or code}")

    def _ask_for_more(self) -> None:
        """The next message is larger than what was asked for, as one that the server took when it took larger ones."""
        assert self._consumer is not None
        bound = self._consumer.max_bytes
        if bound and self._most_bytes >= bound:
            why = (
                f"consumer {self._consumer.name!r} has a max_bytes of {bound}, which its next message exceeds; raise it"
            )
            self._connection.fail(why, _REFUSED_SECONDS)
        self._most_bytes *= 2


def _place(reply: bytes) -> tuple[int, bool]:
    """Sequence in the stream, and whether it is the first delivery, as an acknowledgement subject says them."""
    tokens = reply.split(b".")
    at = 4 if len(tokens) == _TOKENS else 6
    try:
        return int(tokens[at + 1]), tokens[at] == b"1"
    except (IndexError, ValueError):
        return _NO_SEQUENCE, True


def _lines(replies: Iterable[bytes], what: bytes) -> bytes:
    """Answers to deliveries as protocol lines; an empty one acknowledges."""
    end = b" %d\r\n%b\r\n" % (len(what), what)
    return b"".join([b"PUB " + reply + end for reply in replies])
