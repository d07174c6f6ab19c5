"""Sink that publishes messages to NATS subjects, or to JetStream streams, which confirm each message.

Without a stream, a message counts as given when the server has answered a PING that was sent after it; with a stream,
when the stream has confirmed it. Outcomes are reported in the order of sending. So after a lost connection the first
message without an outcome and all later ones are sent again; a stream drops repetitions by `Nats-Msg-Id`.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.connectors.base import Outcome, RefusedError
from engine.connectors.nats.connection import Connection
from engine.connectors.nats.headers import status
from engine.connectors.nats.jetstream import API, ApiError
from engine.connectors.nats.message import reply_format, to_wire
from engine.connectors.nats.settings import ADDRESSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.connectors.base import Outgoing
    from engine.connectors.endpoint import SystemEndpoint
    from engine.connectors.nats.settings import NatsSinkConfig

__all__ = ["NatsSink"]

_ADDRESS = re.compile(ADDRESSES.pattern)
_PREFIX = re.compile("(?:queue|topic)[/:]")
_CHUNK_BYTES = 256 * 1024
_LONGEST_LINE_BYTES = 4096
"""Default of the server's `max_control_line`."""
_ANSWER_SECONDS = 10.0
_RARELY_SECONDS = 1.0
_NAMES = f"{API}.STREAM.NAMES"
_NO_RESPONDERS = 503
_LATER = 500
_PASSING = (408, 429)
_ACCOUNT_IS_FULL = 10002


class _Sent:
    """Message that was sent and whose outcome has not been returned yet."""

    __slots__ = ("number", "refusal", "settled", "subject")

    def __init__(self, number: int) -> None:
        self.number = number
        self.subject = ""
        self.settled = False
        self.refusal: str | None = None

    def settle(self, refusal: str | None = None) -> None:
        if not self.settled:
            self.settled, self.refusal = True, refusal


class NatsSink:
    """Sink of one worker, with its own connection to the server."""

    most_under_way = 4_000
    settle_seconds = 0.0

    def __init__(self, endpoint: SystemEndpoint[NatsSinkConfig], worker: int) -> None:
        """Reads TLS and credentials files; does not connect. `worker` is ignored, since all workers do the same.

        Raises:
            SetupError: a TLS or credentials file is missing or invalid.
        """
        self._sink = endpoint.settings
        self._propagates = endpoint.tracing.propagate
        self._connection = Connection(endpoint)
        self._connection.on_publish_violation = self._not_allowed
        self._sent: deque[_Sent] = deque()
        self._unconfirmed: dict[bytes, _Sent] = {}
        """Messages that a stream has to confirm, by the last token of the subject of the confirmation."""
        self._looked_up: dict[bytes, str] = {}
        """Subjects whose stream JetStream was asked for, by the last token of the subject of the answer."""
        self._closed: set[str] = set()
        """Subjects to which the server does not let the bridge publish, in lower case. They are remembered because the
        server reports the violation once for each message."""
        self._inbox = b""
        self._most_bytes = 0
        self._heard_at = 0.0
        self._called_at = 0.0

    @property
    def address(self) -> str:
        """URL of the server, `nats://host:port`."""
        return self._connection.url

    def connect(self) -> None:
        """Connects; with `stream=true` also subscribes to the confirmations of streams."""
        self.close()
        self._sent.clear()
        self._unconfirmed.clear()
        self._looked_up.clear()
        self._closed.clear()
        self._connection.open()
        if self._sink.stream:
            inbox = self._connection.new_inbox()
            self._connection.listen(f"{inbox}.*", self._answer)
            self._inbox = inbox.encode() + b"."

    def send(self, messages: Sequence[Outgoing]) -> None:
        """Writes the messages to the socket at once."""
        self._connection.check()
        self._called()
        self._most_bytes = self._connection.max_payload
        lines: list[bytes] = []
        size = 0
        plain: list[_Sent] = []
        for outgoing in messages:
            sent = _Sent(outgoing.number)
            self._sent.append(sent)
            try:
                line = self._line(outgoing, sent, plain)
            except RefusedError as error:
                sent.settle(str(error))
                continue
            lines.append(line)
            size += len(line)
            if size > _CHUNK_BYTES:
                self._connection.send(b"".join(lines))
                lines, size = [], 0
        if lines:
            self._connection.send(b"".join(lines))
        if plain:
            self._connection.ping(lambda: self._arrived(plain))

    def outcomes(self, timeout_seconds: float) -> Sequence[Outcome]:
        """Returns outcomes in the order of sending."""
        self._called()
        self._connection.wait(0 if self._has_outcome() else timeout_seconds, self._has_outcome)
        outcomes = []
        while self._sent and self._sent[0].settled:
            sent = self._sent.popleft()
            outcomes.append(Outcome(sent.number, sent.refusal))
        if not outcomes:
            # Checked only now: outcomes that were known before the connection was lost are still true.
            self._connection.check()
            if self._sent and time.monotonic() - self._heard_at > _ANSWER_SECONDS:
                raise self._connection.fail(f"the server has confirmed nothing for {_ANSWER_SECONDS:.0f} s")
        return outcomes

    def close(self) -> None:
        """Closes the connection; nothing has to be sent before."""
        self._connection.leave(lambda: None)

    def _line(self, outgoing: Outgoing, sent: _Sent, plain: list[_Sent]) -> bytes:
        """Returns the protocol bytes of a message; adds it to `plain` if no stream is to confirm it.

        Raises:
            RefusedError: NATS cannot carry the message.
        """
        subject = _subject(outgoing.address)
        wire = reply_format(outgoing.message) or self._sink.format
        block, payload = to_wire(outgoing.message, wire, outgoing.id, propagates=self._propagates)
        size = len(block) + len(payload)
        if size > self._most_bytes:
            raise RefusedError(f"{size} bytes with headers are more than the {self._most_bytes} that the server takes")
        reply, by_stream = b"", False
        if outgoing.reply_to is not None:
            # A request keeps its own reply subject, so no stream can confirm it: the confirmation would go there.
            reply = _subject(outgoing.reply_to)
        elif self._sink.stream:
            reply, by_stream = self._inbox + b"%d" % sent.number, True
        head = b"HPUB %b %b %d %d\r\n" % (subject, reply, len(block), size)
        if len(head) > _LONGEST_LINE_BYTES:
            raise RefusedError(f"a subject of {len(subject)} bytes is more than NATS takes")
        sent.subject = subject.decode()
        if by_stream:
            self._unconfirmed[b"%d" % sent.number] = sent
        else:
            plain.append(sent)
        return b"".join((head, block, payload, b"\r\n"))

    def _arrived(self, plain: list[_Sent]) -> None:
        self._heard_at = time.monotonic()
        for sent in plain:
            sent.settle()

    def _answer(self, subject: bytes, reply: bytes, headers: bytes, body: bytes) -> None:
        """Handles a message to one of the confirmation subjects."""
        self._heard_at = time.monotonic()
        key = subject[len(self._inbox) :]
        code = status(headers) if headers else None
        unanswered = code is not None and code[0] == _NO_RESPONDERS
        if (looked_up := self._looked_up.pop(key, None)) is not None:
            self._found(looked_up, None if unanswered else _json(body))
        elif (sent := self._unconfirmed.get(key)) is not None:
            if unanswered:
                self._look_up(key, sent.subject)
            else:
                self._confirmed(key, sent, _json(body))

    def _confirmed(self, key: bytes, sent: _Sent, answer: dict[str, Any]) -> None:
        if (error := _error(answer)) is not None:
            if error.code >= _LATER or error.code in _PASSING or error.err_code == _ACCOUNT_IS_FULL:
                self._connection.fail(f"JetStream says of '{sent.subject}': {error}")
                return
            sent.settle(f"JetStream refuses it: {error}")
        elif "stream" in answer and "seq" in answer and "error" not in answer:
            sent.settle()
        else:
            # Not from JetStream: an application that also subscribes to the subject has replied.
            return
        del self._unconfirmed[key]

    def _look_up(self, key: bytes, subject: str) -> None:
        """Asks JetStream for the streams of a subject to which no one responded.

        Either no stream has the subject, or its stream has no leader at the moment.
        """
        if subject not in self._looked_up.values():
            asked = json.dumps({"subject": subject}).encode()
            name = b"stream-" + key
            self._looked_up[name] = subject
            head = b"PUB %b %b%b %d\r\n" % (_NAMES.encode(), self._inbox, name, len(asked))
            self._connection.put(b"%b%b\r\n" % (head, asked))

    def _found(self, subject: str, answer: dict[str, Any] | None) -> None:
        """Handles JetStream's answer about the streams of a subject; `answer` is None if there is no JetStream."""
        if answer is None:
            self._connection.fail("JetStream does not answer; is it enabled (-js)?")
        elif streams := answer.get("streams"):
            self._connection.fail(f"stream {', '.join(map(str, streams))} does not answer")
        else:
            self._refuse(subject, f"no stream takes subject '{subject}'")

    def _not_allowed(self, subject: str) -> bool:
        """Refuses the messages to a subject, given in lower case, that the server denies the bridge to publish to.

        Returns False if no message of this sink explains the violation.
        """
        if subject == _NAMES.lower():
            for waiting in set(self._looked_up.values()):
                self._refuse(waiting, f"no stream takes subject '{waiting}'")
            self._looked_up.clear()
            return True
        concerned = {sent.subject for sent in self._sent if not sent.settled and sent.subject.lower() == subject}
        for name in concerned:
            self._refuse(name, f"the server does not allow the bridge to publish to '{name}'")
        if concerned:
            self._closed.add(subject)
        return subject in self._closed

    def _refuse(self, subject: str, why: str) -> None:
        for sent in self._sent:
            if sent.subject == subject:
                sent.settle(why)
        self._unconfirmed = {key: sent for key, sent in self._unconfirmed.items() if not sent.settled}

    def _has_outcome(self) -> bool:
        return bool(self._sent) and self._sent[0].settled

    def _called(self) -> None:
        """Restarts the time limit for answers if no message is open, or if the last call was long ago.

        Answers are received only during calls, so time without calls must not count against the server.
        """
        now = time.monotonic()
        if not self._sent or now - self._called_at > _RARELY_SECONDS:
            self._heard_at = now
        self._called_at = now


@lru_cache(1000)
def _subject(address: str) -> bytes:
    """Returns the subject of an address, encoded.

    Raises:
        RefusedError: the address has no valid subject, or one by which messages would command the server.
    """
    if not _ADDRESS.fullmatch(address):
        raise RefusedError(f"'{address[:100]}' is not a subject to publish to")
    prefix = _PREFIX.match(address)
    subject = address[prefix.end() :] if prefix else address
    if not ADDRESSES.allow(address):
        raise RefusedError(f"'{subject[:100]}' is for commands to the server; messages are not sent there")
    try:
        return subject.encode()
    except UnicodeEncodeError as error:
        raise RefusedError(f"{address[:100]!r} is not a subject to publish to") from error


def _error(answer: dict[str, Any]) -> ApiError | None:
    """Returns the error in a confirmation; None if there is none, or if it has not the form of a JetStream error.

    An application that subscribes to the same subject may reply with an error of another form.
    """
    error = answer.get("error")
    if not isinstance(error, dict) or not all(isinstance(error.get(name), int) for name in ("code", "err_code")):
        return None
    return ApiError(error)


def _json(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
