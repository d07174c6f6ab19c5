"""The properties file as text: entries, places, and what is wrong before any key is understood."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from javaproperties import InvalidUEscapeError, KeyValue, parse

from routes.config.reader import read, read_text
from routes.errors import Level


def places(text: str) -> list[tuple[str, str, tuple[int, int], list[tuple[int, int]]]]:
    return [(e.key, e.value, tuple(e.key_spot), [tuple(s) for s in e.value_spots]) for e in read_text(text).entries]


@pytest.mark.parametrize(
    ("text", "key", "value", "value_spots"),
    [
        ("a=xy", (1, 1), "xy", [(1, 3), (1, 4), (1, 5)]),
        ("\n# note\n  a : x\n", (3, 3), "x", [(3, 7), (3, 8)]),
        ("a x", (1, 1), "x", [(1, 3), (1, 4)]),
        ("a=", (1, 1), "", [(1, 3)]),
        ("a", (1, 1), "", [(1, 2)]),
        ("a=x\\\n   y", (1, 1), "xy", [(1, 3), (2, 4), (2, 5)]),
        ("a=x\\\r\n\ty\\\r\nz", (1, 1), "xyz", [(1, 3), (2, 2), (3, 1), (3, 2)]),
        ("a\\\n  =x", (1, 1), "x", [(2, 4), (2, 5)]),
        ("a=\\u0041\\tB", (1, 1), "A\tB", [(1, 3), (1, 9), (1, 11), (1, 12)]),
        ("a=\\ud83d\\ude00!", (1, 1), "😀!", [(1, 3), (1, 15), (1, 16)]),
        ("a=x\\\\y", (1, 1), "x\\y", [(1, 3), (1, 4), (1, 6), (1, 7)]),
        ("a\\ b\\==x", (1, 1), "x", [(1, 8), (1, 9)]),
        ("a=😀x", (1, 1), "😀x", [(1, 3), (1, 4), (1, 5)]),
        ("a==x", (1, 1), "=x", [(1, 3), (1, 4), (1, 5)]),
        ("\ra=x\rb=y", (2, 1), "x", [(2, 3), (2, 4)]),
        ("\\\n\\\n a=x", (3, 2), "x", [(3, 4), (3, 5)]),
        ("\u2028=x\x85", (1, 1), "x\x85", [(1, 3), (1, 4), (1, 5)]),
    ],
)
def test_each_character_of_a_value_has_its_line_and_column(
    text: str, key: tuple[int, int], value: str, value_spots: list[tuple[int, int]]
) -> None:
    _, found, key_spot, spots = places(text)[0]
    assert (key_spot, found, spots) == (key, value, value_spots)


_PIECES = st.sampled_from(
    [
        "a",
        "k.b",
        "=",
        ":",
        " ",
        "\t",
        "\f",
        "\\",
        "\n",
        "\r",
        "\r\n",
        "#",
        "!",
        "é",
        "😀",
        "\u2028",
        "\\u0041",
        "\\ud83d",
        "\\ude00",
        "\\uZ",
        "\x85",
        "0",
    ]
)


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_any_text_reads_as_the_library_reads_it(text: str) -> None:
    document = read_text(text)
    try:
        expected = [(kv.key, kv.value) for kv in parse(text) if isinstance(kv, KeyValue)]
    except InvalidUEscapeError:
        assert any(fault.level is Level.ERROR for fault in document.faults)
        return
    halves = [kv for kv in expected if any("\ud800" <= char <= "\udfff" for char in "".join(kv))]
    assert [(e.key, e.value) for e in document.entries] == [kv for kv in expected if kv not in halves]


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_places_lead_back_to_the_characters_they_stand_for(text: str) -> None:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for entry in read_text(text).entries:
        assert len(entry.value_spots) == len(entry.value) + 1
        for char, spot in zip(entry.value, entry.value_spots, strict=False):
            assert lines[spot.line - 1][spot.column - 1] in (char, "\\")


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_bytes(codecs.BOM_UTF8 + b"a=x")
    assert [(e.key, e.key_spot.column) for e in read(file).entries] == [("a", 1)]


@pytest.mark.parametrize("start", [b"", codecs.BOM_UTF8])
def test_the_first_byte_that_is_not_utf8_is_named_by_line_and_column(tmp_path: Path, start: bytes) -> None:
    file = tmp_path / "a.properties"
    file.write_bytes(start + "ü=ü\r\nname=caf".encode() + b"\xe9\n")
    (fault,) = read(file).faults
    hint = r"save the file as UTF-8, or write the character as \uXXXX"
    assert str(fault) == f"{file}:2:9: error: the file is not UTF-8 from here on ({hint})"


def test_a_file_that_is_too_large_is_a_fault_and_not_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "a.properties"
    file.write_bytes(b"a=" + b"x" * 10_000_000)
    for path in (file, Path("/dev/zero")):
        document = read(path)
        assert [str(fault) for fault in document.faults] == [
            f"{path}: error: the file has more than 4 MiB (it is hardly a configuration)"
        ]
        assert not document.readable


def test_a_bad_escape_is_a_fault_and_the_rest_is_read(tmp_path: Path) -> None:
    document = read_text("a=1\n  b=x\\\n  y\\u00g1\n# \\u in a comment is fine\nc=3")
    assert [(e.key, e.key_spot.line) for e in document.entries] == [("a", 1), ("c", 5)]
    assert [str(fault) for fault in document.faults] == [
        r"3:4: error: \u is not followed by four hexadecimal digits (as in \u00e9)"
        "\n      y\\u00g1\n       ^"
    ]


def test_half_of_a_surrogate_pair_is_a_fault() -> None:
    (fault,) = read_text("a=x\\ud83dy").faults
    assert (fault.line, fault.column, fault.message) == (1, 4, "half of a surrogate pair")


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (r"a=C:\temp\new", [5]),
        (r"a=x LIKE 'a\_b'", [12]),
        (r"a=C:\\temp", []),
        (r"a=\=\:\#\!\ x\u0041\"", []),
        (r"a\tb=x", []),
    ],
)
def test_a_backslash_that_vanishes_is_a_warning(text: str, columns: list[int]) -> None:
    faults = read_text(text).faults
    assert [(fault.level, fault.column) for fault in faults] == [(Level.WARNING, column) for column in columns]


def test_blanks_at_the_end_of_a_value_are_a_warning() -> None:
    (fault,) = read_text("a=x y \t").faults
    assert (fault.level, fault.line, fault.column) == (Level.WARNING, 1, 6)


def test_a_missing_file_a_directory_and_an_unreadable_one_are_told_apart(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    messages = [read(path).faults[0].message for path in (tmp_path / "none", tmp_path, loop)]
    assert messages[:2] == ["there is no such file", "this is a directory, not a properties file"]
    assert messages[2].startswith("the file cannot be read: ")
