"""Whole messages from files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cli.options import read_file
from engine.cli.output import Item, item_json
from engine.errors import UsageError
from engine.message import BodyType, Message, Record
from routes.properties import JmsType, Property


def read(tmp_path: Path, content: str | bytes) -> Message:
    file = tmp_path / "message"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return Message.from_record(read_file(str(file)))


def test_json_gives_fields_properties_with_their_types_and_a_body(tmp_path: Path) -> None:
    message = read(
        tmp_path,
        """{"address": "queue:orders", "headers": {"JMSCorrelationID": 42}, "body": "hello",
            "properties": {"region": "emea", "n": 5, "ok": true, "price": {"type": "float", "value": "1.5"}}}""",
    )
    assert message == Message(
        b"hello",
        BodyType.TEXT,
        {"JMSMessageID": "ID:example", "JMSCorrelationID": "42", "JMSDestination": "queue:orders"},
        {
            "region": Property("emea"),
            "n": Property("5", JmsType.LONG),
            "ok": Property("true", JmsType.BOOLEAN),
            "price": Property("1.5", JmsType.FLOAT),
        },
    )


def test_text_gives_headers_up_to_the_empty_line_and_then_the_body(tmp_path: Path) -> None:
    message = read(tmp_path, "JMSDestination: queue:orders\r\nCorrelationId: 7\r\nregion: emea\r\n\r\nhello\n\nworld\n")
    assert message.body == b"hello\n\nworld"
    assert message.headers["JMSDestination"] == "queue:orders"
    assert message.headers["JMSCorrelationID"] == "7"
    assert message.properties == {"region": Property("emea")}


def test_what_the_commands_print_as_json_is_read_back_unchanged(tmp_path: Path) -> None:
    record = Record(b"k", b"\xff", (("jms.a", b"1"), ("jms.a", b"\xfe"), ("jms.none", None)))
    file = tmp_path / "record.json"
    file.write_text(item_json(Item("", {"topic": "t"}, record)))
    assert read_file(str(file)) == record


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"adress": "queue:a"}', "unknown member adress; known are address, headers, properties, body, body_type"),
        ('{"address": ', "Expecting value"),
        ('{"properties": {"n": {"type": "integer", "value": 5}}}', "'integer' is not a valid JmsType"),
        ('{"body_base64": "!"}', "is not a message"),
        ("just a line", "line 1: expected NAME: VALUE"),
        (b"\xff: 1\n\n", "can't decode byte"),
    ],
)
def test_a_file_that_is_no_message_is_one_clear_error(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, content)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"--file {tmp_path / 'message'}: ")


def test_nothing_is_cut_in_json() -> None:
    body = "x" * 100_000
    shown = json.loads(item_json(Item("", {}, Record(None, body.encode(), ()))))
    assert shown == {"key": None, "headers": [], "body": body}
