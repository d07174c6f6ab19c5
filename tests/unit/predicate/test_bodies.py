"""Predicates about the bodies of messages."""

from __future__ import annotations

from decimal import Decimal

import pytest

from engine.message import Message
from routes.errors import PredicateError
from routes.predicate import evaluate, parse, trace
from routes.predicate.bodies import Body, Bounds, body_path
from routes.predicate.numbers import decimal
from routes.properties import JmsType, Property

T, F, U = True, False, None
ORDER = b"""{
  "id": 1780921717355446273, "price": 0.10, "rate": 1e2, "paid": true, "note": null, "size": "5",
  "customer": {"country": "DE", "odd name": "x", "gr\xc3\xb6\xc3\x9fe": 3},
  "lines": [{"sku": "A-1", "amount": 5}, {"sku": "B-2", "amount": 1000.5}, {"sku": "C-3"}],
  "empty": [], "list": [1, [2]]
}"""


def says(text: str, body: bytes | None = ORDER, **properties: object) -> bool | None:
    kinds = {int: JmsType.INT, float: JmsType.DOUBLE, str: JmsType.STRING, bool: JmsType.BOOLEAN}
    given = {name: Property(str(value), kinds[type(value)]) for name, value in properties.items()}
    return evaluate(parse(text), given.get, Body(body))


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("msg.body.customer.country = 'DE'", T), ("msg.body.customer.country==DE", T),
        ("'DE' = msg.body.customer.country", T),
        ("msg.body.customer.country IN ('FR', 'DE')", T), ("msg.body.customer.country LIKE 'D_'", T),
        ('msg.body.customer."odd name" = \'x\'', T), ("msg.body.customer.größe = 3", T),
        ('msg.body."customer"."country" = \'DE\'', T),
        ("msg.body.id = 1780921717355446273", T), ("msg.body.id = 1780921717355446272", F),
        ("msg.body.id IN (1780921717355446272, 1780921717355446273)", T), ("msg.body.id BETWEEN 1 AND 2e18", T),
        ("msg.body.price = 0.1", T), ("msg.body.price = 0.1f", T), ("msg.body.price > 0.09999999999999999999", T),
        ("msg.body.price = 0.10000000000000000001", F), ("msg.body.price = -0.1", F), ("-msg.body.price < 0", T),
        ("msg.body.rate = 100", T), ("msg.body.rate = 100.0", T), ("msg.body.rate + 1 = 101", T),
        ("msg.body.rate / 3 = 33", T),
        ("msg.body.size = '5'", T), ("msg.body.size = 5", F), ("msg.body.size > 4", F), ("msg.body.size + 1 = 6", U),
        ("msg.body.paid", T), ("NOT msg.body.paid", F), ("msg.body.paid = TRUE", T), ("msg.body.paid = 'true'", F),
        ("msg.body.note = 'x'", U), ("msg.body.note IS NULL", T), ("msg.body.none = 1", U), ("msg.body.none <> 1", U),
        ("msg.body.customer = 'x'", U), ("msg.body.lines IS NULL", T), ("msg.body.customer.country.code IS NULL", T),
        ("msg.body.lines[0].amount = 5", T), ("msg.body.lines[-1].sku = 'C-3'", T),
        ("msg.body.lines[3].sku IS NULL", T),
        ("msg.body.lines[-4].sku IS NULL", T), ("msg.body.customer[0] IS NULL", T), ("msg.body.list[1][0] = 2", T),
        ("msg.body.lines[*].amount > 1000", T), ("msg.body.lines[*].amount > 2000", U),
        ("msg.body.lines[*].sku = 'X'", F),
        ("NOT msg.body.lines[*].sku = 'X'", T), ("msg.body.lines[*].sku <> 'A-1'", T),
        ("msg.body.lines[*].amount IS NULL", T),
        ("msg.body.lines[*].sku IS NULL", F), ("msg.body.empty[*] = 1", U), ("msg.body.none[*] IS NULL", U),
        ("msg.body.lines[*].sku LIKE 'B%' AND msg.body.lines[*].amount = 5", T), ("msg.body.list[*][*] = 2", T),
        ("msg.text LIKE '%\"paid\": true%'", T), ("msg.text IS NULL", F), ("msg.body IS NULL", T),
    ],
)  # fmt: skip
def test_paths_have_the_values_of_the_document(text: str, truth: bool | None) -> None:
    assert says(text) is truth


@pytest.mark.parametrize(
    "body", [None, b"", b"order 5", b'{"id": 5', b"\xff", b'{"id": 5} x', '{"id": 5}'.encode("utf-16")]
)
def test_a_body_that_is_not_json_has_no_values(body: bytes | None) -> None:
    assert says("msg.body.id = 5", body) is U
    assert says("msg.body.id IS NULL", body) is T


def test_numbers_of_bodies_and_of_properties_are_compared() -> None:
    assert says("msg.body.price = p", p=0.1) is T
    assert says("msg.body.rate = p", p=100) is T
    assert says("p > msg.body.rate", p=100) is F
    assert says("msg.body.id = p", p=1780921717355446273.0) is T


def test_a_single_value_is_a_document() -> None:
    assert says("msg.body = 5", b" 5 ") is T
    assert says("msg.body==five", b'"five"') is T
    assert says("msg.body[*] = 2", b"[1, 2]") is T


def test_the_text_of_a_body_is_no_json() -> None:
    assert says("msg.text = 'order 5'", b"order 5") is T
    assert says("msg.text IS NULL", b"\xff") is T
    assert says("msg.text = ''", b"") is T


def test_a_map_message_is_an_object() -> None:
    message = Message(b'{"amount": 5}')
    assert evaluate(parse("msg.body.amount = 5"), message.lookup, message.content) is T


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", "5"), ("-0", "0"), ("1.50", "1.5"), ("1e2", "100"), ("0e999999999999", "0"), ("1" + "0" * 50, "1e50"),
        ("0." + "0" * 50 + "1", "1e-51"), ("9" * 38, "9" * 38), ("9" * 39, None), ("1e6144", "1e6144"),
        ("1e6145", None),
        ("10e6144", None), ("0.1e6145", "1e6144"), ("1e-6145", None), ("1" + "0" * 7000, None),
        ("1e" + "0" * 7000 + "5", "1e5"),
        ("1" + "0" * 7000 + "e-7000", "1"), ("1e99999999999999999999", None), ("1e-99999999999999999999", None),
    ],
)  # fmt: skip
def test_numbers_have_38_digits(text: str, expected: str | None) -> None:
    assert decimal(text) == (None if expected is None else Decimal(expected))


def test_what_exceeds_the_bounds_has_no_value() -> None:
    bounds = Bounds(size=30, depth=2, elements=3)

    def read(text: str, body: bytes) -> bool | None:
        return evaluate(parse(text), lambda _: None, Body(body, bounds))

    assert read("msg.body.a = 5", b'{"a":5}'.ljust(30)) is T
    assert read("msg.body.a = 5", b'{"a":5}'.ljust(31)) is U
    assert read("msg.text LIKE '%'", b"x" * 31) is U
    assert read("msg.body[0][0] = 5", b"[[5]]") is T
    assert read("msg.body[0][0][0] = 5", b"[[[5]]]") is U
    assert read("msg.body.a = '[[[['", b'{"a":"[[[["}') is T
    assert read("msg.body[*] = 3", b"[1,2,3,4]") is T
    assert read("msg.body[*] = 4", b"[1,2,3,4]") is U
    assert read("msg.body[*] = 4", b"[1,2,3]") is F


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("msg.body. = 5", "1: error: msg.body. is not a path into the body (write msg.body.name"),
        ("body.a = 5", "1: error: body.a is not a path into the body (write msg.body.name"),
        ("msg.body.a[*] = msg.body.b[*]", "17: error: a comparison has one path that names several values"),
        ("msg.body.a[1234567890] = 5", "12: error: no body has an element 1234567890"),
        ("msg.text > 5 + 1", "1: error: > compares numbers, found the text msg.text"),
        ("msg.text = 5", "12: error: msg.text is text, never the number 5 (compare it with a text"),
        ("msg.text IN ('x', 5)", "19: error: msg.text is text, never the number 5"),
        ("msg.bodies = 5", "1: error: there is no msg.bodies"),
    ],
)
def test_what_is_no_path_is_told(text: str, message: str) -> None:
    with pytest.raises(PredicateError) as raised:
        parse(text)
    assert message in str(raised.value)


def test_a_trace_shows_the_element_for_which_a_condition_is_true() -> None:
    found = trace(parse("msg.body.lines[*].amount > 1000 AND msg.body.rate = 100"), lambda _: None, Body(ORDER))
    assert [(part.text, part.parts[0].value, part.parts[0].place) for part in found.parts] == [
        ("msg.body.lines[*].amount > 1000", 1000.5, "msg.body.lines[1].amount"),
        ("msg.body.rate = 100", 100, ""),
    ]


def test_a_value_has_a_text_for_keys_and_destinations() -> None:
    body = Body(ORDER)
    paths = (
        "id",
        "price",
        "rate",
        "paid",
        "size",
        "note",
        "customer",
        "none",
        "lines[1].amount",
        'customer."odd name"',
    )
    texts = [body.text_under(path) for name in paths if (path := body_path(f"msg.body.{name}")) is not None]
    assert texts == ["1780921717355446273", "0.1", "100", "true", "5", None, None, None, "1000.5", "x"]
    assert body_path("region") is None


@pytest.mark.parametrize(
    "name", ["msg.body", "msg.body.a.b", 'msg.body."a b"."c""d"', "msg.body[0].a[-1]", 'msg.body."größe"']
)
def test_a_path_is_spelled_as_it_is_read(name: str) -> None:
    assert str(body_path(name)) == name
