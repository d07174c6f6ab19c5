"""Frames and performatives of AMQP: any cut of the stream gives the same, and what is none is a named error."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp import performatives
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import AmqpError, Described, Symbol, UInt, ULong
from engine.connectors.amqp.frames import (
    AMQP,
    EMPTY,
    MAX_FRAME_BYTES,
    PROTOCOL_HEADER,
    SASL,
    AmqpFrameError,
    AmqpFrameParser,
    frame,
)
from engine.connectors.amqp.performatives import Code, Condition, Role, Transfer

BODIES = (b"a", b"bc", b"d" * 300)
STREAM = frame(0, BODIES[0]) + EMPTY + frame(7, BODIES[1], SASL) + frame(0, BODIES[2])
FRAMES = [(AMQP, 0, BODIES[0]), (SASL, 7, BODIES[1]), (AMQP, 0, BODIES[2])]


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_any_cut_gives_the_same_frames(cuts: list[int]) -> None:
    parser = AmqpFrameParser()
    places = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(places)]
    assert [found for piece in pieces for found in parser.feed(piece)] == FRAMES


def test_an_extended_header_is_passed_over() -> None:
    assert list(AmqpFrameParser().feed(b"\0\0\0\x0d\x03\0\0\0abcdX")) == [(0, 0, b"X")]


@pytest.mark.parametrize(
    "data",
    [b"\0\0\0\x07\x02\0\0\0", b"\0\0\0\x08\x01\0\0\0", b"\0\0\0\x08\x03\0\0\0", b"\xff\xff\xff\xff\x02\0\0\0"],
    ids=["too small", "head too small", "head larger than the frame", "too large"],
)
def test_what_is_no_frame_is_reported(data: bytes) -> None:
    with pytest.raises(AmqpFrameError, match="a frame of"):
        list(AmqpFrameParser().feed(data))
    with pytest.raises(AmqpFrameError, match="a frame of"):
        AmqpFrameParser().one(data)


def test_frames_may_follow_a_header_at_once() -> None:
    parser = AmqpFrameParser()
    assert parser.header(PROTOCOL_HEADER[:3]) is None
    assert parser.header(PROTOCOL_HEADER[3:] + EMPTY + STREAM) == PROTOCOL_HEADER
    assert parser.one(b"") == FRAMES[0]
    assert list(parser.feed(b"")) == FRAMES[1:]


@pytest.mark.parametrize("data", [b"HTTP/1.1 400", b"\x15\x03\x03\0\x02\x02", b"AMXP"])
def test_what_is_no_header_is_reported(data: bytes) -> None:
    with pytest.raises(AmqpFrameError, match="in place of an AMQP header"):
        AmqpFrameParser().header(data)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=32),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.binary(max_size=100),
)
def test_a_transfer_is_read_as_it_was_written(
    handle: int, delivery: int, tag: bytes, message_format: int, more: bool, payload: bytes
) -> None:
    written = performatives.transfer(handle, delivery, tag, message_format, more=more) + payload
    assert performatives.is_transfer(written)
    expected = Transfer(handle, delivery, message_format, settled=False, more=more, aborted=False, payload=payload)
    assert performatives.read_transfer(written) == expected


def test_a_transfer_may_be_written_at_length() -> None:
    fields = (b"\x70\0\0\0\x05", b"\x40", b"\xb0\0\0\0\x01t", b"\x40", b"\x56\x01", b"\x42", b"\x40", b"\x45", b"\x41")
    content = b"".join((*fields, b"\x41"))
    written = b"\0\x53\x14\xd0" + (len(content) + 4).to_bytes(4) + (10).to_bytes(4) + content
    assert performatives.read_transfer(written) == Transfer(5, None, None, True, False, True, b"", [])


@pytest.mark.parametrize(
    "descriptor",
    [
        b"\x53\x14",
        b"\x80" + bytes(7) + b"\x14",
        b"\xa3\x12amqp:transfer:list",
        b"\xb3\0\0\0\x12amqp:transfer:list",
    ],
)
@pytest.mark.parametrize("fields", [b"\xc0\x05\x02\x52\x05\x52\x07", b"\xd0\0\0\0\x08\0\0\0\x02\x52\x05\x52\x07"])
def test_a_transfer_may_have_any_form_of_its_descriptor(descriptor: bytes, fields: bytes) -> None:
    written = b"\0" + descriptor + fields + b"payload"
    assert performatives.is_transfer(written)
    assert performatives.read(written)[0] == Code.TRANSFER
    expected = Transfer(5, 7, None, settled=False, more=False, aborted=False, payload=b"payload")
    assert performatives.read_transfer(written) == expected


def test_a_boolean_is_no_number() -> None:
    with pytest.raises(AmqpError, match="field 0 of a performative is not a number"):
        performatives.number([True], 0)
    for fields in (b"\xc0\x02\x01\x41", b"\xc0\x04\x02\x52\x05\x41", b"\xc0\x06\x04\x52\x05\x40\x40\x42"):
        with pytest.raises(AmqpError):
            performatives.read_transfer(b"\0\x53\x14" + fields)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_performative_are_a_named_error(data: bytes) -> None:
    for body in (data, b"\0\x53\x14" + data, b"\0\x53\x14\xc0" + data):
        for read in (performatives.read, performatives.read_transfer):
            with suppress(AmqpError):
                read(body)


def test_fields_of_another_type_are_a_named_error() -> None:
    with pytest.raises(AmqpError, match="field 1 of a performative is not a number"):
        performatives.number([0, "x"], 1)
    assert performatives.number([], 1, 7) == 7
    assert performatives.outcome_of("x") == (0, [])
    assert performatives.condition_of([1]) is None


def test_errors_are_told_in_one_line() -> None:
    error = Described(ULong(0x1D), [Symbol("amqp:not-found"), "no\nsuch   queue"])
    condition = performatives.condition_of(error)
    assert str(condition) == "no such queue (amqp:not-found)"
    assert str(Condition("amqp:x", "")) == "amqp:x"


def test_performatives_may_be_named_by_symbols() -> None:
    written = encode(Described(Symbol("amqp:flow:list"), [UInt(1)]))
    assert performatives.read(written) == (Code.FLOW, [1])


def test_fields_that_are_not_set_are_left_out_at_the_end() -> None:
    assert performatives.begin().endswith(encode(UInt(2**16 - 1)))
    flow = performatives.flow(1, 2)
    assert performatives.read(flow)[1] == [1, performatives.MAX_WINDOW, 2, performatives.MAX_WINDOW]
    detached = performatives.detach(3, closed=True)
    assert performatives.read(detached) == (Code.DETACH, [3, True])
    accepted = performatives.disposition(Role.RECEIVER, 1, 2, performatives.ACCEPTED)
    assert performatives.read(accepted)[1][:4] == [True, 1, 2, True]


def test_a_frame_takes_as_much_as_the_bridge_says_it_takes() -> None:
    body = b"x" * (MAX_FRAME_BYTES - 8)
    assert list(AmqpFrameParser().feed(frame(0, body))) == [(0, 0, body)]
    with pytest.raises(AmqpFrameError):
        list(AmqpFrameParser().feed(frame(0, body + b"x")))
