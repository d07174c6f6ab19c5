"""JSON texts become XML by one rule, the inverse of that by which XML becomes JSON."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routes.json_to_xml import json_to_xml
from routes.unconvertible import UnconvertibleBodyError
from routes.xml_to_json import xml_to_json

NAMES = st.text("aé_.-1", min_size=1).filter(lambda name: name[0] in "aé_")
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff", min_codepoint=32))
BLANKS = st.text("\t\n\r &<>\"'")


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """Draws an XML element, each character of its values as a reference."""
    name = draw(NAMES)
    values = draw(st.lists(TEXTS | BLANKS, max_size=2))
    attributes = "".join(f' {draw(NAMES)}{at}="{references(value)}"' for at, value in enumerate(values))
    parts = draw(
        st.lists(documents(depth - 1) | TEXTS.map(references) | BLANKS.map(references), max_size=4 * (depth > 0))
    )
    return f"<{name}{attributes}>{''.join(parts)}</{name}>"


def references(text: str) -> str:
    return "".join(f"&#{ord(each)};" for each in text)


@given(documents())
def test_the_json_of_a_document_stays_the_same(document: str) -> None:
    made = xml_to_json(document.encode())
    assert made is not None
    assert xml_to_json(json_to_xml(made)) == made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":""}', "<a></a>"),
        ('{"a":null}', "<a></a>"),
        ('{"a":{}}', "<a></a>"),
        ('{"a":1.50e2}', "<a>1.50e2</a>"),
        ('{"a":true}', "<a>true</a>"),
        (
            '{"a":{"#text":"x","b":1,"@c":null,"d":[],"e":[1,{"f":false}]}}',
            '<a c=""><b>1</b><e>1</e><e><f>false</f></e>x</a>',
        ),
        ('{"a":"]]>&\\r\\n\\"\'"}', "<a>]]&gt;&amp;&#13;\n\"'</a>"),
        ('{"a":{"@b":"<&\\r\\n\\t\\"\'"}}', '<a b="&lt;&amp;&#13;&#10;&#9;&quot;\'"></a>'),
        ('\ufeff{"größe":"\\ud83d\\ude00\\ud83d"}', "<größe>\U0001f600\ufffd</größe>"),
        ('{"a":1,"a":2}', "<a>2</a>"),
    ],
)
def test_a_text_has_one_document(text: str, expected: str) -> None:
    assert json_to_xml(text.encode()).decode() == expected


NOT_JSON = "it is not JSON of at most 1,048,576 bytes, with values nested at most 100 deep"
NO_ROOT = "it is not an object with one member, the root element"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", NOT_JSON),
        ("{", NOT_JSON),
        ('{"a":' * 101 + "1" + "}" * 101, NOT_JSON),
        ('{"a":1}' + " " * 2**20, NOT_JSON),
        ("{}", NO_ROOT),
        ("[1]", NO_ROOT),
        ('{"a":1,"b":2}', NO_ROOT),
        ('{"a":[1]}', "the root element 'a' is an array"),
        ('{"a":{"b":[[1]]}}', "the array 'b' has an array in it"),
        ('{"a b":1}', "'a b' cannot be the name of an element"),
        ('{"@a":1}', "'@a' cannot be the name of an element"),
        ('{"p:a":1}', "'p:a' cannot be the name of an element"),
        ('{"\\u0000ä' + "x" * 50 + '":1}', r"'\u0000\u00e4" + "x" * 38 + "…' cannot be the name of an element"),
        ('{"a":{"@xmlns":"u"}}', "'@xmlns' cannot be the name of an attribute"),
        ('{"a":{"@b":{}}}', "'@b' is an object or array and not a text"),
        ('{"a":{"#text":[]}}', "'#text' is an object or array and not a text"),
        ('{"a":"\\u001f"}', "U+001F cannot stand in XML"),
        ('{"a":{"' + "n" * 1000 + '":[' + "1," * 500_000 + "1]}}", "it has more than 4,194,304 bytes"),
    ],
)
def test_what_cannot_be_xml_has_a_reason(text: str, reason: str) -> None:
    with pytest.raises(UnconvertibleBodyError, match=f"^{re.escape(reason)}$"):
        json_to_xml(text.encode())
