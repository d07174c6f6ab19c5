"""The trace context of a message in the headers of NATS, also beside frames."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.connectors.nats.headers import pack, parse
from engine.connectors.nats.message import IncomingMessage, to_message, to_wire
from engine.connectors.nats.settings import WireFormat
from engine.message import Message
from routes.properties import Property

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TRACED = Message(b"x", properties={"traceparent": Property(PARENT), "region": Property("emea")})


def sent(original: Message, wire: WireFormat) -> IncomingMessage:
    block, payload = to_wire(original, wire, "id-1")
    return IncomingMessage("orders.eu", "", block, payload)


@pytest.mark.parametrize("wire", [WireFormat.HEADERS, WireFormat.JSON, WireFormat.TYPED, WireFormat.RAW])
def test_a_trace_context_goes_out_in_the_headers_whatever_the_format(wire: WireFormat) -> None:
    headers = parse(sent(TRACED, wire).headers)
    assert [value for name, value in headers if name == "traceparent"] == [PARENT]


@pytest.mark.parametrize("wire", [WireFormat.JSON, WireFormat.TYPED, WireFormat.RAW])
def test_beside_a_frame_only_a_valid_trace_context_goes_out_and_only_if_it_is_wanted(wire: WireFormat) -> None:
    invalid = replace(TRACED, properties={"traceparent": Property("hello"), "tracestate": Property("a=1")})
    assert b"trace" not in sent(invalid, wire).headers
    assert b"trace" not in to_wire(TRACED, wire, "id", propagates=False)[0]


@pytest.mark.parametrize("wire", [WireFormat.JSON, WireFormat.TYPED, WireFormat.RAW])
def test_a_trace_context_beside_a_frame_stands_before_that_in_it(wire: WireFormat) -> None:
    newer = PARENT.replace("-01", "-00")
    incoming = sent(TRACED, wire)._replace(headers=pack([("traceparent", newer), ("tracestate", "a=1"), ("b", "2")]))
    found, _ = to_message(incoming, None, wire, "src", lambda: ("ID:fresh:1", 1))
    assert found.properties["traceparent"].text == newer
    assert found.properties["tracestate"].text == "a=1"
    assert "b" not in found.properties


@pytest.mark.parametrize("wire", [WireFormat.JSON, WireFormat.RAW])
def test_what_stands_beside_a_frame_is_left_if_it_is_invalid_or_not_wanted(wire: WireFormat) -> None:
    payload = sent(replace(TRACED, properties={}), wire)
    for value, propagates in (("hello", True), (PARENT, False)):
        incoming = payload._replace(headers=pack([("traceparent", value)]))
        found, _ = to_message(incoming, None, wire, "src", lambda: ("ID:fresh:1", 1), propagates=propagates)
        assert found.properties == {}
