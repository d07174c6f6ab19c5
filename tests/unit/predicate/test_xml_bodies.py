"""Predicates about XML bodies."""

from __future__ import annotations

import pytest

from routes.errors import PredicateError
from routes.predicate import evaluate, parse, trace
from routes.predicate.bodies import Body, Bounds, body_path

T, F, U = True, False, None
ORDER = """<?xml version="1.0"?>
<o:order xmlns:o="urn:orders" priority="urgent" o:größe="3">
  <id> 1780921717355446273 </id>
  <customer country="DE">ACME<!-- no text --> &amp; <b>Co</b></customer>
  <line sku="A-1"><amount>5</amount></line>
  <line sku="B-2"><amount>1000.50</amount></line>
  <line sku="C-3"/>
  <note><![CDATA[<x>]]></note>
</o:order>""".encode()


def says(text: str, body: bytes | None = ORDER) -> bool | None:
    return evaluate(parse(text), lambda _: None, Body(body))


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("xpath('/order/@priority') = 'urgent'", T),
        ("xpath( '/order/@priority' )==urgent", T),
        ("'urgent' = xpath('order/@priority')", T),
        ("xpath('/x:order/@y:größe') = '3'", T),
        ("xpath('/order/@none') = 'x'", U),
        ("xpath('/order/@none') IS NULL", T),
        ("xpath('/order/@o') IS NULL", T),
        ("xpath('/order/id') = '1780921717355446273'", F),
        ("xpath('number(/order/id)') = 1780921717355446273", T),
        ("xpath('number( /order/id )') = 1780921717355446272", F),
        ("xpath('number(/order/customer)') IS NULL", T),
        ("xpath('/order/customer') = 'ACME & Co'", T),
        ("xpath('/order/customer/text()') = 'ACME & '", T),
        ("xpath('/order/note') = '<x>'", T),
        ("xpath('/order/line/@sku') = 'B-2'", T),
        ("xpath('/order/line/@sku') <> 'B-2'", T),
        ("NOT xpath('/order/line/@sku') = 'X'", T),
        ("xpath('/order/line/@sku') IN ('X', 'C-3')", T),
        ("xpath('/order/line[1]/@sku') = 'B-2'", F),
        ("xpath('/order/line[ 2 ]/@sku') LIKE 'B%'", T),
        ("xpath('/order/line[last()]/@sku') = 'C-3'", T),
        ("xpath('/order/line[4]/@sku') IS NULL", T),
        ("xpath('number(/order/line/amount)') > 1000", T),
        ("xpath('number(/order/line/amount)') BETWEEN 6 AND 1000", F),
        ("xpath('number(/order/line[2]/amount)') * 2 = 2001", T),
        ("xpath('/order/line[3]') = ''", T),
        ("xpath('/order/line[3]/text()') IS NULL", T),
        ("xpath('/order/line[1]/@sku') = xpath('/order/line[2]/@sku')", F),
        ("xpath('/other') IS NULL", T),
        ("xpath IS NULL", T),
    ],
)
def test_paths_have_the_values_of_the_document(text: str, truth: bool | None) -> None:
    assert says(text) is truth


@pytest.mark.parametrize(
    "body",
    [
        None,
        b"",
        b'{"a": 5}',
        b"<a><b>5</a>",
        b"<!DOCTYPE a><a><b>5</b></a>",
        b'<!DOCTYPE a [<!ENTITY e "5">]><a><b>&e;</b></a>',
    ],
)
def test_a_body_that_is_not_xml_or_has_a_dtd_has_no_values(body: bytes | None) -> None:
    assert says("xpath('/a/b') = '5'", body) is U
    assert says("xpath('/a/b') IS NULL", body) is T


@pytest.mark.parametrize(
    "body",
    [
        "<a>größe</a>".encode(),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>größe</a>'.encode("iso-8859-1"),
        '<?xml version="1.0" encoding="ISO-8859-1"?><a>größe</a>'.encode(),
        '<?xml version="1.0" encoding="UTF-16"?><a>größe</a>'.encode("utf-16"),
        '<?xml version="1.0" encoding="UTF-16"?><a>größe</a>'.encode(),
    ],
)
def test_the_declared_encoding_counts_only_for_what_is_not_utf_8(body: bytes) -> None:
    assert says("xpath('/a') = 'größe'", body) is T


def test_what_exceeds_the_bounds_has_no_value() -> None:
    bounds = Bounds(size=60, depth=2, elements=3)

    def read(text: str, body: bytes) -> bool | None:
        return evaluate(parse(text), lambda _: None, Body(body, bounds))

    assert read("xpath('/a/b') = '5'", b"<a><b>5</b></a>".ljust(60)) is T
    assert read("xpath('/a/b') = '5'", b"<a><b>5</b></a>".ljust(61)) is U
    assert read("xpath('/a/b/c') = '5'", b"<a><b><c>5</c></b></a>") is U
    assert read("xpath('/a/b') = '3'", b"<a><b>1</b><b>2</b><b>3</b><b>4</b></a>") is T
    assert read("xpath('/a/b') = '4'", b"<a><b>1</b><b>2</b><b>3</b><b>4</b></a>") is U


def test_a_value_has_a_text_for_keys_and_destinations() -> None:
    names = (
        "/order/@priority",
        "/order/line/@sku",
        "number(/order/id)",
        "/order/none",
        "number(/order/line[2]/amount)",
    )
    paths = [body_path(f"xpath('{name}')") for name in names]
    assert [path and Body(ORDER).text_under(path) for path in paths] == [
        "urgent",
        "A-1",
        "1780921717355446273",
        None,
        "1000.5",
    ]


def test_a_trace_shows_the_element_for_which_a_condition_is_true() -> None:
    found = trace(parse("xpath('number(/order/line/amount)') > 1000"), lambda _: None, Body(ORDER))
    assert (found.parts[0].value, found.parts[0].place) == (1000.5, "xpath('number(/order/line[2]/amount[1])')")


@pytest.mark.parametrize("name", ["/a", "/a/b[1]/c[last()]", "/a/@b", "/a/b-c/text()", "number(/a/größe)"])
def test_a_path_is_spelled_as_it_is_read(name: str) -> None:
    assert str(body_path(f"xpath('{name}')")) == f"xpath('{name}')"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("xpath('//a') = 'x'", "8: error: // is not part of the paths here (name each step"),
        ("xpath('/a//b') = 'x'", "10: error: // is not part of the paths here"),
        ("xpath('a//b') = 'x'", "9: error: // is not part of the paths here"),
        ("xpath('/a[0]') = 'x'", "10: error: [0] is not a position (elements are counted from 1"),
        ("xpath('/a[@b=1]') = 'x'", "10: error: [@b=1] is not a position"),
        ("xpath('/a/*') = 'x'", "10: error: found '/*' (there are /child"),
        ("xpath('/a/@b/c') = 'x'", "13: error: found '/c'"),
        ("xpath('/@b') = 'x'", "8: error: the document has no attributes"),
        ("xpath('') = 'x'", "8: error: there is no path"),
        ("xpath('number(//a)') = 5", "15: error: // is not part"),
        ("xpath('number(r()') = 5", "16: error: found '('"),
        ("xpath('count(/a)') = 5", "13: error: found '(/a)'"),
        ("xpath(a) = 'x'", "7: error: xpath takes an expression in single quotes"),
        ("jsonpath('a') = 'x'", "1: error: there is no function jsonpath"),
        (
            "xpath('/a/b') > 5",
            "1: error: > compares numbers, found the text xpath('/a/b') (write xpath('num",
        ),
        ("xpath('/a/b') = 5", "17: error: xpath('/a/b') is text, never the number 5"),
        ("xpath('/a/b') IN ('x', 5)", "24: error: xpath('/a/b') is text, never the number 5"),
        ("xpath('number(/a)') = 'x'", "23: error: xpath('number(/a)') is a number, never the text 'x'"),
        ("xpath('number(/a)') LIKE 'x'", "1: error: LIKE asks for texts"),
        ("NOT xpath('/a/b')", "5: error: NOT goes before a condition, found the text xpath('/a/b') (compare it"),
        ("xpath('/a/b') = xpath('/a/c')", "17: error: a comparison has one path that names several values"),
    ],
)
def test_what_is_no_path_is_told(text: str, message: str) -> None:
    with pytest.raises(PredicateError) as raised:
        parse(text)
    assert message in str(raised.value)
