"""Messages of a JetStream stream, pulled through a durable consumer.

Specification: ADR-13 (pull requests) of nats-io/nats-architecture-and-design. Some hundred messages are always
requested ahead. A message is open until it is acknowledged. While it waits for the journal, its ack_wait is extended
(`+WPI`); when the connection is closed, it is returned (`-NAK`), so that the server redelivers it at once and not after
ack_wait. A message that the server delivers to the same connection again is not handed over twice, whatever its count
of deliveries: where redelivered messages meet new ones, a server may deliver one with count 2 and then with count 1.
"""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from engine.connectors.nats.headers import parse, status
from engine.connectors.nats.jetstream import API, Consumer, acknowledged, ensure_consumer
from engine.connectors.nats.message import IncomingMessage, stored
from engine.connectors.numbers import whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from engine.connectors.nats.connection import Connection
    from engine.connectors.nats.message import Stored
    from engine.connectors.nats.settings import NatsSourceConfig

__all__ = ["AckPosition", "StreamReader", "furthest"]

_WINDOW = 1000
"""Maximum number of messages that are requested or waiting here."""
_WINDOW_BYTES = 4 * 1024 * 1024
"""Maximum size of the messages of one request, and size of the waiting messages above which no more are requested. A
request is no larger than the system's socket buffers: the socket is not read while Kafka is unreachable, and the
server would close the connection."""
_FRAMING_BYTES = 64 * 1024
_EXPIRES_SECONDS = 30.0
_LATE_SECONDS = 5.0
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
"""Status texts that end a request which can be repeated; all others mean that the request was wrong."""


_Place = tuple[bytes, bytes]
"""Sequence of a message in its stream, and the time at which the stream stored it: together they identify the message,
also where a stream that was made anew uses its sequences again."""


class AckPosition(NamedTuple):
    """Acknowledged position of one consumer at one moment, which the bridge stores in Kafka.

    A server that was stopped or lost power may forget the position of a consumer, and then redelivers the stream from
    its beginning (nats-server issue 8036). The stored position, which the server itself reported, tells which of these
    messages were acknowledged before.
    """

    created: str
    """Creation time of the consumer, in the server's spelling; distinguishes consumers that had the same name."""
    floor: int
    """Ack floor: all messages of the stream up to this sequence were acknowledged."""
    time_ms: int
    """Time at which the stream stored the latest message acknowledged by then, in milliseconds since 1970 by the
    server's clock."""

    def __str__(self) -> str:
        """Formats the position as the text that `furthest` parses."""
        return f"{self.created} {self.floor} {self.time_ms}"

    def covers(self, message: Stored) -> bool:
        """Returns True if the message was acknowledged when this position was noted.

        The sequence alone does not prove it: a stream restored from a backup uses its sequences again, for messages of
        a later time.
        """
        return int(message.sequence) <= self.floor and message.milliseconds <= self.time_ms


def furthest(notes: Iterable[str], created: str) -> AckPosition | None:
    """Returns the position with the highest floor among the notes of the consumer created then; None if there is none.

    Notes of other consumers and unreadable notes are ignored.
    """
    places = (_parsed(note) for note in notes)
    return max((place for place in places if place and place.created == created), key=_floor, default=None)


def _floor(place: AckPosition) -> int:
    return place.floor


def _parsed(note: str) -> AckPosition | None:
    try:
        created, floor, time_ms = note.split(" ")
        return AckPosition(created, int(floor), int(time_ms))
    except ValueError:
        return None


class StreamReader:
    """Reader of one consumer, over successive connections."""

    def __init__(self, connection: Connection, source: NatsSourceConfig, bridge_id: str) -> None:
        self._connection = connection
        self._source = source
        self._bridge_id = bridge_id
        self._consumer: Consumer | None = None
        self._inbox = ""
        self._number = 0
        self._waiting: deque[tuple[IncomingMessage, bytes]] = deque()
        self._bytes = 0
        """Total size of the bodies of waiting messages."""
        self._open: dict[_Place, bytes] = {}
        """Messages not acknowledged: place to acknowledgement subject, in the order of arrival."""
        self._done: tuple[set[_Place], set[_Place]] = (set(), set())
        """Places of messages acknowledged on this connection, in a newer and an older generation; see `_take`."""
        self._left: tuple[float, list[bytes]] = (0.0, [])
        self._asked = 0
        self._came = False
        self._most_bytes = _WINDOW_BYTES
        self._silent_at = 0.0
        self._prolonged_at = 0.0
        self._last_open: _Place | None = None
        self._acknowledged_ms = 0
        self._past: AckPosition | None = None

    def start(self) -> None:
        """Finds or creates the consumer on a new connection, and requests messages."""
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

    def next(self) -> tuple[IncomingMessage, object] | None:
        """Returns the next message and its token; None if none waits."""
        # Checked first: messages that came on a lost connection can no longer be acknowledged.
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
        """Seconds after which the server redelivers an unacknowledged message, by the consumer's configuration."""
        assert self._consumer is not None
        return self._consumer.ack_wait_seconds

    @property
    def ready(self) -> bool:
        """True if a message waits."""
        return bool(self._waiting)

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """Acknowledges all these deliveries in one write."""
        # Checked first: on a lost connection the messages stay open, and are returned on the next one.
        self._connection.check()
        replies = []
        newer, older = self._done
        for token in tokens:
            assert isinstance(token, bytes)
            if (place := _place(token)) is not None:
                self._open.pop(place, None)
                newer.add(place)
            replies.append(token)
        if replies and (last := stored(replies[-1].decode("utf-8", "replace"))):
            self._acknowledged_ms = max(self._acknowledged_ms, last.milliseconds)
        if len(newer) > _REMEMBERED:
            older.clear()
            self._done = (older, newer)
        self._connection.send(_lines(replies, b""))

    def position(self) -> str:
        """Returns the consumer's acknowledged position as text for a later `recall`.

        Raises:
            NotConnectedError: the connection is lost, or JetStream does not answer.
        """
        assert self._consumer is not None
        floor = acknowledged(self._connection, self._source.stream or "", self._consumer.name)
        return str(AckPosition(self._consumer.created, floor, self._acknowledged_ms))

    def recall(self, notes: Iterable[str]) -> None:
        """Takes the texts that `position` returned earlier, on this or other connections."""
        assert self._consumer is not None
        self._past = furthest(notes, self._consumer.created)

    def is_past(self, message: Stored) -> bool:
        """Returns True if the message was acknowledged before and the server has forgotten it."""
        return self._past is not None and self._past.covers(message)

    def tend(self) -> None:
        """Extends the ack_wait of messages that have been open for long, and gives up a lost request.

        The next call of `next` then makes a new request. To be called several times in each ack_wait.
        """
        now = time.monotonic()
        if self._asked and now > self._silent_at:
            self._asked = 0
        assert self._consumer is not None
        if now - self._prolonged_at < self._consumer.ack_wait_seconds / 3:
            return
        self._prolonged_at = now
        old = []
        if self._last_open in self._open:
            for place, reply in self._open.items():
                old.append(reply)
                if place == self._last_open:
                    break
        if old:
            self._connection.send(_lines(old, b"+WPI"))
        self._last_open = next(reversed(self._open), None)

    def leave(self) -> None:
        """Ends the subscription, then returns the open messages to the server."""
        self._connection.forget(self._number)
        self._connection.flush()
        self._connection.send(_lines(self._open.values(), b"-NAK"))
        self._open = {}

    def left(self) -> None:
        """Notes that the connection has ended; messages still open are returned by `start` on the next connection."""
        if self._open:
            self._left = (time.monotonic(), list(self._open.values()))
        self._open = {}
        self._waiting.clear()

    def _ask(self) -> None:
        assert self._consumer is not None
        batch = _WINDOW - self._asked - len(self._waiting)
        batch = min(batch, self._consumer.max_batch or batch)
        expires = min(_EXPIRES_SECONDS, self._consumer.max_expires_seconds or _EXPIRES_SECONDS)
        most_bytes = min(self._most_bytes, self._consumer.max_bytes or self._most_bytes)
        wanted = json.dumps({"batch": batch, "expires": int(expires * 1e9), "max_bytes": most_bytes}).encode()
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
        place = _place(reply)
        if place in self._open:
            # The message is open here. ack_wait passed because `tend` was not called in time, or see the module.
            return
        if any(place in done for done in self._done):
            # As above, but it was acknowledged while the other delivery was on its way.
            self._connection.put(_lines([reply], b""))
            return
        if place is not None:
            self._open[place] = reply
        self._bytes += len(body)
        incoming = IncomingMessage(subject.decode("utf-8", "replace"), reply.decode("utf-8", "replace"), headers, body)
        self._waiting.append((incoming, reply))

    def _hear(self, headers: bytes) -> None:
        """Handles a status message of the server about a pull request."""
        code, text = status(headers) or (_SIGN_OF_LIFE, "")
        if code in _ENDED or (code == _ENDED_EARLY and text in _EARLY_ENDS):
            if text == _TOO_MANY_BYTES and not self._came:
                self._ask_for_more()
            pending = whole(dict(parse(headers)).get(_PENDING, ""))
            self._asked = 0 if pending is None else max(self._asked - pending, 0)
        elif code == _GONE:
            self._connection.fail("JetStream does not answer any more")
        elif code != _SIGN_OF_LIFE:
            self._connection.fail(f"JetStream says of the consumer: {text or code}")

    def _ask_for_more(self) -> None:
        """Doubles the size of requests, since the next message is larger than one request.

        The message was stored when the server's `max_payload` was larger. Fails the connection if the consumer's own
        `max_bytes` is the limit.
        """
        assert self._consumer is not None
        bound = self._consumer.max_bytes
        if bound and self._most_bytes >= bound:
            why = (
                f"consumer {self._consumer.name!r} has a max_bytes of {bound}, which its next message exceeds; raise it"
            )
            self._connection.fail(why, _REFUSED_SECONDS)
        self._most_bytes *= 2


def _place(reply: bytes) -> _Place | None:
    """Returns the place in an acknowledgement subject; None for a subject of another form (ADR-15 of NATS)."""
    tokens = reply.split(b".")
    at = 5 if len(tokens) == _TOKENS else 7
    return (tokens[at], tokens[at + 2]) if len(tokens) >= at + 4 else None


def _lines(replies: Iterable[bytes], what: bytes) -> bytes:
    """Returns protocol lines that send `what` to each acknowledgement subject; an empty `what` acknowledges."""
    end = b" %d\r\n%b\r\n" % (len(what), what)
    return b"".join([b"PUB " + reply + end for reply in replies])
