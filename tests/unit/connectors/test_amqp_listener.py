"""The listener's side of AMQP without a socket: logins, sessions, links and credit, and clients that say odd things."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import Described, Symbol, UInt, ULong
from engine.connectors.amqp.frames import PROTOCOL_HEADER, SASL, SASL_HEADER, frame
from engine.connectors.amqp.links import Receiver
from engine.connectors.amqp.performatives import Code, Condition, Role, Terminus, condition_of, field
from engine.connectors.amqp_listener.session import WINDOW
from tests.unit.connectors.amqp_listener_house import Client, House, attach, init, message, said


@pytest.mark.parametrize(
    ("mechanism", "response", "code"),
    [
        ("PLAIN", b"\0bridge\0s:3\xc3\xa9", 0),
        ("PLAIN", b"somebody\0bridge\0s:3\xc3\xa9", 0),
        ("PLAIN", b"\0bridge\0wrong", 1),
        ("PLAIN", b"\0bridge", 1),
        ("PLAIN", b"\0bridge\0s:3\xc3\xa9\0", 1),
        ("PLAIN", b"", 1),
        ("ANONYMOUS", b"", 1),
        ("EXTERNAL", b"", 1),
    ],
)
def test_a_login_is_the_one_of_the_configuration(mechanism: str, response: bytes, code: int) -> None:
    client = Client(House("bridge", "s:3é"))
    assert client.say(SASL_HEADER) == [(Code.SASL_MECHANISMS, [client_symbols("PLAIN")])]
    assert client.say(init(mechanism, response)) == [(Code.SASL_OUTCOME, [code])]
    assert client.peer.ended is bool(code)


def client_symbols(*names: str) -> Any:
    return performatives.read(encode(Described(ULong(0), [performatives.symbols(names)])))[1][0]


def test_without_a_login_a_client_is_told_to_log_in_where_one_is_wanted() -> None:
    client = Client(House("bridge", "x"))
    assert client.say(PROTOCOL_HEADER) == []
    assert client.headers == [SASL_HEADER]
    assert client.peer.ended


def test_a_login_may_have_a_symbol_as_its_descriptor() -> None:
    client = Client(House())
    client.say(SASL_HEADER)
    login = encode(Described(Symbol("amqp:sasl-init:list"), [Symbol("ANONYMOUS"), b"me", "h"]))
    assert client.say(said(login, kind=SASL)) == [(Code.SASL_OUTCOME, [0])]


def test_an_anonymous_client_comes_in_with_sasl_and_without() -> None:
    client = Client(House())
    client.say(SASL_HEADER)
    assert client.say(init("ANONYMOUS", b"me")) == [(Code.SASL_OUTCOME, [0])]
    client.opened()
    Client(House()).opened()


def test_a_link_gets_credit_and_what_comes_by_it_is_handed_over() -> None:
    house = House()
    client = Client(house).opened()
    (attached, fields), (flow, credit) = client.sending()
    assert (attached, fields[2], fields[10]) == (Code.ATTACH, True, 1000)
    assert (flow, credit[4:7]) == (Code.FLOW, [0, 0, WINDOW])

    client.say(message(0, b"ab", more=True), message(0, b"cd"), message(1))
    assert [(each.delivery_id, each.encoded, each.settled) for each in house.taken] == [
        (0, b"abcd", False),
        (1, b"x", False),
    ]


@pytest.mark.parametrize("descriptor", [b"\x80" + bytes(7) + b"\x14", b"\xa3\x12amqp:transfer:list"])
def test_a_message_is_taken_in_any_form_of_its_descriptor(descriptor: bytes) -> None:
    house = House()
    client = Client(house).opened()
    client.sending()
    written = performatives.transfer(0, 0, b"t", 0, more=False).replace(b"\x53\x14", descriptor, 1)
    assert client.say(said(written + b"ab")) == []
    assert [each.encoded for each in house.taken] == [b"ab"]


def test_credit_comes_back_as_messages_are_taken() -> None:
    house = House()
    client = Client(house).opened()
    client.sending()
    assert client.say(*(message(number) for number in range(WINDOW))) == []
    for each in house.taken[: WINDOW // 2]:
        each.receiver.taken()
    ((code, fields),) = client.say()
    assert (code, fields[5], fields[6]) == (Code.FLOW, WINDOW, WINDOW // 2)


def test_more_than_there_was_credit_for_ends_the_link() -> None:
    client = Client(House()).opened()
    client.sending()
    ((code, fields),) = client.say(*(message(number) for number in range(WINDOW + 2)))
    assert (code, condition_of(fields[2])) == (
        Code.DETACH,
        Condition("amqp:link:transfer-limit-exceeded", "more messages than there was credit for"),
    )
    assert client.say(said(performatives.detach(0, closed=True))) == []
    assert len(client.sending()) == 2


def test_of_a_message_that_is_too_large_only_the_size_is_kept() -> None:
    house = House()
    client = Client(house).opened()
    client.sending()
    client.say(message(0, b"a" * 600, more=True), message(0, b"b" * 600))
    assert [(each.encoded, each.size) for each in house.taken] == [(b"", 1200)]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (Terminus("b", "queue").target(), "amqp:not-found"),
        (Terminus("a", "topic").target(), "amqp:not-found"),
        (Described(ULong(0x29), [None, UInt(0), None, UInt(0), True]), "amqp:not-implemented"),
        (None, "amqp:not-implemented"),
    ],
)
def test_a_link_that_may_not_be_is_refused_alone(target: Described | None, name: str) -> None:
    house = House()
    client = Client(house).opened()
    (attached, fields), (detached, why) = client.say(said(attach(target)))
    condition = condition_of(why[2])
    assert (attached, field(fields, 6), detached) == (Code.ATTACH, None, Code.DETACH)
    assert condition is not None
    assert condition.name == name
    client.say(said(performatives.detach(0, closed=True)))
    assert len(client.sending()) == 2
    assert not client.peer.ended


def test_a_link_without_an_address_is_for_messages_that_say_theirs() -> None:
    client = Client(House()).opened()
    (attached, fields), _ = client.say(said(attach(Described(ULong(0x29), []))))
    assert (attached, fields[6].value) == (Code.ATTACH, [])


def test_links_end_with_their_session_and_with_the_connection() -> None:
    house = House()
    client = Client(house).opened()
    client.sending()
    assert [code for code, _ in client.say(said(performatives.end()))] == [Code.END]
    assert [link.attached for link in house.gone] == [False]

    client.say(said(performatives.begin()))
    client.sending()
    assert [code for code, _ in client.say(said(performatives.close()))] == [Code.CLOSE]
    assert len(house.gone) == 2
    assert client.peer.ended


def test_sessions_of_one_connection_do_not_mix() -> None:
    house = House()
    client = Client(house).opened()
    client.sending()
    client.say(said(performatives.begin(), 7), said(attach(Terminus("a", "queue").target()), 7))
    client.say(message(0), said(performatives.transfer(0, 0, b"t", 0, more=False) + b"y", 7))
    assert [(each.receiver.session.channel, each.encoded) for each in house.taken] == [(0, b"x"), (7, b"y")]


def test_a_flow_that_asks_is_answered() -> None:
    client = Client(House()).opened()
    echo = encode(Described(ULong(Code.FLOW), [UInt(0), UInt(5), UInt(0), UInt(5), *[None] * 5, True]))
    assert [code for code, _ in client.say(said(echo))] == [Code.FLOW]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", None),
        (said(performatives.begin()), None),
        (PROTOCOL_HEADER + said(performatives.begin()), None),
        (PROTOCOL_HEADER + b"\xff" * 8, None),
        (PROTOCOL_HEADER + said(b"\0\x53\x10\xc0\x02\x01"), None),
    ],
)
def test_who_does_not_speak_amqp_is_left(data: bytes, name: str | None) -> None:
    client = Client(House())
    client.say(data)
    assert client.peer.ended


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (message(0), "amqp:session:unattached-handle"),
        (said(performatives.detach(3, closed=True)), "amqp:session:unattached-handle"),
        (said(performatives.flow(0, 0, 3, 0, 1)), "amqp:session:unattached-handle"),
        (said(performatives.open_("c", "h", 0, "x")), "amqp:illegal-state"),
        (said(performatives.begin(), 300), "amqp:illegal-state"),
        (said(attach(Terminus("a", "queue").target(), 300)), "amqp:invalid-field"),
        (said(b"\0\x53\x12\x45"), "amqp:invalid-field"),
        (said(b"x"), "amqp:decode-error"),
        (said(b"", kind=SASL) + said(performatives.begin(), 1, SASL), "amqp:connection:framing-error"),
        (b"\0\0\0\x01\2\0\0\0", "amqp:connection:framing-error"),
    ],
)
def test_what_the_specification_does_not_allow_ends_the_connection_with_why(data: bytes, name: str) -> None:
    client = Client(House()).opened()
    code, fields = client.say(data)[-1]
    condition = condition_of(field(fields, 0))
    assert code == Code.CLOSE
    assert condition is not None
    assert condition.name == name
    assert client.peer.ended


def test_messages_that_never_end_are_bounded() -> None:
    house = House()
    house.max_bytes = 2**40
    client = Client(house).opened()
    client.sending()
    house.max_bytes = 0
    client.say(message(0, more=True))
    for _ in range(20):
        if client.peer.ended:
            break
        client.peer.feed(message(0, b"x" * 1_000_000, more=True), 0.0)
    assert client.peer.ended


def test_a_client_hears_heart_beats_and_one_that_is_silent_is_left() -> None:
    client = Client(House())
    opened = encode(Described(ULong(Code.OPEN), ["c", "h", None, None, UInt(4000)]))
    client.say(PROTOCOL_HEADER, said(opened))
    client.peer.tick(1.9)
    assert not client.peer.outgoing
    client.peer.tick(2.1)
    assert client.peer.outgoing == b"\x00\x00\x00\x08\x02\x00\x00\x00"
    client.peer.sent(8, 2.1)
    client.peer.feed(b"\x00\x00\x00\x08\x02\x00\x00\x00", 25.0)
    client.peer.tick(31.0)
    assert not client.peer.ended
    client.peer.tick(56.0)
    assert client.peer.ended


def test_who_connects_and_says_nothing_is_left() -> None:
    client = Client(House())
    client.peer.tick(14.0)
    assert not client.peer.ended
    client.peer.tick(16.0)
    assert client.peer.ended


@given(st.binary(max_size=300), st.sampled_from(["", "sasl", "amqp", "opened", "attached"]), st.integers(1, 9))
def test_no_bytes_do_more_than_end_the_connection(data: bytes, after: str, step: int) -> None:
    client = begun(after)
    for at in range(0, len(data), step):
        client.peer.feed(data[at : at + step], 0.0)
    client.peer.tick(1000.0)
    assert client.peer.ended


bodies = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**32 - 1).map(UInt) | st.binary(max_size=5) | st.text(max_size=5)
    | st.integers(-(2**63), 2**63 - 1) | st.sampled_from(["a", "queue", "topic"]).map(Symbol),
    lambda inner: st.lists(inner, max_size=8)
    | st.builds(Described, st.sampled_from([0x1D, 0x24, 0x28, 0x29, 0x30]).map(ULong), st.lists(inner, max_size=8)),
    max_leaves=12,
)  # fmt: skip


# Each example takes long to make; `make fuzz` feeds as many as it has time for.
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(list(Code)), st.lists(bodies, max_size=12), st.binary(max_size=9)),
        max_size=6,
    )
)
def test_no_performatives_do_more_than_end_the_connection(said_: list[tuple[int, Code, list[Any], bytes]]) -> None:
    client = begun("attached")
    for channel, code, fields, payload in said_:
        client.peer.feed(frame(channel, encode(Described(ULong(code), fields)) + payload), 0.0)
    client.peer.tick(1000.0)
    assert client.peer.ended


def begun(stage: str) -> Client:
    client = Client(House("u", "p") if stage == "sasl" else House())
    if stage == "sasl":
        client.say(SASL_HEADER)
    elif stage == "amqp":
        client.say(PROTOCOL_HEADER)
    elif stage:
        client.opened()
    if stage == "attached":
        client.sending()
    return client


def test_only_links_by_which_messages_come_are_receivers() -> None:
    client = Client(House()).opened()
    client.sending()
    assert [type(link) for link in client.peer.sessions[0].links.values()] == [Receiver]
    source = Terminus("a", "queue").source()
    receiving = performatives.attach("r", 1, Role.RECEIVER, source, Terminus("x", "queue").target())
    (_, fields), (code, why) = client.say(said(receiving))
    assert (field(fields, 5), code, condition_of(why[2])) == (
        None,
        Code.DETACH,
        Condition("amqp:not-allowed", "queue:a"),
    )
