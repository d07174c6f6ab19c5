"""NATS messages as JMS messages and back: headers, frames, and what must never get through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.base import RefusedError
from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from engine.connectors.nats.headers import pack, parse
from engine.connectors.nats.message import FrameFault, IncomingMessage, Stored, stored, to_message, to_wire
from engine.connectors.nats.settings import WireFormat
from engine.message import BodyType, Message
from routes.properties import HEADER_FIELDS, JmsType, Property

FRESH = "ID:fresh:1"
NOW = 1_795_000_000_000
OWN = ("JMSDestination", "JMSReplyTo", "JMSRedelivered", "JMSXDeliveryCount")
FACTS = Stored("ORDERS", "17", 1, 1_700_000_000_123)

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1, max_size=20)
TEXTS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=50)
PROPERTIES = st.dictionaries(
    NAMES.filter(lambda name: name not in HEADER_FIELDS and not name.lower().startswith(("nats-", "jms"))),
    st.builds(Property, TEXTS, st.sampled_from([None, *JmsType])),
    max_size=5,
)
BODIES = st.one_of(
    st.builds(lambda text: (text.encode(), BodyType.TEXT), st.text(st.characters(exclude_categories=["Cs"]))),
    st.tuples(st.binary(), st.sampled_from([kind for kind in BodyType if kind is not BodyType.TEXT])),
)


def taken(
    body: bytes = b"hello",
    headers: list[tuple[str, str]] | None = None,
    wire: WireFormat = WireFormat.AUTO,
    facts: Stored | None = None,
    reply: str = "",
) -> tuple[Message, FrameFault | None]:
    incoming = IncomingMessage("orders.eu", reply, pack(headers or []), body)
    return to_message(incoming, facts, wire, "src", lambda: (FRESH, NOW))


def message(*args: object, **named: object) -> Message:
    found, fault = taken(*args, **named)  # type: ignore[arg-type]
    assert fault is None
    return found


def sent(original: Message, wire: WireFormat = WireFormat.HEADERS, identity: str = "id-1") -> IncomingMessage:
    block, payload = to_wire(original, wire, identity)
    return IncomingMessage("orders.eu", "", block, payload)


# What comes in


def test_a_message_without_anything_has_what_every_message_has() -> None:
    assert message() == Message(
        b"hello",
        BodyType.TEXT,
        {
            "JMSDestination": "topic:orders.eu",
            "JMSRedelivered": "false",
            "JMSMessageID": FRESH,
            "JMSTimestamp": str(NOW),
        },
        {},
        "src",
    )


def test_one_of_a_stream_has_its_place_and_its_time() -> None:
    assert dict(message(facts=replace_facts(deliveries=3), reply="$JS.ACK.x").headers) == {
        "JMSDestination": "topic:orders.eu",
        "JMSRedelivered": "true",
        "JMSXDeliveryCount": "3",
        "JMSMessageID": "ID:ORDERS:17",
        "JMSTimestamp": "1700000000123",
    }


def replace_facts(deliveries: int) -> Stored:
    return FACTS._replace(deliveries=deliveries)


def test_the_reply_subject_of_a_request_is_where_replies_go() -> None:
    headers = [("JMSReplyTo", "queue:elsewhere")]
    assert message(headers=headers, reply="_INBOX.a").headers["JMSReplyTo"] == "topic:_INBOX.a"
    assert message(headers=headers).headers["JMSReplyTo"] == "queue:elsewhere"
    assert "JMSReplyTo" not in message(facts=FACTS, reply="$JS.ACK.x").headers


def test_headers_are_fields_properties_or_nothing() -> None:
    found = message(
        headers=[
            ("JMSCorrelationID", "c1"),
            ("JMSPriority", "7"),
            ("JMSDestination", "queue:forged"),
            ("region", "emea"),
            ("n", "42"),
            ("Nats-Msg-Id", "m1"),
            ("Nats-Rollup", "all"),
            ("jmsbridge.types", "n=int,missing=long"),
            ("jmsbridge.source", "forged"),
            ("jmsbridge.origin", "b1"),
            ("jmsbridge.origin", "b2"),
            ("JMS_JmsBridge_ReplySink", "forged"),
            ("JMS_JmsBridge_ReplyTo", "forged"),
        ]
    )
    assert found.headers["JMSCorrelationID"] == "c1"
    assert found.headers["JMSPriority"] == "7"
    assert found.headers["JMSDestination"] == "topic:orders.eu"
    assert found.headers["JMSMessageID"] == "ID:m1"
    assert found.properties == {"region": Property("emea"), "n": Property("42", JmsType.INT)}
    assert found.source == "src"
    assert found.origins == ("b1", "b2")


def test_the_first_of_repeated_headers_wins() -> None:
    found = message(headers=[("a", "1"), ("a", "2"), ("JMSType", "x"), ("JMSType", "y"), ("Nats-Msg-Id", "1")])
    assert found.properties == {"a": Property("1")}
    assert found.headers["JMSType"] == "x"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([("JMSMessageID", "ID:own"), ("Nats-Msg-Id", "m")], "ID:own"),
        ([("Nats-Msg-Id", "m")], "ID:m"),
        ([("Nats-Msg-Id", "ID:m")], "ID:m"),
        ([("Nats-Msg-Id", "m"), ("Nats-Msg-Id", "n")], "ID:m"),
        ([("Nats-Msg-Id", "")], "ID:ORDERS:17"),
        ([], "ID:ORDERS:17"),
    ],
)
@pytest.mark.parametrize("wire", [WireFormat.HEADERS, WireFormat.AUTO])
def test_the_message_id_is_the_senders_if_it_gave_one(
    headers: list[tuple[str, str]], expected: str, wire: WireFormat
) -> None:
    assert message(headers=headers, facts=FACTS, wire=wire).headers["JMSMessageID"] == expected


@pytest.mark.parametrize(
    ("body", "declared", "expected"),
    [
        (b"text", None, BodyType.TEXT),
        (b"text", "bytes", BodyType.BYTES),
        (b"text", "map", BodyType.MAP),
        (b"text", "text", BodyType.TEXT),
        (b"text", "nonsense", BodyType.TEXT),
        (b"\xff", "text", BodyType.BYTES),
        (b"\xff", None, BodyType.BYTES),
        (b"", None, BodyType.TEXT),
    ],
)
def test_the_kind_of_body(body: bytes, declared: str | None, expected: BodyType) -> None:
    headers = [("jmsbridge.body", declared)] if declared else []
    assert message(body, headers).body_type is expected


def test_raw_takes_the_body_alone_but_knows_bridges_and_repetitions() -> None:
    headers = [("region", "emea"), ("JMSType", "x"), ("jmsbridge.origin", "b1"), ("Nats-Msg-Id", "m")]
    found = message(json_frame.encode(HeaderFrame(b"x")), headers, WireFormat.RAW)
    assert found.body == json_frame.encode(HeaderFrame(b"x"))
    assert found.body_type is BodyType.BYTES
    assert found.properties == {}
    assert "JMSType" not in found.headers
    assert found.headers["JMSMessageID"] == "ID:m"
    assert found.origins == ("b1",)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("$JS.ACK.S.C.2.17.5.1700000000123456789.9", Stored("S", "17", 2, 1_700_000_000_123)),
        ("$JS.ACK._.HASH.S.C.2.17.5.1700000000123456789.9.rnd", Stored("S", "17", 2, 1_700_000_000_123)),
        ("$JS.ACK.hub.HASH.S.C.2.17.5.1700000000123456789.9", Stored("S", "17", 2, 1_700_000_000_123)),
        ("$JS.ACK.S.C.x.17.5.1.9", None),
        ("$JS.ACK.S.C.1.x.5.1.9", None),
        pytest.param(f"$JS.ACK.S.C.1.{'9' * 5000}.5.1.9", None, id="a sequence of 5000 digits"),
        pytest.param(f"$JS.ACK.S.C.1.17.5.{'9' * 4000}.9", None, id="a time of 4000 digits"),
        ("$JS.ACK.S", None),
        ("_INBOX.a", None),
        ("", None),
    ],
)
def test_the_acknowledgement_subject_tells_place_and_time(reply: str, expected: Stored | None) -> None:
    assert stored(reply) == expected


# Frames

FRAME = HeaderFrame(
    b"body", {"region": Property("emea", JmsType.STRING), "BRIDGE_priority": Property("7", JmsType.INT)}
)
ENCODED = {
    WireFormat.JSON: json_frame.encode(FRAME),
    WireFormat.TYPED: typed_frame.encode(FRAME),
    WireFormat.TYPED_1_0: typed_frame.encode(FRAME, typed_frame.CODES_1_0),
}


@pytest.mark.parametrize("framed", ENCODED)
@pytest.mark.parametrize("beside", [[], [("region", "native"), ("jmsbridge.origin", "b1"), ("Nats-Msg-Id", "m")]])
def test_a_frame_says_all_but_what_stands_beside_it(framed: WireFormat, beside: list[tuple[str, str]]) -> None:
    for wire in (WireFormat.AUTO, framed):
        found = message(ENCODED[framed], beside, wire)
        assert (found.body, found.body_type) == (b"body", BodyType.TEXT)
        assert found.properties == {"region": Property("emea", JmsType.STRING)}
        assert found.headers["JMSPriority"] == "7"
        assert found.headers["JMSMessageID"] == ("ID:m" if beside else FRESH)
        assert found.origins == (("b1",) if beside else ())


def test_a_time_in_a_frame_is_when_it_was_sent() -> None:
    body = json_frame.encode(HeaderFrame(b"", {"BRIDGE_timestamp": Property("99999999999", JmsType.LONG)}))
    assert message(body, facts=FACTS).headers["JMSTimestamp"] == "99999999999"


def test_fields_without_a_name_in_frames_are_fields_all_the_same() -> None:
    names = {
        "JMSCorrelationID": "c",
        "JMSDestination": "queue:forged",
        "JMS_JmsBridge_ReplyTo": "x",
        "JMSXGroupID": "g",
    }
    body = json_frame.encode(HeaderFrame(b"", {name: Property(text, JmsType.STRING) for name, text in names.items()}))
    found = message(body)
    assert found.properties == {}
    assert found.headers["JMSCorrelationID"] == "c"
    assert found.headers["JMSXGroupID"] == "g"
    assert found.headers["JMSDestination"] == "topic:orders.eu"


@pytest.mark.parametrize(
    "wire",
    [WireFormat.HEADERS, WireFormat.RAW, WireFormat.JSON, WireFormat.TYPED, WireFormat.TYPED_1_0],
    ids=lambda wire: wire.value,
)
def test_frames_that_are_not_looked_for_are_a_body(wire: WireFormat) -> None:
    other = {WireFormat.JSON: WireFormat.TYPED}.get(wire, WireFormat.JSON)
    found, fault = taken(ENCODED[other], wire=wire)
    assert found.body == ENCODED[other]
    # The beginning of a JSON frame is that of a typed one, too.
    assert (fault is not None) is (wire in (WireFormat.TYPED, WireFormat.TYPED_1_0))


@pytest.mark.parametrize("cut", [0, 1, 5, 12])
@pytest.mark.parametrize("wire", [WireFormat.AUTO, WireFormat.JSON])
def test_a_faulty_json_frame_is_told_and_comes_whole(cut: int, wire: WireFormat) -> None:
    good = ENCODED[WireFormat.JSON]
    bad = good[: len(json_frame.MARKER) + cut]
    found, fault = taken(bad, [("region", "emea"), ("jmsbridge.origin", "b1")], wire, FACTS)
    assert fault is not None
    assert not fault.body_only
    assert fault.why.startswith("a faulty JSON frame: ")
    assert (found.body, found.body_type) == (bad, BodyType.BYTES)
    assert found.properties == {}
    assert found.origins == ("b1",)
    assert found.headers["JMSMessageID"] == "ID:ORDERS:17"


@pytest.mark.parametrize("cut", range(1, 12))
@pytest.mark.parametrize("wire", [WireFormat.AUTO, WireFormat.TYPED, WireFormat.TYPED_1_0])
def test_a_faulty_typed_frame_is_a_body_as_for_the_java_program(cut: int, wire: WireFormat) -> None:
    bad = ENCODED[WireFormat.TYPED][:-cut]
    found, fault = taken(bad, [("region", "emea")], wire)
    assert fault is not None
    assert fault.body_only
    assert fault.why.startswith("a faulty typed frame: ")
    assert (found.body, found.body_type) == (bad, BodyType.BYTES)
    assert found.properties == {"region": Property("emea")}


@given(
    st.sampled_from([b"", json_frame.MARKER, typed_frame.MARKER]), st.binary(), st.binary(), st.sampled_from(WireFormat)
)
def test_no_bytes_make_the_reader_fail(marker: bytes, body: bytes, block: bytes, wire: WireFormat) -> None:
    incoming = IncomingMessage("a", "", b"NATS/1.0\r\n" + block, marker + body)
    found, _ = to_message(incoming, None, wire, "src", lambda: (FRESH, NOW))
    found.to_record()


# What goes out


@given(
    BODIES,
    st.dictionaries(st.sampled_from([name for name in HEADER_FIELDS if name not in OWN]), TEXTS),
    PROPERTIES,
    st.lists(TEXTS, max_size=3),
)
def test_headers_bring_everything_back(
    body: tuple[bytes, BodyType], fields: dict[str, str], properties: dict[str, Property], origins: list[str]
) -> None:
    # Empty ones say nothing.
    fields |= {name: fields.get(name) or text for name, text in (("JMSMessageID", "ID:1"), ("JMSTimestamp", "5"))}
    original = Message(*body, fields, properties, "", tuple(origins))
    found, fault = to_message(sent(original), None, WireFormat.HEADERS, "", lambda: (FRESH, NOW))
    assert fault is None
    own = {"JMSDestination": "topic:orders.eu", "JMSRedelivered": "false"}
    assert found == replace(original, headers={**fields, **own})


TYPED_VALUES = st.one_of(
    st.booleans().map(Property.of),
    st.integers(-(2**31), 2**31 - 1).map(lambda number: Property(str(number), JmsType.INT)),
    st.integers(2**31, 2**63 - 1).map(lambda number: Property(str(number), JmsType.LONG)),
    st.floats(allow_nan=False, allow_infinity=False).map(Property.of),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).map(Property.of),
)


@given(
    st.binary(),
    st.dictionaries(st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1), TYPED_VALUES, max_size=5),
    st.sampled_from(["PERSISTENT", "NON_PERSISTENT"]),
    st.sampled_from(list(ENCODED)),
)
def test_frames_bring_back_what_they_can_hold(
    body: bytes, properties: dict[str, Property], mode: str, wire: WireFormat
) -> None:
    fields = {"JMSDeliveryMode": mode, "JMSPriority": "3", "JMSType": "t", "JMSTimestamp": "99999999999"}
    original = Message(body, BodyType.of(body), fields, properties, "", ("b1",))
    found, fault = to_message(sent(original, wire), None, wire, "", lambda: (FRESH, NOW))
    assert fault is None
    assert (found.body, found.body_type, found.origins) == (body, original.body_type, ("b1",))
    assert found.properties == properties
    assert {name: found.headers[name] for name in fields} == fields
    assert found.headers["JMSMessageID"] == "ID:id-1"


def test_what_is_not_for_others_is_not_sent() -> None:
    original = Message(
        headers=dict.fromkeys(OWN, "x") | {"JMSType": "t"},
        properties={
            "region": Property("emea"),
            "Nats-Rollup": Property("all"),
            "nats-expected-stream": Property("x"),
            "jmsbridge.types": Property("region=int"),
            "JMS_JmsBridge_ReplyTo": Property("x"),
            "JMSDestination": Property("forged"),
        },
        source="src",
        origins=("b1", "b2"),
    )
    assert parse(sent(original).headers) == [
        ("Nats-Msg-Id", "id-1"),
        ("jmsbridge.origin", "b1"),
        ("jmsbridge.origin", "b2"),
        ("JMSType", "t"),
        ("region", "emea"),
    ]


@pytest.mark.parametrize("wire", [WireFormat.RAW, WireFormat.JSON, WireFormat.TYPED])
def test_beside_a_frame_or_a_bare_body_stand_only_the_id_and_the_bridges(wire: WireFormat) -> None:
    original = Message(b"x", headers={"JMSType": "t"}, properties={"a": Property("1")}, origins=("b1",))
    assert parse(sent(original, wire).headers) == [("Nats-Msg-Id", "id-1"), ("jmsbridge.origin", "b1")]
    assert (sent(original, wire).body == b"x") is (wire is WireFormat.RAW)


@pytest.mark.parametrize(
    ("fields", "properties", "identity", "says"),
    [
        ({"JMSType": "a\r\nNats-Rollup: all"}, {}, "i", "header 'JMSType': its value has a line break"),
        ({}, {"a": Property("x\ny")}, "i", "header 'a': its value has a line break"),
        ({}, {}, "i\r\nx", "header 'Nats-Msg-Id'"),
    ],
)
def test_what_would_forge_headers_is_refused(
    fields: Mapping[str, str], properties: Mapping[str, Property], identity: str, says: str
) -> None:
    with pytest.raises(RefusedError, match=says):
        to_wire(Message(headers=fields, properties=properties), WireFormat.HEADERS, identity)


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("größe", "gr_U00F6__U00DF_e"),
        ("a b", "a_U0020_b"),
        ("a:b", "a_U003A_b"),
        ("a\r\nb", "a_U000D__U000A_b"),
        ("\N{PARTY POPPER}", "_U1F389_"),
        ("gr_U00F6_", "gr_U005F_U00F6_"),
        ("X-Request-Id", "X-Request-Id"),
        ("a_DOT_b", "a_DOT_b"),
    ],
)
def test_a_name_that_nats_cannot_carry_comes_back(name: str, spelling: str) -> None:
    out = sent(Message(properties={name: Property("x")}))
    assert parse(out.headers)[1:] == [(spelling, "x")]
    assert to_message(out, None, WireFormat.HEADERS, "src", lambda: (FRESH, NOW))[0].properties == {name: Property("x")}


def test_what_does_not_fit_into_a_typed_frame_is_refused() -> None:
    many = {f"p{n}": Property("x") for n in range(128)}
    with pytest.raises(RefusedError, match="128 headers are more than the 127"):
        to_wire(Message(properties=many), WireFormat.TYPED, "i")
