"""Clients of the AMQP listener that want to harm: on real sockets, with what they cost in memory and time."""

from __future__ import annotations

import socket
import time
import tracemalloc
from contextlib import ExitStack, closing, suppress
from typing import Any, Self

import pytest

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import Described, ULong
from engine.connectors.amqp.frames import (
    MAX_FRAME_BYTES,
    PROTOCOL_HEADER,
    SASL_HEADER,
    AmqpFrameError,
    AmqpFrameParser,
    frame,
)
from engine.connectors.amqp.performatives import Code, Role, Terminus, condition_of
from engine.connectors.amqp.server_performatives import RESOURCE_LIMIT
from engine.connectors.amqp_listener.limits import ListenerLimits
from engine.connectors.amqp_listener.server import STOPPING, Server
from engine.embedded import free_ports
from tests.unit.connectors.test_amqp_listener import Client, House, said

LIMITS = ListenerLimits()
QUEUE = Terminus("a", "queue")
ATTACH = said(performatives.attach("l", 0, Role.SENDER, QUEUE.source(), QUEUE.target()))
OPEN = PROTOCOL_HEADER + said(performatives.open_("c", "h", 0, "test")) + said(performatives.begin())


class Listening:
    """A server that is turned by the test."""

    def __init__(self, house: House, host: str = "127.0.0.1") -> None:
        (self.port,) = free_ports(1)
        self.server = Server(f"amqp://{host}:{self.port}", None, house)
        self.server.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.close(STOPPING)

    def connect(self, data: bytes = b"", origin: str = "127.0.0.1") -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.port), 5, (origin, 0))
        client.sendall(data)
        self.turn(2)
        for _ in range(100):
            if not data.endswith(ATTACH) or self._has_answered(client):
                break
            self.turn(1)
        client.setblocking(False)
        return client

    def _has_answered(self, client: socket.socket) -> bool:
        """Whether a client that wants a link has it, or was refused."""
        name = "{}:{}".format(*client.getsockname())
        return all(each.peer.links or each.peer.ended for each in self.server._clients if each.peer.name == name)

    def turn(self, times: int = 5) -> None:
        for _ in range(times):
            self.server.turn(0.01)

    @property
    def clients(self) -> int:
        return len(self.server._clients)


def heard(client: socket.socket) -> bytes | None:
    """What a client has got; None if it is left."""
    try:
        return client.recv(100_000) or None
    except BlockingIOError:
        return b""
    except ConnectionError:
        return None


def limited(**limits: Any) -> House:
    return House(limits=ListenerLimits(**limits))


def test_who_opens_connections_and_says_nothing_keeps_nobody_out() -> None:
    with Listening(limited(clients=20)) as listening, ExitStack() as opened:
        silent = [opened.enter_context(listening.connect(PROTOCOL_HEADER[:5])) for _ in range(50)]
        for _ in range(20):
            client = opened.enter_context(listening.connect(OPEN + ATTACH))
            listening.turn()
            assert PROTOCOL_HEADER in (heard(client) or b"")
        assert listening.clients == 20
        assert heard(silent[0]) is None
        # Those that are in order stay, and the next one is not let in.
        assert heard(opened.enter_context(listening.connect(OPEN))) is None
        assert listening.clients == 20


def test_clients_without_a_link_make_room_for_others_and_are_told() -> None:
    with Listening(limited(clients=20)) as listening, ExitStack() as opened:
        idle = [opened.enter_context(listening.connect(OPEN)) for _ in range(20)]
        heard(idle[0])
        for number in range(20):
            listening.server._clock = lambda number=number: time.monotonic() + number / 100  # type: ignore[misc]
            client = opened.enter_context(listening.connect(OPEN + ATTACH))
            listening.turn()
            assert PROTOCOL_HEADER in (heard(client) or b"")
        assert RESOURCE_LIMIT.encode() in (heard(idle[0]) or b"")
        assert heard(idle[0]) is None
        assert all(client.peer.links for client in listening.server._clients)


def test_an_address_with_many_connections_makes_room_for_another_one() -> None:
    with Listening(limited(clients=20), "0.0.0.0") as listening, ExitStack() as opened:  # noqa: S104
        many = [opened.enter_context(listening.connect(OPEN + ATTACH)) for _ in range(20)]
        others = [opened.enter_context(listening.connect(OPEN + ATTACH, "127.0.0.2")) for _ in range(15)]
        listening.turn()
        # Both have the same then; the last one of the first address came back in vain.
        owners = {name: owner.clients for name, owner in listening.server._owners.items()}
        assert owners == {"127.0.0.1": 10, "127.0.0.2": 10}
        assert sum(bool(heard(each)) and heard(each) is None for each in many) == 10
        assert sum(PROTOCOL_HEADER in (heard(each) or b"") for each in others) == 10


def test_a_frame_byte_by_byte_costs_no_more_than_its_bytes() -> None:
    parser = AmqpFrameParser()
    body = encode(Described(ULong(Code.OPEN), ["x" * 500_000]))
    data = frame(0, body)
    begun = time.process_time()
    found = [each for at in range(len(data)) for each in parser.feed(data[at : at + 1])]
    assert found == [(0, 0, body)]
    # Joined with each byte, it would be 125 GB to copy.
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("size", [2**31 - 1, 2**32 - 1, MAX_FRAME_BYTES + 1])
def test_a_declared_size_takes_no_memory(size: int) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(AmqpFrameError):
            list(AmqpFrameParser().feed(size.to_bytes(4) + b"\2\0\0\0"))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "value",
    [
        b"\xf0" + (9).to_bytes(4) + (2**32 - 1).to_bytes(4) + b"\x40" + b"\0" * 4,
        b"\xd0" + (2**32 - 1).to_bytes(4) + (2**32 - 1).to_bytes(4),
        b"\xb0" + (2**31).to_bytes(4) + b"x",
        b"\xc0\xff\xff" * 1000,
        b"\x00" * 100_000,
        b"\xd0\x00\x0f\xff\xf0\x00\x0f\xff\xec" + b"\x45" * 0xFFFEC,
    ],
    ids=["empty elements", "list", "binary", "nested", "descriptors", "a million empty lists"],
)
def test_values_that_are_more_than_their_bytes_end_the_connection_in_bounded_memory(value: bytes) -> None:
    client = Client(House()).opened()
    hostile = frame(0, b"\0\x53" + bytes((Code.FLOW,)) + value)
    tracemalloc.start()
    try:
        client.peer.feed(hostile, 0.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert client.peer.ended
    # A list in Python takes 56 bytes for the one of AMQP.
    assert peak < 80 * max(len(hostile), 10_000)


def test_one_client_has_a_thousand_links_and_no_more() -> None:
    client = Client(House()).opened()
    taken = refused = 0
    for channel in range(10):
        if channel:
            client.peer.feed(frame(channel, performatives.begin()), 0.0)
            client.say()
        for handle in range(LIMITS.handles):
            wish = performatives.attach(f"{channel}.{handle}", handle, Role.SENDER, QUEUE.source(), QUEUE.target())
            answers = client.say(frame(channel, wish))
            detached = [fields for code, fields in answers if code == Code.DETACH]
            taken += not detached
            if detached:
                refused += 1
                condition = condition_of(detached[0][2])
                assert condition is not None
                assert condition.name == RESOURCE_LIMIT
    assert (taken, refused) == (LIMITS.links, 10 * LIMITS.handles - LIMITS.links)
    assert not client.peer.ended


def test_more_sessions_than_there_are_channels_end_the_connection() -> None:
    client = Client(House()).opened()
    for channel in range(1, 400):
        client.peer.feed(frame(channel, performatives.begin()), 0.0)
    assert client.peer.ended


def test_all_clients_together_hold_no_more_than_there_is_room_for() -> None:
    attach = performatives.attach("l", 0, Role.SENDER, QUEUE.source(), QUEUE.target())
    part = performatives.transfer(0, 0, b"t", 0, more=True) + b"x" * 900
    with Listening(limited(unfinished_bytes_of_all=4000)) as listening, ExitStack() as opened:
        clients = [
            opened.enter_context(closing(listening.connect(OPEN + said(attach) + said(part)))) for _ in range(30)
        ]
        listening.turn(20)
        held = sum(client.peer.held_bytes for client in listening.server._clients)
        assert 3000 < held <= 5000
        assert sum(b"amqp:resource-limit-exceeded" in (heard(client) or b"") for client in clients) >= 20


def test_who_floods_without_a_login_is_left_early() -> None:
    client = Client(House("u", "p"))
    client.peer.feed(SASL_HEADER, 0.0)
    tracemalloc.start()
    try:
        count = 0
        while not client.peer.ended:
            client.peer.feed(b"\0\1\0\0\2\1\0\0" + b"x" * 1000, 0.0)
            count += 1
        assert count <= 70
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_flood_of_flows_that_want_answers_waits_for_who_does_not_read() -> None:
    echo = performatives.performative(Code.FLOW, 0, 1, 0, 1, None, None, None, None, None, True)
    flood = said(echo) * 5000
    unread = 16 * 1024
    with Listening(limited(unread_bytes=unread)) as listening, closing(listening.connect(OPEN)) as client:
        # A small buffer of the system is full early.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        (peer,) = (each.peer for each in listening.server._clients)
        deadline = time.monotonic() + 100
        position = left = 0
        # It sends as much as is taken, and reads nothing.
        while left < 50 and time.monotonic() < deadline:
            with suppress(BlockingIOError):
                position = (position + client.send(flood[position:])) % len(flood)
            listening.turn(1)
            left += len(peer.outgoing) > unread
        assert left == 50
        assert len(peer.outgoing) < unread + 100 * LIMITS.slice_frames


@pytest.mark.parametrize("login", [b"\0u\0", b"\0u\0p\0", b"u\0u", b"", b"\0\0", b"\0u\0P", b"\0U\0p", b"\xff" * 5000])
def test_a_login_that_is_nearly_right_is_refused(login: bytes) -> None:
    client = Client(House("u", "p"))
    client.say(SASL_HEADER)
    client.peer.feed(frame(0, performatives.sasl_init("PLAIN", login, "h"), 1), 0.0)
    assert client.peer.ended
