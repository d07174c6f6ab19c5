"""The sections of an AMQP message: their order, their fields, and what is not a message."""

from __future__ import annotations

import time
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.sections import (
    DATA,
    SEQUENCE,
    VALUE,
    Header,
    Properties,
    Sections,
    decode,
    encode_sections,
)
from engine.connectors.amqp.codec.values import (
    AmqpError,
    AmqpMap,
    Described,
    Int,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
)

HEADER = "00 53 70 c0 02 01 41"
"""durable = true"""
DELIVERY = "00 53 71 c1 06 02 a3 01 61 54 01"
"""a = int 1"""
ANNOTATIONS = "00 53 72 c1 06 02 a3 01 62 51 05"
"""b = byte 5"""
PROPERTIES = "00 53 73 c0 05 01 a1 02 6964"
"""message-id = id"""
APPLICATION = "00 53 74 c1 06 02 a1 01 63 a1 00"
"""c = empty string"""
DATUM = "00 53 75 a0 02 0102"
LISTED = "00 53 76 c0 03 01 54 07"
VALUED = "00 53 77 a1 02 6869"
"""The string hi."""
FOOTER = "00 53 78 c1 05 02 a3 01 64 41"
"""d = true"""


def read(*parts: str) -> Sections:
    return decode(bytes.fromhex("".join(parts)))


def test_the_beginning_of_properties_within_an_annotation_begins_no_properties() -> None:
    annotations = AmqpMap([(Symbol("x"), bytes.fromhex("00 53 73 c0 05 01 a1 02 6964"))])
    written = Sections(Header(durable=True), message_annotations=annotations, properties=Properties(message_id="own"))
    assert decode(encode_sections(written)) == written
    assert decode(encode_sections(written)) == written


def test_what_stands_before_properties_is_checked_in_each_message() -> None:
    for _ in range(2):
        with pytest.raises(AmqpError, match="section header at byte 7 is too late, or twice"):
            read(HEADER, HEADER, PROPERTIES)
        with pytest.raises(AmqpError, match="too late"):
            read(APPLICATION, PROPERTIES)


def test_fields_that_were_right_in_one_section_are_checked_in_the_other() -> None:
    read("00 53 73 c0 05 01 a1 02 6964")
    with pytest.raises(AmqpError, match="field durable is of type string"):
        read("00 53 70 c0 05 01 a1 02 6964")


def test_every_section_is_found() -> None:
    found = read(HEADER, DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, VALUED, FOOTER)
    assert found.header == Header(durable=True)
    assert found.delivery_annotations == [(Symbol("a"), Int(1))]
    assert found.message_annotations == [(Symbol("b"), 5)]
    assert found.properties == Properties(message_id="id")
    assert found.application_properties == [("c", "")]
    assert (found.body, found.content) == (VALUE, "hi")
    assert found.footer == [(Symbol("d"), True)]
    assert found.encoded_body.hex() == VALUED.replace(" ", "")


def test_every_section_may_be_missing() -> None:
    assert decode(b"") == Sections()
    assert read(VALUED) == Sections(body=VALUE, content="hi")
    assert read("00 53 77 40") == Sections(body=VALUE, content=None)


@pytest.mark.parametrize(
    "descriptor",
    [
        "53 77",
        "80 0000000000000077",
        "a3 11 616d71703a616d71702d76616c75653a2a",
        "b3 00000011 616d71703a616d71702d76616c75653a2a",
    ],
    ids=["smallulong", "ulong", "symbol", "long symbol"],
)
def test_a_section_has_a_number_or_a_name(descriptor: str) -> None:
    assert read("00", descriptor, "a1 02 6869") == Sections(body=VALUE, content="hi")


def test_bodies_of_several_sections_are_one() -> None:
    assert (read(DATUM, DATUM).body, read(DATUM, DATUM).content) == (DATA, b"\1\2\1\2")
    found = read(LISTED, LISTED)
    assert (found.body, found.content) == (SEQUENCE, [7, 7])
    assert found.encoded_body.hex() == (LISTED + LISTED).replace(" ", "")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ((DELIVERY, HEADER), "section header at byte 11 is too late, or twice; sections have an order"),
        ((HEADER, HEADER), "section header at byte 7 is too late, or twice; sections have an order"),
        ((APPLICATION, PROPERTIES), "section properties at byte 11 is too late, or twice; sections have an order"),
        (
            (VALUED, APPLICATION),
            "section application-properties at byte 7 is too late, or twice; sections have an order",
        ),
        ((FOOTER, VALUED), "section amqp-value at byte 10 is another body; sections have an order"),
        ((VALUED, VALUED), "section amqp-value at byte 7 is another body; sections have an order"),
        ((DATUM, LISTED), "section amqp-sequence at byte 7 is another body; sections have an order"),
        ((LISTED, DATUM), "section data at byte 8 is another body; sections have an order"),
        ((DATUM, FOOTER, DATUM), "section data at byte 17 is another body; sections have an order"),
        (("00 53 79 40",), "there is no section ulong 121, at byte 0"),
        (("00 53 6f 40",), "there is no section ulong 111, at byte 0"),
        (("00 a3 01 78 40",), "there is no section symbol 'x', at byte 0"),
        (("00 55 70 45",), "there is no section long 112, at byte 0"),
        (("53 77 40",), "a section begins with byte 0, not 0x53, at byte 0"),
        (("00 53",), "the value at byte 0 is cut off: there are 2 bytes"),
        ((HEADER, "00 53 77"), "the value at byte 7 is cut off: there are 10 bytes"),
        (("00 53 70 c0 09 01 41",), "the value at byte 6 should end at byte 14, but there are 7 bytes"),
        (("00 53 70 c1 01 00",), "section header at byte 0 is of type map"),
        (("00 53 74 45",), "section application-properties at byte 0 is of type list"),
        (("00 53 75 a1 00",), "section data at byte 0 is of type string"),
        (("00 53 76 40",), "section amqp-sequence at byte 0 is of type null"),
        (("00 53 74 c1 03 02 40 40",), "section application-properties has a key of type null"),
        (("00 53 72 c1 03 02 45 40",), "section message-annotations has a key of type list"),
        (("00 53 70 c0 04 01 a1 01 78",), "field durable is of type string, not boolean"),
        (("00 53 70 c0 04 02 40 54 04",), "field priority is of type int, not ubyte"),
        (("00 53 70 c0 07 06 40 40 40 40 40 40",), "section header has 6 fields, more than 5"),
        (("00 53 73 c0 03 01 54 01",), "field message-id is of type int, not string or uuid or ulong or binary"),
        (("00 53 73 c0 05 02 40 a1 01 75",), "field user-id is of type string, not binary"),
    ],
)
def test_what_is_no_message_is_said(parts: tuple[str, ...], problem: str) -> None:
    with pytest.raises(AmqpError) as raised:
        read(*parts)
    assert str(raised.value) == problem


def test_all_fields_travel_both_ways() -> None:
    sections = Sections(
        Header(durable=True, priority=UByte(9), ttl=UInt(60_000), first_acquirer=False, delivery_count=UInt(2)),
        AmqpMap([(Symbol("x-opt-d"), Int(1))]),
        AmqpMap([(Symbol("x-opt-m"), "m"), (ULong(7), True)]),
        Properties(
            UUID(int=7), b"me", "to", "subject", "reply", ULong(8), "text/plain", "gzip",
            Timestamp(1), Timestamp(2), "group", UInt(3), "reply-group",
        ),
        AmqpMap([("p", 1.5)]),
        VALUE,
        Described(Symbol("kind"), [None]),
        AmqpMap([(Symbol("f"), b"1")]),
    )  # fmt: skip
    assert decode(encode_sections(sections)) == sections


def test_fields_at_the_end_that_are_not_there_take_no_bytes() -> None:
    assert encode_sections(Sections(header=Header(durable=True))).hex() == HEADER.replace(" ", "")
    assert encode_sections(Sections(header=Header(), delivery_annotations=AmqpMap())).hex() == "00537045"


def test_messages_with_the_same_annotations_share_them() -> None:
    one, other = (read(ANNOTATIONS, VALUED), read(ANNOTATIONS, DATUM))
    assert one.message_annotations is other.message_annotations


def test_a_fault_in_a_section_that_is_looked_up_has_its_place_in_the_message() -> None:
    with pytest.raises(AmqpError, match="there is no type 0x3f, at byte 13"):
        read(HEADER, "00 53 72 c1 03 02 3f 40")


@given(st.lists(st.one_of(
    st.sampled_from([bytes.fromhex(part) for part in (HEADER, DELIVERY, ANNOTATIONS, PROPERTIES, APPLICATION, DATUM)]),
    st.sampled_from([bytes.fromhex(part) for part in (LISTED, VALUED, FOOTER, "00 53 70 45", "00 53 72 45")]),
    st.binary(max_size=8),
), max_size=8))  # fmt: skip
def test_any_bytes_are_a_message_or_a_named_error(parts: list[bytes]) -> None:
    started = time.monotonic()
    with suppress(AmqpError):
        found = decode(b"".join(parts))
        assert decode(encode_sections(found)) == found
    assert time.monotonic() - started < 2


def test_a_body_that_is_encoded_already_is_taken_as_it_is() -> None:
    body = b"\0\x53\x77" + encode([True])
    assert encode_sections(Sections(body=VALUE, content="not this", encoded_body=body)) == body
