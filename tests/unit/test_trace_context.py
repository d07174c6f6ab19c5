"""W3C Trace Context: what is valid by its examples and rules, and what stands beside the properties of a message."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.message import Message, Record
from engine.trace_context import NO_CONTEXT, as_headers, of_headers, of_properties, traced, with_context
from engine.tracing_section import TracingConfig
from routes.config import loads
from routes.model import Config
from routes.properties import JmsType, Property

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"

HEX = st.text("0123456789abcdef")
KEYS = st.from_regex(r"\A[a-z0-9][a-z0-9_*/@-]{0,20}\Z")
VALUES = st.from_regex(r"\A[ -+\--<>-~]{0,20}[!-+\--<>-~]\Z")


def came_with(parent: str, state: str | None = None, kind: JmsType | None = None) -> dict[str, str]:
    properties = {"traceparent": Property(parent, kind)}
    if state is not None:
        properties["tracestate"] = Property(state, kind)
    return dict(of_properties(properties))


@pytest.mark.parametrize(
    "parent",
    [
        PARENT,
        f"00-{TRACE}-{SPAN}-00",
        f"00-{TRACE}-{SPAN}-ff",
        f"01-{TRACE}-{SPAN}-01",
        f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be-like",
    ],
)
def test_a_valid_parent_is_taken_as_it_is(parent: str) -> None:
    assert came_with(parent) == {"traceparent": parent}
    assert came_with(parent, STATE, JmsType.STRING) == {"traceparent": parent, "tracestate": STATE}


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "hello",
        PARENT.upper(),
        f" {PARENT}",
        f"{PARENT}\n",
        f"{PARENT}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}",
        f"01-{TRACE}-{SPAN}-01.more",
        f"01-{TRACE}-{SPAN}-01-" + "x" * 451,
        f"0x-{TRACE}-{SPAN}-01",
        f"00-{TRACE[:-1]}٣-{SPAN}-01",
    ],
)
def test_an_invalid_parent_is_no_context_whatever_the_state(parent: str) -> None:
    assert came_with(parent, STATE) == {}


def test_a_value_that_is_no_text_is_no_context() -> None:
    assert came_with(PARENT, kind=JmsType.BYTES) == {}


@pytest.mark.parametrize(
    "state",
    [
        "a=1",
        "fw529a3039@dt=FfAAAAA",
        "0a/b*c-d_e=x y",
        " a=1 ,\tb=2",
        "a=1,,b=2,",
        ",".join(f"k{number}=v" for number in range(32)),
        f"{'k' * 256}={'v' * 256}",
    ],
)
def test_a_valid_state_goes_with_its_parent(state: str) -> None:
    assert came_with(PARENT, state) == {"traceparent": PARENT, "tracestate": state}


@pytest.mark.parametrize(
    "state",
    [
        "",
        " , ,",
        "a",
        "a=",
        "=1",
        "A=1",
        "a=1=2",
        "a=ä",
        "a=1\n",
        "a=1\r\nx: y",
        "a=\t1",
        ",".join(f"k{number}=v" for number in range(33)),
        f"{'k' * 257}=v",
        f"k={'v' * 257}",
    ],
)
def test_an_invalid_state_does_not_harm_its_parent(state: str) -> None:
    assert came_with(PARENT, state) == {"traceparent": PARENT}


@given(st.tuples(HEX, HEX, HEX, HEX).map("-".join) | st.text(max_size=80) | st.from_regex(r"\A[0-9a-f-]{50,60}\Z"))
def test_only_what_the_recommendation_describes_is_valid(text: str) -> None:
    version, trace, span, flags = (text.split("-") + [""] * 4)[:4]
    sizes = [len(part) for part in (version, trace, span, flags)] == [2, 32, 16, 2]
    digits = all(re.fullmatch("[0-9a-f]+", part) for part in (version, trace, span, flags))
    ids = version != "ff" and trace.strip("0") != "" and span.strip("0") != ""
    whole = text == "-".join((version, trace, span, flags))
    assert bool(came_with(text)) <= (sizes and digits and ids)
    assert bool(came_with(text)) >= (sizes and digits and ids and whole)


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=32))
def test_every_state_of_valid_members_is_valid(members: dict[str, str]) -> None:
    state = ",".join(f"{key}={value}" for key, value in members.items())
    # Space before the first member belongs to none.
    assert came_with(PARENT, state) == {"traceparent": PARENT, "tracestate": state}


@given(st.dictionaries(st.sampled_from(["traceparent", "tracestate", "x"]), st.text()))
def test_whatever_the_texts_are_what_is_found_can_be_a_header_anywhere(texts: dict[str, str]) -> None:
    found = of_properties({name: Property(text) for name, text in texts.items()})
    assert all(value.isascii() and value.replace("\t", "").isprintable() for value in found.values())


def test_of_several_headers_the_last_counts_as_for_agents() -> None:
    old, new = ("traceparent", f"00-{TRACE}-{'1' * 16}-01".encode()), ("traceparent", PARENT.encode())
    assert of_headers([old, ("tracestate", b"a=1"), new, ("tracestate", b"a=2")]) == {
        "traceparent": PARENT,
        "tracestate": "a=2",
    }


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"hello"])
def test_a_last_header_that_is_invalid_is_no_context(value: bytes | None) -> None:
    assert of_headers([("traceparent", PARENT.encode()), ("traceparent", value)]) == {}


def test_a_context_comes_back_from_headers() -> None:
    context = of_properties({"traceparent": Property(PARENT), "tracestate": Property(STATE)})
    assert of_headers(as_headers(context)) == context


def test_another_context_takes_the_place_of_the_old_one_with_its_state() -> None:
    old = {"a": Property("1"), "traceparent": Property("old"), "tracestate": Property("old=1")}
    assert with_context(old, {"traceparent": PARENT}) == {
        "a": Property("1"),
        "traceparent": Property(PARENT, JmsType.STRING),
    }
    assert with_context(old, NO_CONTEXT) == old


# On records


def config(*lines: str) -> Config:
    start = (
        "bridge.id=b1",
        "source.s.type=stomp",
        "source.s.destinations=queue:q",
        "routes.r.in.include=TRUE",
        "routes.r.out.topic=t",
    )
    return loads("\n".join((*start, *lines)), base=Path())


MESSAGE = Message(b"x", headers={"JMSMessageID": "ID:1"}, properties={"region": Property("emea")})
TRACED = replace(
    MESSAGE,
    properties={**MESSAGE.properties, "traceparent": Property(PARENT), "tracestate": Property(STATE, JmsType.STRING)},
)


def test_a_context_stands_in_the_record_beside_the_properties() -> None:
    record = TRACED.to_record(of_properties(TRACED.properties))
    assert record.header("jms.traceparent") == PARENT
    assert record.headers[-2:] == (("traceparent", PARENT.encode()), ("tracestate", STATE.encode()))
    assert Message.from_record(record) == TRACED
    assert traced(TRACED.to_record(), config().section(TracingConfig)) == record


@pytest.mark.parametrize("message", [MESSAGE, replace(MESSAGE, properties={"traceparent": Property("hello")})])
def test_who_has_no_valid_context_gets_the_same_record_as_ever(message: Message) -> None:
    assert message.to_record(of_properties(message.properties)) == message.to_record()
    assert traced(message.to_record(), config().section(TracingConfig)) == message.to_record()


def test_nothing_stands_beside_the_properties_if_it_is_not_wanted() -> None:
    assert traced(TRACED.to_record(), config("tracing.propagate=false").tracing) == TRACED.to_record()


def test_a_record_that_goes_on_with_another_context_keeps_it() -> None:
    record = TRACED.to_record({"traceparent": f"00-{TRACE}-{'1' * 16}-01"})
    assert traced(record, config().section(TracingConfig)) == record


def test_the_size_of_a_large_record_counts_its_context_and_stands_last() -> None:
    record = replace(TRACED, body=b"x" * 300_000).to_record(of_properties(TRACED.properties))
    name, size = record.headers[-1]
    bare = Record(record.key, record.value, record.headers[:-1])
    assert (name, size) == ("jmsbridge.size", str(bare.size).encode())
    assert bare.headers[-1][0] == "tracestate"
