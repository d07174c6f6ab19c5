"""Encoded AMQP messages that are cut short, or get an id, are still the same message otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from engine.connectors.amqp.codec.values import AmqpMap, Symbol, UInt
from engine.connectors.amqp.encoded_edits import shortened, with_duplicate_id

HEADS = (
    Sections(),
    Sections(header=Header(durable=True)),
    Sections(properties=Properties(to="x"), application_properties=AmqpMap([("a", 1), ("b", "y" * 300)])),
    Sections(
        header=Header(),
        delivery_annotations=AmqpMap([(Symbol("d"), 1)]),
        message_annotations=AmqpMap([(Symbol(f"m{number}"), number) for number in range(300)]),
        properties=Properties(message_id="1", group_sequence=UInt(5)),
        application_properties=AmqpMap([(f"p{number}", "v") for number in range(300)]),
    ),
)


def message(head: Sections, body: int, content: object) -> bytes:
    head.body, head.content = body, content
    return encode_sections(head)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("size", [10, 1000, 100_000])
def test_data_and_text_are_cut_short(head: Sections, size: int) -> None:
    for kind, content in ((DATA, b"x" * size), (VALUE, b"y" * size), (VALUE, "z" * size)):
        encoded = message(head, kind, content)
        short, around = shortened(encoded[: len(encoded) - 1], 500)
        found = decode(short)
        assert found.content == content[: min(500, size - 1)]
        assert (found.properties, found.application_properties) == (head.properties, head.application_properties)
        assert len(encoded) - around == size


def test_text_is_cut_between_characters() -> None:
    encoded = message(Sections(), VALUE, "é" * 1000)
    assert decode(shortened(encoded, 501)[0]).content == "é" * 250


def test_what_cannot_be_cut_becomes_bytes() -> None:
    encoded = message(Sections(properties=Properties(to="x")), SEQUENCE, ["x" * 1000])
    found = decode(shortened(encoded[:700], 500)[0])
    assert (found.body, len(found.content), found.properties) == (DATA, 500, Properties(to="x"))


@pytest.mark.parametrize("head", HEADS)
def test_the_id_stands_among_the_application_properties(head: Sections) -> None:
    encoded = message(head, VALUE, "x")
    found = decode(with_duplicate_id(encoded, "b/t:0:1"))
    expected = [*(head.application_properties or ()), ("_AMQ_DUPL_ID", "b/t:0:1")]
    assert found.application_properties == expected
    assert (found.header, found.properties, found.content) == (head.header, head.properties, "x")
    assert found.message_annotations == head.message_annotations


def test_an_id_that_is_there_already_stays() -> None:
    encoded = message(Sections(application_properties=AmqpMap([("_AMQ_DUPL_ID", "own")])), VALUE, "x")
    assert with_duplicate_id(encoded, "other") == encoded


@given(st.binary(max_size=80))
def test_bytes_that_are_no_message_stay_as_they_are_or_become_one(data: bytes) -> None:
    for beginning in (data, b"\0\x53\x74" + data, b"\0\x53\x75" + data):
        shortened(beginning, 10)
        with_duplicate_id(beginning, "x")
