"""Artemis over STOMP for the conformance suite and for STOMP's own tests: senders, and counts by its management."""

from __future__ import annotations

import json
import os
import signal
import socket
import uuid
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from engine.connectors.stomp.frames import StompFrame, StompFrameParser, escape
from tests.processes import pause

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from proton import Message as AmqpMessage

    from engine.embedded import EmbeddedArtemis
    from tests.integration.connectors.harness import Outgoing


def amqp(module: str) -> Any:
    """A module of Artemis' AMQP client, which has to be compiled; without it the test that asks is skipped."""
    return pytest.importorskip(module, reason="switch on with: .venv/bin/pip install python-qpid-proton")


_HEADERS = {
    "JMSCorrelationID": "correlation-id",
    "JMSType": "type",
    "JMSPriority": "priority",
    "JMSExpiration": "expires",
    "JMSReplyTo": "reply-to",
    "JMSXGroupID": "JMSXGroupID",
}


class Peer:
    """A bare STOMP client, so that the tests do not judge the bridge by its own code or by stomp.py's."""

    def __init__(self, port: int, timeout_seconds: float = 30, **connect: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout_seconds)
        self._parser = StompFrameParser(64 * 1024 * 1024, 1)
        self._frames = self._read()
        try:
            self.write(self.frame("CONNECT", {"accept-version": "1.2", "host": "test"} | connect))
            self.expect("CONNECTED")
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hangs up without a word."""
        self._socket.close()

    @staticmethod
    def frame(command: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
        lines = "".join(f"{escape(name)}:{escape(value)}\n" for name, value in headers.items())
        return f"{command}\n{lines}\n".encode() + body + b"\0"

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def next(self) -> StompFrame:
        for frame in self._frames:
            return frame
        raise ConnectionResetError("the broker has hung up")

    def expect(self, command: str) -> StompFrame:
        """The next frame, which is of this command; ConnectionAbortedError with what the broker says instead."""
        frame = self.next()
        if frame.command == "ERROR" and command != "ERROR":
            raise ConnectionAbortedError(frame.headers.get("message"))
        assert frame.command == command, frame
        return frame

    def send(self, destination: str, frames: Sequence[tuple[Mapping[str, str], bytes]], kind: str = "ANYCAST") -> None:
        """Each with its headers; returns when the broker has the last."""
        for start in range(0, len(frames), 500):
            part = frames[start : start + 500]
            data = []
            for number, (headers, body) in enumerate(part, 1):
                fixed = {"destination": destination, "destination-type": kind, "persistent": "true"}
                receipt = {"receipt": "r"} if number == len(part) else {}
                data.append(self.frame("SEND", {**fixed, **headers, **receipt}, body))
            self.write(b"".join(data))
            self.expect("RECEIPT")

    def subscribe(self, queue: str, ack: str) -> None:
        """Makes the queue if it is missing; returns when the broker has the subscription."""
        headers = {"destination": queue, "id": "1", "subscription-type": "ANYCAST", "ack": ack, "receipt": "r"}
        self.write(self.frame("SUBSCRIBE", headers))
        self.expect("RECEIPT")

    def _read(self) -> Iterator[StompFrame]:
        while data := self._socket.recv(1 << 18):
            yield from self._parser.feed(data)


class StompHarness:
    """An Artemis of the embedded kind."""

    settable = frozenset(_HEADERS)
    odd: Mapping[str, str] = {
        "a.b-c": "dots",
        "with space": "x",
        "é名": "ümlaut ☃",
        "colon:name": "a:b",
        "empty": "",
        "lines": "a\nb\r\nc\\d\r",
    }
    delivery_mode = "PERSISTENT"
    kind = "queue"
    largest_bytes = 512 * 1024 * 1024
    most_properties = 300
    unreachable = "Connection refused"

    def __init__(self, artemis: EmbeddedArtemis) -> None:
        self._artemis = artemis

    @property
    def port(self) -> int:
        return urlsplit(self._artemis.stomp_url).port or 0

    def settings(self, queue: str, port: int | None = None) -> Mapping[str, str]:
        return {
            ".type": "stomp",
            ".url": f"stomp://127.0.0.1:{port or self.port}",
            ".destinations": f"queue:{queue}",
            ".heartbeat": "1s",
        }

    def create(self, queue: str) -> None:
        with self.peer() as peer:
            peer.subscribe(queue, "client-individual")

    def send(self, queue: str, messages: Sequence[Outgoing]) -> None:
        with self.peer() as peer:
            peer.send(queue, [(self._headers(message), message.body) for message in messages])

    def waiting(self, queue: str) -> int:
        return int(self.manage(f"queue.{queue}", "messageCount"))

    def kill(self) -> None:
        assert self._artemis.pid is not None
        os.kill(self._artemis.pid, signal.SIGKILL)
        self._artemis.stop()

    def pause(self) -> None:
        """Stops the broker's process: what it is sent from now on stays in the network."""
        assert self._artemis.pid is not None
        pause(self._artemis.pid)

    def start(self) -> None:
        self._artemis.start()

    def peer(self, **connect: str) -> Peer:
        return Peer(self.port, 30, **connect)

    def manage(self, resource: str, attribute: str) -> str:
        """One attribute of a queue or address, as Artemis's management gives it."""
        replies = f"replies-{uuid.uuid4().hex[:8]}"
        with self.peer() as peer:
            peer.subscribe(replies, "auto")
            asked = {"_AMQ_ResourceName": resource, "_AMQ_Attribute": attribute, "reply-to": replies}
            peer.write(peer.frame("SEND", {"destination": "activemq.management", **asked}, b"[]"))
            reply = peer.expect("MESSAGE")
        assert reply.headers["_AMQ_OperationSucceeded"] == "true", reply
        return str(json.loads(reply.body)[0])

    def amqp(self, address: str, messages: Sequence[AmqpMessage]) -> None:
        """Sends by AMQP, whose messages have types."""
        connection = amqp("proton.utils").BlockingConnection(self._artemis.amqp_url)
        try:
            sender = connection.create_sender(address)
            for message in messages:
                sender.send(message)
        finally:
            connection.close()

    @staticmethod
    def _headers(message: Outgoing) -> dict[str, str]:
        headers = {_HEADERS[name]: value for name, value in message.fields.items()} | dict(message.properties)
        if not message.text:
            headers["content-length"] = str(len(message.body))
        return headers
