"""The parser of NATS' protocol: any cut of the stream, what is left to nats-py, and what is not a protocol."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.errors import ProtocolError

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.nats.client import Parser
from engine.connectors.nats.connection import Connection
from routes.config import loads
from tests.waiting import until

HANDLED = 7
Found = tuple[bytes, bytes, bytes, bytes]


class Client:
    """What the parser needs of nats-py's client: it takes down what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def _process_msg(self, number: int, subject: bytes, reply: bytes, body: bytes, headers: bytes | None) -> None:
        self.told.append((number, subject, reply, body, headers))

    async def _process_ping(self) -> None:
        self.told.append("PING")

    async def _process_pong(self) -> None:
        self.told.append("PONG")

    async def _process_err(self, said: str) -> None:
        self.told.append(said)

    async def _process_info(self, info: dict[str, Any]) -> None:
        self.told.append(info)


def parsed(*pieces: bytes) -> tuple[list[Found], list[Any]]:
    """What the handler of subscription 7 had, and what nats-py was told."""
    client, found = Client(), []

    def handler(*message: bytes) -> None:
        found.append(message)

    parser = Parser(client, {HANDLED: handler}, lambda: None)  # type: ignore[arg-type]

    async def feed() -> None:
        for piece in pieces:
            await parser.parse(piece)

    asyncio.run(feed())
    return found, client.told  # type: ignore[return-value]


def line(subject: bytes, reply: bytes, headers: bytes, body: bytes, number: int = HANDLED) -> bytes:
    words = [b"HMSG" if headers else b"MSG", subject, b"%d" % number, reply, b"%d" % len(headers) if headers else b""]
    return b" ".join([*filter(None, words), b"%d" % len(headers + body)]) + b"\r\n" + headers + body + b"\r\n"


WORDS = st.binary(min_size=1, max_size=9).filter(lambda word: not set(word) & set(b" \t\r\n\v\f"))
MESSAGES = st.lists(st.tuples(WORDS, st.one_of(st.just(b""), WORDS), st.binary(max_size=9), st.binary(max_size=40)))


@given(MESSAGES, st.lists(st.integers(0, 400)))
def test_any_cut_of_the_stream_gives_the_same_messages(messages: list[Found], cuts: list[int]) -> None:
    stream = b"PING\r\n".join([b"", *(line(*message) for message in messages)])
    ends = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    found, told = parsed(*(stream[begin:end] for begin, end in pairwise(ends)))

    assert found == messages
    assert told == ["PING"] * len(messages)


def test_what_is_no_message_of_a_handler_is_told_to_nats_py() -> None:
    info = b'INFO {"max_payload":10}\r\n'
    stream = b"+OK\r\nPONG\r\n-ERR 'Slow Consumer'\r\n" + info + line(b"a.b", b"r", b"h", b"x", 1) + b"PING\r\n"

    assert parsed(stream) == (
        [],
        ["PONG", "'slow consumer'", {"max_payload": 10}, (1, b"a.b", b"r", b"x", b"h"), "PING"],
    )


def test_a_large_message_in_many_pieces_is_put_together_once() -> None:
    body = bytes(3_000_000)
    stream = line(b"a", b"", b"", body)

    found, _ = parsed(*(stream[begin : begin + 1000] for begin in range(0, len(stream), 1000)))

    assert found == [(b"a", b"", b"", body)]


@pytest.mark.parametrize(
    "stream",
    [
        b"MSG\r\n",
        b"MSG a 7\r\n",
        b"MSG a 7 r s 1\r\nx\r\n",
        b"MSG a x 1\r\nx\r\n",
        b"MSG a 7 -1\r\n\r\n",
        b"MSG a 7 " + b"9" * 5000 + b"\r\n",
        b"MSG a 7 1\r\nxyz\r\n",
        b"HMSG a 7 1\r\nx\r\n",
        b"HMSG a 7 2 1\r\nx\r\n",
        b"HMSG a 7 -1 1\r\nx\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"x" * 5000 + b"\r\n",
        b"x" * 2_000_000,
    ],
    ids=lambda stream: stream[:16].decode(),
)
def test_what_is_no_protocol_is_reported(stream: bytes) -> None:
    with pytest.raises(ProtocolError):
        parsed(stream)


def test_what_the_server_said_before_is_why_nothing_can_be_written() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    may_end, has_ended = threading.Event(), threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        connection.sendall(b'INFO {"server_id":"x","version":"2.10.0","max_payload":1048576,"headers":true}\r\n')
        while b"PING" not in connection.recv(4096):
            pass
        connection.sendall(b"PONG\r\n")
        may_end.wait(10)
        connection.sendall(b"-ERR 'Maximum Connections Exceeded'\r\n")
        # A reset may overtake what is not sent yet.
        time.sleep(0.2)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        has_ended.set()

    threading.Thread(target=serve, daemon=True).start()
    url = f"nats://127.0.0.1:{listener.getsockname()[1]}"
    own = ("source.s.type=nats", f"source.s.url={url}", "source.s.destinations=a")
    config = loads("\n".join(("bridge.id=b", "routes.a.in.include=TRUE", "routes.a.out.topic=o", *own)))
    connection = Connection(SystemEndpoint.of(config, config.sources[0]))  # type: ignore[arg-type]
    with listener:
        connection.open()
        may_end.set()
        assert has_ended.wait(10)
        connection._opened().send(b"PUB a 1\r\nx\r\n")
        with pytest.raises(NotConnectedError, match=r"^the server says: maximum connections exceeded$"):
            until(lambda: connection.wait(0.1, lambda: False) or connection.check(), 10, "the end is noticed")
    connection.close()
