"""Brokers that send what no broker should: declared sizes, floods of headers, lines without an end."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from nats.errors import ProtocolError

from engine.connectors.nats.client import Parser
from engine.connectors.stomp.frames import StompFrame, StompFrameError, StompFrameParser
from tests.fuzz.targets import Server

BODY_BYTES = 64 * 1024
KEPT_BYTES = 1024
CHUNK = b"x" * 65_536


@contextmanager
def at_most(count: int) -> Iterator[None]:
    """Fails where more memory was used inside."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < count
    finally:
        tracemalloc.stop()


def test_a_stomp_body_that_is_too_large_is_passed_over_in_the_memory_of_its_beginning() -> None:
    parser = StompFrameParser(BODY_BYTES, KEPT_BYTES)
    size = 64 * 1024**2
    with at_most(1_000_000):
        assert list(parser.feed(b"MESSAGE\ncontent-length:%d\n\n" % size)) == []
        for _ in range(size // len(CHUNK)):
            assert list(parser.feed(CHUNK)) == []
        (frame,) = parser.feed(b"\0")
    assert (len(frame.body), frame.size) == (KEPT_BYTES, size)


def fed(*pieces: bytes) -> list[StompFrame]:
    parser = StompFrameParser(BODY_BYTES, KEPT_BYTES)
    return [frame for piece in pieces for frame in parser.feed(piece)]


@pytest.mark.parametrize(
    "piece",
    [b"a:b\n" * 16_384, b"a:" + CHUNK, CHUNK, b"\\n" * 32_768],
    ids=["headers", "a header", "a command", "escapes"],
)
def test_stomp_headers_without_an_end_end_the_connection(piece: bytes) -> None:
    with at_most(16 * 1024 * 1024), pytest.raises(StompFrameError, match="more than 1048576 bytes of headers"):
        fed(b"MESSAGE\n", *[piece] * 100)


def test_stomp_heart_beats_without_a_frame_take_no_memory() -> None:
    with at_most(1_000_000):
        assert fed(*[b"\n" * 65_536] * 200) == []


@pytest.mark.parametrize("length", ["-1", "1e9", "9" * 5000, "0x10", "\u0661", " ", "+5"])
def test_a_stomp_length_that_is_no_number_is_reported(length: str) -> None:
    (frame,) = fed(f"MESSAGE\ncontent-length:{length}\n\nx\0".encode())
    assert frame.body == b"x"
    assert frame.fault is not None
    assert frame.fault.startswith("a content-length that is not a number")
    assert len(frame.fault) < 100


def parse(*pieces: bytes) -> None:
    server: Any = Server()
    parser = Parser(server, {1: lambda *_: None}, lambda: None)
    for piece in pieces:
        try:
            parser.parse(piece).send(None)
        except StopIteration:
            continue


@pytest.mark.parametrize(
    "line",
    [
        b"MSG a 1 2147483648\r\n",
        b"HMSG a 1 10 99999999999\r\n",
        b"MSG a 1 -1\r\n",
        b"HMSG a 1 20 10\r\n",
        b"MSG a 1 " + b"9" * 5000 + b"\r\n",
        b"MSG a\r\n",
        b"MSG " + b"a " * 100 + b"1 2\r\n",
    ],
)
def test_a_nats_line_that_cannot_be_true_ends_the_connection_at_once(line: bytes) -> None:
    with at_most(1_000_000), pytest.raises(ProtocolError):
        parse(line)


def test_a_nats_line_without_an_end_ends_the_connection() -> None:
    with at_most(8 * 1024 * 1024), pytest.raises(ProtocolError):
        parse(*[CHUNK] * 100)


def test_a_nats_message_byte_by_byte_costs_no_more_than_its_bytes() -> None:
    begun = time.process_time()
    data = b"MSG a 1 200000\r\n" + b"x" * 200_000 + b"\r\n"
    parse(*[data[at : at + 1] for at in range(len(data))])
    assert time.process_time() - begun < 20
