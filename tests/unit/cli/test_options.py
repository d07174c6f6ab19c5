"""How the values of options are read."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.cli.options import read_body, read_headers, read_message, read_properties, read_seconds
from engine.errors import UsageError
from routes.properties import JmsType, Property


def test_header_options_take_both_spellings_of_a_field() -> None:
    assert read_headers(["JMSType=a", "CorrelationId=1=2"]) == {"JMSType": "a", "JMSCorrelationID": "1=2"}


def test_a_header_option_that_is_no_jms_field_points_to_property() -> None:
    with pytest.raises(UsageError, match=r"--header region: not a JMS field; use --property"):
        read_headers(["region=emea"])


def test_properties_are_untyped_unless_declared() -> None:
    assert read_properties(["region=emea"], ["n:int=5", "a:b:long=6"]) == {
        "region": Property("emea"),
        "n": Property("5", JmsType.INT),
        "a:b": Property("6", JmsType.LONG),
    }


@pytest.mark.parametrize("pair", ["n=5", "n:integer=5", "int=5"])
def test_a_typed_property_without_a_known_type_says_which_there_are(pair: str) -> None:
    with pytest.raises(UsageError, match=r"expected NAME:TYPE=VALUE with TYPE one of boolean, byte, short"):
        read_properties([], [pair])


@pytest.mark.parametrize("pair", ["region", "=emea"])
def test_a_property_without_name_or_value_is_refused(pair: str) -> None:
    with pytest.raises(UsageError, match=f"'{pair}': expected NAME=VALUE"):
        read_properties([pair])


def test_a_body_from_a_file_is_text_only_where_it_is_utf8_without_nul(tmp_path: Path) -> None:
    file = tmp_path / "body"
    for content, text in ((b"hell\xc3\xb6", True), (b"\xff\xfe", False), (b"a\0b", False)):
        file.write_bytes(content)
        assert read_body(None, str(file)) == (content, text)


def test_a_body_comes_from_standard_input_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"\r\n\xff")))
    assert read_body(None, "-") == (b"\r\n\xff", False)


def test_a_body_given_twice_or_in_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        read_body("a", "b")
    with pytest.raises(UsageError, match="No such file or directory"):
        read_body(None, str(tmp_path / "missing"))


def test_jmsx_fields_may_be_given_as_properties() -> None:
    message = read_message({"JMSType": "a"}, ["JMSXGroupID=g", "region=emea"], [], None, None)
    assert message.headers == {"JMSXGroupID": "g", "JMSType": "a"}
    assert message.properties == {"region": Property("emea")}


@pytest.mark.parametrize(("text", "seconds"), [("5", 5.0), ("0.5s", 0.5), ("500ms", 0.5), ("2m", 120.0), (30.0, 30.0)])
def test_a_timeout_is_seconds_or_has_a_unit(text: str | float, seconds: float) -> None:
    assert read_seconds(text) == seconds
