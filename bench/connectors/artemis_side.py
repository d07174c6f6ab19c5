"""Queues of an Artemis, asked by its management over STOMP."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from engine.connectors.stomp.frames import StompFrame, StompFrameParser

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Queues"]

_REPLIES = "bench.replies"
_MOST_BYTES = 1 << 20
_ANSWER_SECONDS = 120.0


class Queues:
    """Queues of a broker, over one connection."""

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._socket = socket.create_connection((where.hostname, where.port), _ANSWER_SECONDS)
        self._parser = StompFrameParser(_MOST_BYTES, 1)
        self._frames = self._read()
        self._write("CONNECT", {"accept-version": "1.2", "host": "bench"})
        self._write("SUBSCRIBE", {"destination": _REPLIES, "id": "1", "subscription-type": "ANYCAST", "ack": "auto"})

    def count(self, name: str) -> int:
        """Messages in a queue; 0 if there is none."""
        found = self._ask({"_AMQ_ResourceName": f"queue.{name}", "_AMQ_Attribute": "messageCount"}, [])
        return 0 if found is None else int(found[0])

    def remove(self, name: str) -> None:
        """Removes a queue with its messages, if it exists."""
        self._ask({"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "destroyQueue"}, [name, True])

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def _ask(self, asked: dict[str, str], arguments: list[object]) -> Any:
        headers = {"destination": "activemq.management", **asked, "reply-to": _REPLIES}
        self._write("SEND", headers, json.dumps(arguments).encode())
        while (frame := next(self._frames)).command != "MESSAGE":
            pass
        # What gives nothing back has an empty body.
        return json.loads(frame.body or b"null") if frame.headers["_AMQ_OperationSucceeded"] == "true" else None

    def _write(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        self._socket.sendall(f"{command}\n{lines}\n".encode() + body + b"\0")

    def _read(self) -> Iterator[StompFrame]:
        while data := self._socket.recv(_MOST_BYTES):
            yield from self._parser.feed(data)
