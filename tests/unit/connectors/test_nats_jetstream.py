"""Which subjects of a stream a source's subjects fit, and what acknowledgement subjects say."""

from __future__ import annotations

import pytest

from engine.connectors.nats.jetstream import _overlap
from engine.connectors.nats.stream import _lines, _place


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
        (b"$JS.ACK.S.C.1.17.5.1700000000123456789.9", (17, True)),
        (b"$JS.ACK.S.C.2.17.5.1700000000123456789.9", (17, False)),
        (b"$JS.ACK._.HASH.S.C.3.18.5.1700000000123456789.9.rnd", (18, False)),
        (b"$JS.ACK._.HASH.S.C.1.18.5.1700000000123456789.9", (18, True)),
        (b"$JS.ACK.S", (-1, True)),
        (b"$JS.ACK.S.C.1.x.5.1.9", (-1, True)),
    ],
)
def test_an_acknowledgement_subject_names_its_message(reply: bytes, expected: tuple[int, bool]) -> None:
    assert _place(reply) == expected


def test_answers_to_deliveries_are_lines_of_the_protocol() -> None:
    assert _lines([b"a", b"b"], b"-NAK") == b"PUB a 4\r\n-NAK\r\nPUB b 4\r\n-NAK\r\n"
    assert _lines([b"a"], b"") == b"PUB a 0\r\n\r\n"
    assert _lines([], b"-NAK") == b""
