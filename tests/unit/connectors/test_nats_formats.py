"""Wire formats of NATS: the releases of typed frames, and the format in which a request came and its reply goes."""

from __future__ import annotations

import pytest

from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import HeaderFrame
from engine.connectors.nats.headers import pack
from engine.connectors.nats.message import IncomingMessage, reply_format, to_message, to_wire
from engine.connectors.nats.settings import WireFormat
from engine.message import BodyType, Message
from routes.properties import JmsType, Property
from routes.targets import REPLY_FORMAT, REQUEST_FORMAT

FRAME = HeaderFrame(b"body", {"region": Property("emea", JmsType.STRING)})
ENCODED = {
    WireFormat.JSON: json_frame.encode(FRAME),
    WireFormat.TYPED: typed_frame.encode(FRAME),
    WireFormat.TYPED_1_0: typed_frame.encode(FRAME, typed_frame.CODES_1_0),
}


def taken(body: bytes, wire: WireFormat, headers: list[tuple[str, str]] | None = None, reply: str = "") -> Message:
    incoming = IncomingMessage("orders.eu", reply, pack(headers or []), body)
    return to_message(incoming, None, wire, "src", lambda: ("ID:fresh", 1))[0]


def test_a_correlation_id_is_in_typed_frames_of_release_1_0() -> None:
    original = Message(b"x", BodyType.TEXT, {"JMSCorrelationID": "c"}, {"ENV": Property("prod", JmsType.STRING)})
    for wire, expected in ((WireFormat.TYPED, None), (WireFormat.TYPED_1_0, "c")):
        found = taken(to_wire(original, wire, "id")[1], wire)
        assert found.headers.get("JMSCorrelationID") == expected
        assert found.properties == original.properties


@pytest.mark.parametrize(
    ("body", "wire", "expected"),
    [
        (ENCODED[WireFormat.JSON], WireFormat.AUTO, "json"),
        (ENCODED[WireFormat.JSON], WireFormat.JSON, "json"),
        (ENCODED[WireFormat.TYPED], WireFormat.AUTO, "typed"),
        (ENCODED[WireFormat.TYPED], WireFormat.TYPED, "typed"),
        (ENCODED[WireFormat.TYPED_1_0], WireFormat.TYPED_1_0, "typed-1.0"),
        (ENCODED[WireFormat.TYPED][:-1], WireFormat.TYPED, "headers"),
        (ENCODED[WireFormat.JSON], WireFormat.RAW, "raw"),
        (b"bare", WireFormat.AUTO, "headers"),
        (b"bare", WireFormat.JSON, "headers"),
        (b"bare", WireFormat.HEADERS, "headers"),
    ],
)
def test_a_request_says_in_which_format_it_came(body: bytes, wire: WireFormat, expected: str) -> None:
    forged = [(REQUEST_FORMAT, "forged")]
    request = taken(body, wire, forged, reply="_INBOX.1")
    assert request.properties[REQUEST_FORMAT] == Property(expected, JmsType.STRING)
    assert REQUEST_FORMAT not in taken(body, wire, forged).properties
    # It is for the bridge alone.
    for each in (WireFormat.HEADERS, WireFormat.JSON, WireFormat.TYPED):
        headers, payload = to_wire(request, each, "id")
        assert REQUEST_FORMAT.encode() not in headers + payload


def test_an_empty_id_or_time_is_none() -> None:
    found = taken(b"x", WireFormat.AUTO, [("JMSMessageID", ""), ("JMSTimestamp", ""), ("Nats-Msg-Id", "")])
    assert (found.headers["JMSMessageID"], found.headers["JMSTimestamp"]) == ("ID:fresh", "1")
    found = taken(b"x", WireFormat.AUTO, [("JMSMessageID", ""), ("Nats-Msg-Id", "m")])
    assert found.headers["JMSMessageID"] == "ID:m"


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, None), ("json", WireFormat.JSON), ("typed-1.0", WireFormat.TYPED_1_0), ("unknown", None), ("", None)],
)
def test_a_reply_goes_in_the_format_of_its_request(said: str | None, expected: WireFormat | None) -> None:
    properties = {} if said is None else {REPLY_FORMAT: Property(said, JmsType.STRING)}
    assert reply_format(Message(b"", properties=properties)) is expected
