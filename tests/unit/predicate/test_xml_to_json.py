"""XML documents become JSON by one rule."""

from __future__ import annotations

import pytest

from routes.xml_to_json import xml_to_json


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("<a/>", '{"a":""}'),
        ("<a> 5 </a>", '{"a":" 5 "}'),
        ('<a b="1" c="x"/>', '{"a":{"@b":"1","@c":"x"}}'),
        ('<a c="2" b="1">x</a>', '{"a":{"@c":"2","@b":"1","#text":"x"}}'),
        ("<a> <b>1</b>\n<c/> </a>", '{"a":{"b":"1","c":""}}'),
        ("<a><b>1</b><c>2</c><b>3</b><b/></a>", '{"a":{"b":["1","3",""],"c":"2"}}'),
        ("<a>x<b>1</b>y</a>", '{"a":{"b":"1","#text":"xy"}}'),
        ('<p:a xmlns:p="u" p:b="1" b="2"><p:c/><c/></p:a>', '{"a":{"@b":"1","c":["",""]}}'),
        ('<a><![CDATA[<"ä\\]]>\t\n</a>', '{"a":"<\\"ä\\\\\\t\\n"}'),
        ("<a><b>1</b></a><!-- -->", '{"a":{"b":"1"}}'),
    ],
)
def test_a_document_has_one_json(document: str, expected: str) -> None:
    assert (xml_to_json(document.encode()) or b"").decode() == expected


@pytest.mark.parametrize(
    "content",
    [b"", b"x", b"<a>", b"<!DOCTYPE a><a/>", b"<a>" * 101 + b"</a>" * 101, b"<a>" + b" " * 2**20 + b"</a>", b"\0<a/>"],
)
def test_what_cannot_be_read_has_none(content: bytes) -> None:
    assert xml_to_json(content) is None
