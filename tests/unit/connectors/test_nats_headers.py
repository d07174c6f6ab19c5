"""The header block of NATS messages: what comes in is read as it is, what goes out cannot smuggle anything in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.base import RefusedError
from engine.connectors.nats.headers import pack, parse, status

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1)
VALUES = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]))


@given(st.lists(st.tuples(NAMES, VALUES), min_size=1))
def test_what_is_packed_is_read_again(headers: list[tuple[str, str]]) -> None:
    assert parse(pack(headers)) == headers


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_no_header_can_bring_another_with_it(headers: list[tuple[str, str]]) -> None:
    try:
        block = pack(headers)
    except RefusedError:
        return
    lines = block.split(b"\r\n")
    assert len(lines) == (len(headers) + 3 if headers else 1)
    assert block.count(b"\n") == block.count(b"\r") == len(lines) - 1
    assert b"\0" not in block


def test_without_headers_there_is_no_block() -> None:
    assert pack([]) == b""


@pytest.mark.parametrize("name", ["", "a:b", "a b", "a\tb", "a\r\nb", "a\n", "\0", "é", "a\x7f"])
def test_a_name_that_nats_cannot_carry_is_refused_and_named(name: str) -> None:
    with pytest.raises(RefusedError, match="NATS cannot carry a header named") as refused:
        pack([(name, "x")])
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\r\nNats-Rollup: all", "a\0b"])
def test_a_value_that_nats_cannot_carry_is_refused_with_its_name(value: str) -> None:
    with pytest.raises(RefusedError, match="NATS cannot carry header 'region': its value has a line break or NUL"):
        pack([("region", value)])


def test_a_lone_surrogate_does_not_stop_anything() -> None:
    assert parse(pack([("a", "\ud800")])) == [("a", "?")]


def test_what_other_clients_write_is_read() -> None:
    block = (
        b"NATS/1.0\r\nA: one\r\nB:two\r\nC:\tthree\r\nA: four\r\nno colon\r\nD:  x \r\nE: \xff\r\nF:\r\n G : y\r\n\r\n"
    )
    expected = [("A", "one"), ("B", "two"), ("C", "three"), ("A", "four"), ("D", " x "), ("E", "\ufffd"), ("F", "")]
    assert parse(block) == [*expected, ("G", "y")]


@given(st.binary())
def test_no_bytes_make_the_reader_fail(block: bytes) -> None:
    parse(block)
    status(block)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (b"NATS/1.0 503\r\n\r\n", (503, "")),
        (b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 5\r\n\r\n", (408, "Request Timeout")),
        (b"NATS/1.0 409 Message Size Exceeds MaxBytes\r\n\r\n", (409, "Message Size Exceeds MaxBytes")),
        (b"NATS/1.0\r\n503: x\r\n\r\n", None),
        (b"", None),
    ],
)
def test_the_status_of_the_server_is_told_from_headers(block: bytes, expected: tuple[int, str] | None) -> None:
    assert status(block) == expected


def test_headers_beside_a_status_are_read() -> None:
    assert parse(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 5\r\n\r\n") == [
        ("Nats-Pending-Messages", "5")
    ]
