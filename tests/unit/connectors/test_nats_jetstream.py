"""Which subjects of a stream a source's subjects fit, and what acknowledgement subjects say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from structlog.testing import capture_logs

from engine.connectors.base import NotConnectedError
from engine.connectors.nats.jetstream import (
    ApiError,
    _overlap,
    acknowledged,
    delivery_limit,
    ensure_consumer,
    ensure_stream,
)
from engine.connectors.nats.settings import NatsSourceConfig
from engine.connectors.nats.stream_reader import StreamReader, _lines, _place
from engine.connectors.nats.system import SYSTEM

if TYPE_CHECKING:
    from engine.connectors.nats.connection import Connection

SOURCE = NatsSourceConfig(name="s", type=SYSTEM, destinations=("a",), stream="S")


class Server:
    """A connection to a JetStream server that gives the same reply to each request."""

    url = "nats://server"

    def __init__(self, reply: Any) -> None:
        self._reply = json.dumps(reply)

    def request(self, subject: str, body: bytes) -> bytes:
        return self._reply.encode()

    def fail(self, why: str) -> NotConnectedError:
        return NotConnectedError(why)


def server(reply: Any) -> Connection:
    return cast("Connection", Server(reply))


@pytest.mark.parametrize(
    "error", ["text", None, [], 5, {"code": "x", "err_code": None}, {"code": [], "err_code": True}, {"code": -1}]
)
def test_an_error_of_another_form_gets_default_codes(error: Any) -> None:
    found = ApiError(error)
    assert (found.code, found.err_code) == (500, 0)


@pytest.mark.parametrize("floor", [None, [], "x", {}, {"stream_seq": "x"}, {"stream_seq": None}, {"stream_seq": True}])
def test_a_position_that_is_no_number_is_a_lost_connection(floor: Any) -> None:
    with pytest.raises(NotConnectedError, match="JetStream answers without"):
        acknowledged(server({"ack_floor": floor}), "S", "C")
    assert acknowledged(server({"ack_floor": {"stream_seq": 7}}), "S", "C") == 7


def test_a_consumer_of_another_form_does_not_end_the_source() -> None:
    config = {"subjects": [5, "a"], "ack_policy": "explicit", "durable_name": "b-s", "filter_subjects": [None]}
    numbers = {"ack_wait": "x", "max_batch": [], "max_bytes": -1, "max_expires": None}
    found = ensure_consumer(server({"config": config | numbers}), SOURCE, "b")
    assert (found.ack_wait_seconds, found.max_batch, found.max_bytes, found.max_expires_seconds) == (
        30,
        None,
        None,
        None,
    )
    for reply in ({}, {"config": None}, {"config": []}):
        with pytest.raises(NotConnectedError, match="JetStream answers without an object 'config'"):
            ensure_consumer(server(reply), SOURCE, "b")


@pytest.mark.parametrize(
    ("most", "says"), [(-1, None), (0, None), (1, "a message once at"), (5, "a message 5 times at")]
)
def test_a_consumer_with_a_limit_of_deliveries_is_told_with_the_remedy(most: int, says: str | None) -> None:
    config = {"subjects": ["a"], "ack_policy": "explicit", "durable_name": "b-s", "filter_subject": "a"}
    reply = {"config": config | {"max_deliver": most}}

    limit = delivery_limit(server(reply), SOURCE, "b")
    with capture_logs() as logs:
        ensure_consumer(server(reply), SOURCE, "b")

    told = [each["event"] for each in logs if each["log_level"] == "warning"]
    if says is None:
        assert (limit, told) == (None, [])
    else:
        assert limit is not None
        assert says in limit.found
        assert limit.remedy == "remove the limit: nats consumer edit S b-s --max-deliver=-1"
        assert told == [limit.found]


def test_a_consumer_that_is_not_there_yet_has_no_limit() -> None:
    for code in (10014, 10059):
        assert delivery_limit(server({"error": {"code": 404, "err_code": code}}), SOURCE, "b") is None


def test_a_stream_list_of_another_form_names_no_stream() -> None:
    assert ensure_stream(server({"streams": {"a": 1}, "config": {"name": "S"}}), "S", "a") == "S"


@pytest.mark.parametrize(("pending", "left"), [(b"3", 7), (b"9" * 5000, 0), ("\u0663".encode(), 0), (b"x", 0)])
def test_a_request_that_ends_says_how_much_of_it_is_left(pending: bytes, left: int) -> None:
    stream = StreamReader(server({}), SOURCE, "b")
    stream._asked = 10
    stream._hear(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: " + pending + b"\r\n\r\n")
    assert stream._asked == left


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("a.b", "a", False),
        ("a.*", "a.b", True),
        ("a.*", "a.b.c", False),
        ("a.*.c", "*.b.*", True),
        ("a.*.c", "*.b.d", False),
        ("a.>", "a.b.c", True),
        ("a.>", "a", False),
        (">", "a", True),
        ("*", "a.b", False),
        ("a.>", "*.b", True),
    ],
)
def test_patterns_that_some_subject_fits_both_ways(one: str, other: str, expected: bool) -> None:
    assert _overlap(one.split("."), other.split(".")) is expected
    assert _overlap(other.split("."), one.split(".")) is expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (b"$JS.ACK.S.C.1.17.5.1700000000123456789.9", (b"17", b"1700000000123456789")),
        (b"$JS.ACK.S.C.2.17.6.1700000000123456789.9", (b"17", b"1700000000123456789")),
        (b"$JS.ACK._.HASH.S.C.3.18.5.1700000000123456789.9.rnd", (b"18", b"1700000000123456789")),
        (b"$JS.ACK._.HASH.S.C.1.18.5.1700000000123456789.9", (b"18", b"1700000000123456789")),
        (b"$JS.ACK.S", None),
        (b"$JS.ACK.S.C.1.17", None),
    ],
)
def test_an_acknowledgement_subject_names_its_message(reply: bytes, expected: tuple[bytes, bytes] | None) -> None:
    assert _place(reply) == expected


class Wire(Server):
    """A connection whose lines to the server are kept."""

    def __init__(self) -> None:
        super().__init__({})
        self.put_lines: list[bytes] = []
        self.sent: list[bytes] = []

    def check(self) -> None:
        """Does nothing: the connection works."""

    def put(self, lines: bytes) -> None:
        self.put_lines.append(lines)

    def send(self, lines: bytes) -> None:
        self.sent.append(lines)


def reply(count: int, sequence: int, number: int, at: int = 1700000000123456789) -> bytes:
    """Returns the acknowledgement subject of a delivery; `number` is that of the delivery by the consumer."""
    return b"$JS.ACK.S.C.%d.%d.%d.%d.9" % (count, sequence, number, at)


def taken(stream: StreamReader) -> list[bytes]:
    return [body for _, body in stream._waiting]


@pytest.mark.parametrize("counts", [(2, 1), (1, 2), (1, 1), (2, 2), (3, 1)])
def test_a_message_that_comes_twice_on_a_connection_is_handed_over_once(counts: tuple[int, int]) -> None:
    wire = Wire()
    stream = StreamReader(cast("Connection", wire), SOURCE, "b")
    first, again = reply(counts[0], 17, 5), reply(counts[1], 17, 6)
    stream._take(b"a", first, b"", b"one")
    stream._take(b"a", again, b"", b"one")
    assert taken(stream) == [first]
    stream._waiting.clear()
    stream.acknowledge([first])
    stream._take(b"a", again, b"", b"one")
    assert taken(stream) == []
    assert wire.put_lines == [_lines([again], b"")], "else the server delivers it again after ack_wait"


def test_a_stream_made_anew_uses_its_sequences_for_other_messages() -> None:
    stream = StreamReader(cast("Connection", Wire()), SOURCE, "b")
    old, new = reply(1, 17, 5), reply(1, 17, 1, at=1800000000000000000)
    stream._take(b"a", old, b"", b"one")
    stream.acknowledge([old])
    stream._take(b"a", new, b"", b"other")
    assert taken(stream) == [old, new]


def test_deliveries_without_a_place_are_all_handed_over() -> None:
    stream = StreamReader(cast("Connection", Wire()), SOURCE, "b")
    for body in (b"one", b"two"):
        stream._take(b"a", b"$JS.ACK.other", b"", body)
    assert len(taken(stream)) == 2


def test_answers_to_deliveries_are_lines_of_the_protocol() -> None:
    assert _lines([b"a", b"b"], b"-NAK") == b"PUB a 4\r\n-NAK\r\nPUB b 4\r\n-NAK\r\n"
    assert _lines([b"a"], b"") == b"PUB a 0\r\n\r\n"
    assert _lines([], b"-NAK") == b""
