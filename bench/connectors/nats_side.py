"""The NATS side of a benchmark of connectors: it costs as little as possible, so as not to be what is measured.

Messages without a stream are written and counted on plain sockets; streams are asked through nats-py.
"""

from __future__ import annotations

import asyncio
import socket
from threading import Thread
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import nats

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nats.js import JetStreamContext

__all__ = ["Counter", "Publisher", "Streams", "line"]

T = TypeVar("T")

_CONNECT = b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\n'
_MESSAGE = b"\r\nHMSG "
_CHUNK_BYTES = 1 << 20
_ANSWER_SECONDS = 30.0
_AT_ONCE = 1000


def line(subject: str, headers: dict[str, str], body: bytes, reply: str = "") -> bytes:
    """The protocol line that publishes a message."""
    block = "".join(["NATS/1.0\r\n", *(f"{name}: {value}\r\n" for name, value in headers.items()), "\r\n"]).encode()
    return f"HPUB {subject} {reply} {len(block)} {len(block) + len(body)}\r\n".encode() + block + body + b"\r\n"


class Publisher:
    """Writes protocol lines."""

    def __init__(self, url: str) -> None:
        self._socket = _connected(url)
        # The server reports that there is no subscriber.
        self._socket.sendall(b"SUB bench.replies 1\r\n")
        self.publish(b"")

    def heard(self, subject: str, headers: dict[str, str], body: bytes) -> bool:
        """Publishes a message if there is a subscriber; returns True if there is one."""
        return b" 503" not in self.publish(line(subject, headers, body, "bench.replies"))

    def publish(self, lines: bytes) -> bytes:
        """Returns when the server has dealt with them, with all that it had to say."""
        self._socket.sendall(lines + b"PING\r\n")
        said = b""
        while b"PONG\r\n" not in said:
            data = self._socket.recv(_CHUNK_BYTES)
            if not data:
                msg = f"the NATS server has hung up: {said[-200:]!r}"
                raise RuntimeError(msg)
            said += data
            if b"PING\r\n" in data:
                self._socket.sendall(b"PONG\r\n")
        return said

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()


class Counter:
    """A subscriber that does nothing but count, on a thread of its own."""

    def __init__(self, url: str, subject: str) -> None:
        self.count = 0
        self._socket = _connected(url)
        self._socket.sendall(f"SUB {subject} 1\r\nPING\r\n".encode())
        self._thread = Thread(target=self._read, name="counter", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the connection and the thread."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _read(self) -> None:
        self._socket.settimeout(None)
        rest = b""
        while data := self._socket.recv(_CHUNK_BYTES):
            data = rest + data
            self.count += data.count(_MESSAGE)
            # What may be the beginning of a message's line is looked at again.
            rest = data[1 - len(_MESSAGE) :]
            if b"PING\r\n" in data:
                self._socket.sendall(b"PONG\r\n")


class Streams:
    """JetStream, from code that waits."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._client = self._runner.run(nats.connect(url))

    def do(self, work: Callable[[JetStreamContext], Awaitable[T]]) -> T:
        """Does something with JetStream."""

        async def run() -> T:
            return await work(self._client.jetstream())

        return self._runner.run(run())

    def make(self, name: str) -> None:
        """A stream of its own subject, on disk; one of that name goes."""
        self.remove(name)
        self.do(lambda stream: stream.add_stream(name=name, subjects=[name]))

    def remove(self, name: str) -> None:
        """Removes a stream, if it exists."""

        async def remove(stream: JetStreamContext) -> None:
            if name in [info.config.name for info in await stream.streams_info()]:
                await stream.delete_stream(name)

        self.do(remove)

    def fill(self, name: str, headers: Callable[[int], dict[str, str]], body: bytes, messages: int) -> None:
        """Publishes `messages` messages into a stream."""

        async def fill(stream: JetStreamContext) -> None:
            for begin in range(0, messages, _AT_ONCE):
                part = range(begin, min(begin + _AT_ONCE, messages))
                sent = [await stream.publish_async(name, body, headers=headers(number)) for number in part]
                await asyncio.gather(*sent)

        self.do(fill)

    def count(self, name: str) -> int:
        """Messages in a stream."""
        return self.do(lambda stream: stream.stream_info(name)).state.messages

    def left(self, name: str, consumer: str) -> int:
        """Messages of a stream that a consumer has not acknowledged."""
        info = self.do(lambda stream: stream.consumer_info(name, consumer))
        return (info.num_pending or 0) + (info.num_ack_pending or 0)

    def close(self) -> None:
        """Ends the connection."""
        self._runner.run(self._client.close())
        self._runner.close()


def _connected(url: str) -> socket.socket:
    where = urlsplit(url)
    connected = socket.create_connection((where.hostname, where.port), _ANSWER_SECONDS)
    connected.sendall(_CONNECT)
    return connected
