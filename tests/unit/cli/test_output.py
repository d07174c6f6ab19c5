"""What people see: safe text, bytes, times, the line of an error."""

from __future__ import annotations

import ast
import json
from math import inf, nan
from pathlib import Path

import pytest

import engine.cli
from engine.cli.output import BodyFormat, complain, json_bytes, record_lines, show_bytes
from engine.printable import json_text, printable, shortened
from engine.record import Record


def test_a_long_text_is_cut_and_tells_its_length() -> None:
    assert shortened("abc", 3) == "abc"
    assert shortened("abcd" * 1000, 3) == "abc … (4,000 characters in all)"


def test_long_names_and_values_of_headers_are_cut() -> None:
    record = Record(b"k" * 900_000, b"v" * 900_000, ((900_000 * "n", b"w" * 900_000),))
    assert sum(map(len, record_lines(record))) < 20_000


def test_text_keeps_lines_and_tabs_but_no_character_that_steers_a_terminal() -> None:
    assert printable("a\n\tb \x1b[2J\x07 é \u202e") == "a\n\tb \\x1b[2J\\x07 é \\u202e"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(none)"),
        (b"", ""),
        ("grüße".encode(), "grüße"),
        (b"two\r\nlines", "two\r\nlines"),
        (b"\xff\x00\x01\x02\x03", "hex:ff000102 03"),
        (b"bell\x07", "hex:62656c6c 07"),
    ],
)
def test_bytes_are_shown_as_text_where_they_are_printable_and_else_in_hex(value: bytes | None, shown: str) -> None:
    assert show_bytes(value) == shown


def test_bytes_are_shown_in_base64_on_demand() -> None:
    assert show_bytes(b"\xff\x00", BodyFormat.BASE64) == "base64:/wA="


def test_long_bytes_are_cut_at_a_character_and_say_their_size() -> None:
    assert show_bytes("éééé".encode(), limit=5) == "éé … (8 bytes in all)"
    assert show_bytes(b"\xff" * 8, limit=2) == "hex:ffff … (8 bytes in all)"


def test_json_says_which_bytes_are_no_text() -> None:
    assert json_bytes("body", b"text") == {"body": "text"}
    assert json_bytes("body", b"\xff") == {"body_base64": "/w=="}
    assert json_bytes("body", None) == {"body": None}


def test_an_error_names_the_program_unless_it_names_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    complain("topic 'orders' does not exist")
    complain("jms-bridge.properties:3:7: error: unknown key 'rotes'")
    assert capsys.readouterr().err == (
        "jms-bridge: topic 'orders' does not exist\njms-bridge.properties:3:7: error: unknown key 'rotes'\n"
    )


@pytest.mark.parametrize("text", ["\x9b2J", "\x85", "\x7f", "\x1b]0;", "\u202e", "\ud800", "grüße \n"])
def test_json_keeps_text_and_has_no_character_that_steers_a_terminal(text: str) -> None:
    line = json_text({text: [text]})
    assert line == printable(line)
    assert json.loads(line) == {text: [text]}


def test_json_has_null_for_numbers_that_json_has_not() -> None:
    assert json_text({"a": nan, "b": [inf, 1.5], "c": (-inf,)}) == '{"a": null, "b": [null, 1.5], "c": [null]}'


def test_all_json_of_commands_is_written_in_one_way() -> None:
    others = [
        f"{path.name}:{node.lineno}"
        for path in Path(str(engine.cli.__file__)).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "dumps"
    ]
    assert others == []
