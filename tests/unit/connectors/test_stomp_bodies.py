"""Texts in modified UTF-8 and map messages as XML: bodies that ActiveMQ Classic 5.18.3 sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.stomp.modified_utf8 import from_modified_utf8, to_modified_utf8
from engine.connectors.stomp.structured_bodies import MAP, OBJECT, structured
from engine.jms_values import StructureError
from engine.message import BodyType, Message

CLASSIC_ENTRIES = (
    b"<string>b</string>\n    <byte>-1</byte>",
    b"<string>c</string>\n    <char>&lt;</char>",
    b"<string>d</string>\n    <double>NaN</double>",
    b"<string>e</string>\n    <double>1.0E300</double>",
    b"<string>f</string>\n    <float>0.1</float>",
    b"<string>h</string>\n    <short>3</short>",
    b"<string>i</string>\n    <int>5</int>",
    b"<string>l</string>\n    <long>1099511627776</long>",
    b"<string>odd</string>\n    <string>&lt;a&gt;&amp;&quot;\n&#x1; \xc3\xa9]]&gt;</string>",
    b"<string>empty</string>\n    <string></string>",
    b"<string>s</string>\n    <string>007</string>",
    b"<string>null</string>\n    <null/>",
    b"<string>t</string>\n    <boolean>true</boolean>",
    b"<string>y</string>\n    <byte-array>AAEC</byte-array>",
)
CLASSIC_MAP = (
    b"<map>" + b"".join(b"\n  <entry>\n    " + each + b"\n  </entry>" for each in CLASSIC_ENTRIES) + b"\n</map>"
)


@given(st.text())
def test_modified_utf8_is_read_as_it_is_written(text: str) -> None:
    data = text.encode()

    modified = to_modified_utf8(data)

    assert b"\0" not in modified
    assert not any(byte >= 0xF0 for byte in modified)
    assert from_modified_utf8(modified) == data
    # As Java writes it: two bytes a character, of which each is written by itself.
    units = text.encode("utf-16-be")
    java = [chr(units[at] << 8 | units[at + 1]).encode("utf-8", "surrogatepass") for at in range(0, len(units), 2)]
    assert modified == b"".join(java).replace(b"\0", b"\xc0\x80")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_utf8_is_read_unchanged(text: str) -> None:
    assert from_modified_utf8(text.encode()) == text.encode()


@given(st.binary())
def test_any_bytes_are_read_as_a_text_or_left_unchanged(data: bytes) -> None:
    found = from_modified_utf8(data)

    assert found == data or from_modified_utf8(to_modified_utf8(found)) == found


def test_a_map_of_classic_has_the_values_and_types_of_its_sender() -> None:
    found = structured(Message(CLASSIC_MAP), MAP)

    assert found.body_type is BodyType.MAP
    assert json.loads(found.body) == {
        "b": -1,
        "c": "<",
        "d": "NaN",
        "e": 1e300,
        "empty": "",
        "f": 0.1,
        "h": 3,
        "i": 5,
        "l": 1 << 40,
        "null": None,
        "odd": '<a>&"\n\x01 é]]>',
        "s": "007",
        "t": True,
        "y": "AAEC",
    }
    assert found.body_types == (
        "b=byte,c=char,d=double,e=double,empty=string,f=float,h=short,i=int,l=long,null=null,odd=string,s=string,"
        "t=boolean,y=bytes"
    )


@pytest.mark.parametrize(("xml", "body"), [(b"<map/>", b"{}"), (b"<map>\n</map>", b"{}")])
def test_a_map_of_classic_may_be_empty(xml: bytes, body: bytes) -> None:
    assert structured(Message(xml), MAP).body == body


def test_an_object_of_classic_that_is_one_value_has_it() -> None:
    found = structured(Message(b"<string>text object</string>"), OBJECT)

    assert (found.body, found.body_type, found.body_types) == (b'"text object"', BodyType.OBJECT, "string")


@pytest.mark.parametrize(
    ("xml", "transformation", "why"),
    [
        (b"<list/>", MAP, "whose XML is not a map"),
        (b"<map><entry><string>a</string><map/></entry></map>", MAP, "a value of type 'map'"),
        (b"<map><entry><int>1</int><int>1</int></entry></map>", MAP, "not simple, behind 0 others"),
        (b"<map><entry><string>a</string><int>x</int></entry></map>", MAP, "a value that is not of type int: 'x'"),
        (b"<map><entry><string>a</string><boolean>1</boolean></entry></map>", MAP, "not of type boolean"),
        (b"<map><entry><string>a</string><byte-array>!</byte-array></entry></map>", MAP, "not of type byte-array"),
        (b"<!DOCTYPE x [<!ENTITY a 'b'>]><map/>", MAP, "whose XML is not a map"),
        (b"<own.Type>\n  <x>5</x>\n</own.Type>", OBJECT, "not a single value"),
        (b"", OBJECT, "not a single value"),
        (b"\xff", MAP, "whose XML is not a map"),
    ],
)
def test_other_xml_is_no_message(xml: bytes, transformation: str, why: str) -> None:
    with pytest.raises(StructureError, match=why):
        structured(Message(xml), transformation)
