"""Links of AMQP without a broker: credit, messages in several parts, and a peer that says odd things."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import Array, Described, Symbol, UByte, UInt, ULong, UShort
from engine.connectors.amqp.frames import PROTOCOL_HEADER, SASL, SASL_HEADER, AmqpFrameParser, frame
from engine.connectors.amqp.links import IncomingTransfer, Receiver, Sender
from engine.connectors.amqp.performatives import Code, Terminus, Transfer, symbols
from engine.connectors.amqp.session import AmqpSession
from engine.connectors.amqp.settings import AmqpSourceConfig
from engine.connectors.amqp.system import SYSTEM
from engine.connectors.base import NotConnectedError
from engine.errors import HardFailureError
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Session:
    """What links use of one."""

    channel = 0
    max_frame_bytes = 512
    remote_window = 1000

    def __init__(self, first_delivery: int = 0) -> None:
        self.credits: list[tuple[int, int]] = []
        self._next = first_delivery

    def give_credit(self, link: object, delivery_count: int, credit: int) -> None:
        self.credits.append((delivery_count, credit))

    def next_delivery(self) -> int:
        found, self._next = self._next, performatives.serial(self._next + 1)
        return found

    def sent_transfer(self) -> None:
        self.remote_window -= 1


def terminus(code: int) -> Described:
    return Described(ULong(code), [])


def receiver(own: Session, window: int = 10) -> tuple[Receiver, list[IncomingTransfer]]:
    taken: list[IncomingTransfer] = []
    link = Receiver(
        cast("AmqpSession", own), "r", Terminus("q", "queue"), taken.append, window=window, max_bytes=100, kept_bytes=30
    )
    link.answered(["r", 0, False, 0, 0, terminus(0x28), terminus(0x29), None, None, UInt(2**32 - 2)])
    return link, taken


def part(payload: bytes, delivery_id: int | None = None, *, more: bool = False, aborted: bool = False) -> Transfer:
    return Transfer(0, delivery_id, 0, settled=False, more=more, aborted=aborted, payload=payload)


def test_credit_is_given_as_messages_are_taken_and_not_before() -> None:
    own = Session()
    link, taken = receiver(own)
    for number in range(10):
        link.transferred(part(b"x", number))
    assert own.credits == [(2**32 - 2, 10)]
    for _ in range(4):
        link.taken()
    assert len(own.credits) == 1
    link.taken()
    assert own.credits[1:] == [(8, 5)]
    assert len(taken) == 10


def test_a_message_comes_in_parts_and_one_too_large_is_kept_only_in_part() -> None:
    link, taken = receiver(Session())
    for payload in (b"a" * 50, b"b" * 50):
        link.transferred(part(payload, 7, more=payload.startswith(b"a")))
    for number in range(5):
        link.transferred(part(bytes((number,)) * 40, 8 if number == 0 else None, more=number < 4))
    link.transferred(part(b"c" * 101, 9))
    assert [(each.delivery_id, each.size) for each in taken] == [(7, 100), (8, 200), (9, 101)]
    assert taken[0].encoded == b"a" * 50 + b"b" * 50
    assert taken[1].encoded == b"\0" * 30
    assert taken[2].encoded == b"c" * 30


def test_a_message_that_its_sender_gives_up_is_none() -> None:
    link, taken = receiver(Session())
    link.transferred(part(b"a", 7, more=True))
    link.transferred(part(b"", aborted=True))
    link.transferred(part(b"b", 8))
    assert [each.encoded for each in taken] == [b"b"]


def sender(own: Session, *, most: int | None = None) -> Sender:
    link = Sender(cast("AmqpSession", own), "s", Terminus("q", "queue"))
    limit = None if most is None else ULong(most)
    link.answered(["s", 0, True, 0, 0, terminus(0x28), terminus(0x29), None, None, None, limit])
    return link


def flow(credit: int, count: int = 0, *, drain: bool = False) -> list[Any]:
    return [0, 1000, 0, 1000, 0, count, credit, None, drain]


def transfers(frames: Sequence[bytes]) -> list[Transfer]:
    return [performatives.read_transfer(body) for _, _, body in AmqpFrameParser().feed(b"".join(frames))]


def test_no_more_goes_out_than_there_is_credit_for() -> None:
    link, under_way = sender(Session(2**32 - 1)), {}
    for number in range(5):
        link.add(number, b"x", 3)
    assert link.frames(under_way) == []
    link.flowed(flow(2))
    found = transfers(link.frames(under_way))
    assert [each.delivery_id for each in found] == [2**32 - 1, 0]
    assert [each.message_format for each in found] == [3, 3]
    assert under_way == {2**32 - 1: 0, 0: 1}
    # Given when the broker had one of them.
    link.flowed(flow(3, 1))
    assert len(link.frames(under_way)) == 2
    assert link.unsent == [4]


def test_a_large_message_goes_in_frames_that_the_broker_takes_as_its_window_allows() -> None:
    own = Session()
    own.remote_window = 2
    link, under_way = sender(own), {}
    body = bytes(range(250)) * 8
    link.add(1, body, 0)
    link.flowed(flow(1))
    frames = link.frames(under_way)
    assert len(frames) == 2
    assert max(map(len, frames)) <= 512
    assert link.unsent == [1]
    own.remote_window = 100
    frames += link.frames(under_way)
    found = transfers(frames)
    assert b"".join(each.payload for each in found) == body
    assert [each.more for each in found] == [*[True] * (len(found) - 1), False]
    assert link.unsent == []


def test_a_message_larger_than_the_broker_takes_is_told_and_others_go() -> None:
    link, under_way = sender(Session(), most=10), {}
    link.add(1, b"x" * 11, 0)
    link.add(2, b"x" * 10, 0)
    link.flowed(flow(5))
    assert len(link.frames(under_way)) == 1
    assert link.too_large() == [1]
    assert link.too_large() == []


def test_credit_goes_back_where_the_broker_wants_it() -> None:
    own = Session()
    link = sender(own)
    link.flowed(flow(7, drain=True))
    assert own.credits == [(7, 0)]


def performative(code: int, *fields: object) -> bytes:
    return encode(Described(ULong(code), list(fields)))


MECHANISMS = frame(0, performative(Code.SASL_MECHANISMS, Array(0xA3, (Symbol("ANONYMOUS"), Symbol("PLAIN")))), SASL)
WELCOME = frame(0, performative(Code.SASL_OUTCOME, UByte(0)), SASL)
OPEN = frame(0, performative(Code.OPEN, "broker", None, UInt(65536)))
BEGIN = frame(0, performative(Code.BEGIN, UShort(0), UInt(0), UInt(100), UInt(100)))
LOGIN = SASL_HEADER + MECHANISMS + WELCOME + PROTOCOL_HEADER
Script = bytes


@pytest.fixture
def broker() -> Iterator[Callable[..., AmqpSession]]:
    """A broker that says what it has to say, whatever it hears; and a session for it."""
    listeners: list[socket.socket] = []

    def make(script: Script, *, sole: bool = False) -> AmqpSession:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.sendall(script)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass

        threading.Thread(target=serve, daemon=True).start()
        url = f"amqp://127.0.0.1:{listener.getsockname()[1]}"
        own = AmqpSourceConfig(name="s", type=SYSTEM, destinations=("queue:q",))
        return AmqpSession(own, "source 's'", url, "me", sole=sole)

    yield make
    for each in listeners:
        each.close()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (b"", "the broker has closed the connection"),
        (b"HTTP/1.1 400 Bad Request\r\n", "in place of an AMQP header; is this its AMQP port?"),
        (PROTOCOL_HEADER, "the broker speaks no login here"),
        (SASL_HEADER + b"\0\0\0\x04\0\0\0\0", "the broker sent bytes that are not AMQP: a frame of"),
        (SASL_HEADER + frame(0, b"\xff\xff", SASL), "the broker sent bytes that are not AMQP: "),
        (SASL_HEADER + frame(0, performative(0x40, Symbol("GSSAPI")), SASL), "offers no login without a user name"),
        (SASL_HEADER + MECHANISMS + frame(0, performative(0x44, UByte(1)), SASL), "refuses a login without a user"),
        (LOGIN + OPEN + frame(0, performative(Code.CLOSE)), "the broker has closed the connection"),
        (
            LOGIN + frame(0, performative(0x18, Described(ULong(0x1D), [Symbol("amqp:not-allowed"), "not\nyou"]))),
            "the broker says: not you (amqp:not-allowed)",
        ),
        (LOGIN + frame(0, performative(Code.OPEN, "b", None, "large")), "field 2 of a performative is not a number"),
    ],
)
def test_what_goes_wrong_with_a_connection_is_told_in_one_line(
    broker: Callable[[Script], AmqpSession], script: Script, says: str
) -> None:
    connection = broker(script)
    with pytest.raises(NotConnectedError) as raised:
        connection.open()
    connection.close()
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_broker_that_admits_second_connections_is_refused_where_there_may_be_only_one(
    broker: Callable[..., AmqpSession],
) -> None:
    connection = broker(LOGIN + OPEN + BEGIN, sole=True)
    with pytest.raises(HardFailureError, match=r"source 's': .* does not support sole-connection"):
        connection.open()


def test_a_second_connection_is_tried_again_until_the_first_is_closed(broker: Callable[..., AmqpSession]) -> None:
    offers = performative(Code.OPEN, "b", None, *(None,) * 5, symbols(["sole-connection-for-container"]))
    in_use = performative(Code.CLOSE, Described(ULong(0x1D), [Symbol("amqp:invalid-field"), "container-id"]))
    connection = broker(LOGIN + frame(0, offers) + frame(0, in_use), sole=True)
    with pytest.raises(NotConnectedError, match=r"another connection of 'me' is open, .*\(sole-connection\)") as raised:
        connection.open()
    assert raised.value.back_off_seconds == 2


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (frame(0, performative(Code.END)), "the broker has ended the session"),
        (frame(0, b"\0\x53\x14\xc0"), "the broker sent bytes that are not AMQP: a transfer that is cut off"),
        (frame(0, b"\0\x54\x14\xc0\x03\x01\x52\x05"), "a transfer whose descriptor is neither a ulong nor a symbol"),
        (frame(0, performative(Code.FLOW, "x")), "is not a number"),
        (frame(0, performative(Code.ATTACH, "who", UInt(0), True)), "attaches a link that the bridge did not request"),
        (frame(0, performative(0x99)) + frame(9, performative(Code.DETACH, UInt(7))), "has closed the connection"),
    ],
)
def test_what_goes_wrong_later_is_told_as_well(broker: Callable[[Script], AmqpSession], said: bytes, says: str) -> None:
    connection = broker(LOGIN + OPEN + BEGIN + said)

    def listen() -> None:
        connection.open()
        while True:
            connection.pump(5)

    with pytest.raises(NotConnectedError) as raised:
        listen()
    connection.close()
    assert says in str(raised.value)


def test_what_the_broker_said_before_is_why_nothing_can_be_written() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    closed = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        connection.sendall(LOGIN + OPEN + BEGIN)
        # The client's own begin.
        while b"\0\x53\x11" not in connection.recv(4096):
            pass
        error = Described(ULong(0x1D), [Symbol("amqp:resource-limit-exceeded"), "too many"])
        disposition = performative(Code.DISPOSITION, True, UInt(0), UInt(0), True, Described(ULong(0x24), []))
        connection.sendall(frame(0, disposition) + frame(0, performative(Code.CLOSE, error)))
        # A reset may overtake what is not sent yet.
        time.sleep(0.2)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        closed.set()

    threading.Thread(target=serve, daemon=True).start()
    own = AmqpSourceConfig(name="s", type=SYSTEM, destinations=("queue:q",))
    connected = AmqpSession(own, "source 's'", f"amqp://127.0.0.1:{listener.getsockname()[1]}", "me")
    told: list[Sequence[Any]] = []
    connected.on_disposition = told.append
    with listener:
        connected.open()
        assert closed.wait(10)
        with pytest.raises(NotConnectedError, match=r"^the broker says: too many \(amqp:resource-limit-exceeded\)$"):
            until(lambda: connected.send(b"x") is not None, 10, "the write fails")
    assert len(told) == 1


def test_the_broker_says_what_it_takes(broker: Callable[[Script], AmqpSession]) -> None:
    connected = broker(LOGIN + OPEN + BEGIN)
    connected.open()
    assert (connected.max_frame_bytes, connected.remote_window, connected.product.key) == (65536, 100, "")
    connected.close()
