"""Masks hide the values under their paths, and change no other byte."""

from __future__ import annotations

import hmac
import json

import pytest

from routes.keys.language import BODY_PATHS
from routes.predicate.bodies import BOUNDS
from routes.predicate.mask import Mask, MaskMethod

SECRET = "0123456789abcdef0123456789abcdef"


def mask(paths: str, method: str = "replace") -> Mask:
    return Mask(BODY_PATHS.parse(paths), MaskMethod(method), SECRET)


def digest(content: str) -> str:
    return f'"{hmac.digest(SECRET.encode(), content.encode(), "sha256").hex()}"'


@pytest.mark.parametrize(
    ("paths", "before", "after"),
    [
        ("msg.body.a", '{"a":1}', '{"a":"***"}'),
        ("msg.body.a", ' { "a" :\t1e0 , "b": 1.00 }\n', ' { "a" :\t"***" , "b": 1.00 }\n'),
        ("msg.body.a", '\ufeff{"a":null}', '\ufeff{"a":"***"}'),
        ("msg.body.a", '{"a":1,"b":2,"a":{"a":3}}', '{"a":"***","b":2,"a":"***"}'),
        ("msg.body.a", r'{"\u0061":1,"A":2}', r'{"\u0061":"***","A":2}'),
        ("msg.body.a.b", '{"a":{"a":1,"b":[1,{"b":2}]},"b":3}', '{"a":{"a":1,"b":"***"},"b":3}'),
        ("msg.body.a.b", '{"a":[{"b":1}],"b":2}', '{"a":[{"b":1}],"b":2}'),
        ("msg.body.a, msg.body.a.b", '{"a":{"b":1}}', '{"a":"***"}'),
        ("msg.body.a.b, msg.body.a", '{"a":{"b":1}}', '{"a":"***"}'),
        ("msg.body[*].a, msg.body[0].b", '[{"a":1,"b":2},{"a":3,"b":4}]', '[{"a":"***","b":"***"},{"a":"***","b":4}]'),
        ("msg.body[-1], msg.body[0][0]", "[[1,2],[3,4]]", '[["***",2],"***"]'),
        ("msg.body[-3], msg.body[5]", "[1,2]", "[1,2]"),
        ("msg.body[-1][-1]", "[[1],[2,[3]]]", '[[1],[2,"***"]]'),
        ("msg.body.a", "[1]", "[1]"),
        ("msg.body[*]", '{"a":1}', '{"a":1}'),
        ("msg.body.a", '"a"', '"a"'),
        ('msg.body."a, b"', '{"a, b":1,"a":2}', '{"a, b":"***","a":2}'),
        ("msg.body.a", r'{"x":"\"a\":1","a":"}"}', r'{"x":"\"a\":1","a":"***"}'),
        ("msg.body.größe", '{"größe":1,"\U0001f600":2}', '{"größe":"***","\U0001f600":2}'),
    ],
)
def test_values_are_replaced(paths: str, before: str, after: str) -> None:
    assert mask(paths).body(before.encode()) == after.encode()


@pytest.mark.parametrize(
    ("paths", "body", "values"),
    [
        ("msg.body.a", '\ufeff{"a":1.50,"b":2,"a":"x\\u0041"}', ["1.50", "xA"]),
        ("msg.body.a", '{"a":{"n":1,"m":[true,null,"x",{"k":2}]}}', ["1", "true", "null", "x", "2"]),
        ("msg.body[*].a", '[{"a":""},{"a":[]},{"b":3}]', [""]),
        ("msg.body.a", "3", []),
    ],
)
def test_the_values_that_it_hides_are_told(paths: str, body: str, values: list[str]) -> None:
    assert list(mask(paths).hidden(body.encode())) == values


@pytest.mark.parametrize(
    ("paths", "before", "after"),
    [
        ("msg.body.a", '{"a":1}', "{}"),
        ("msg.body.a", '{ "a":1 }', "{  }"),
        ("msg.body.a", '{ "a":1, "b":2 }', '{ "b":2 }'),
        ("msg.body.b", '{ "a":1 , "b":2 }', '{ "a":1 }'),
        ("msg.body.b", '{"a":1 , "b":2,\n "c":3}', '{"a":1 , "c":3}'),
        ("msg.body.a", '{"a":1,"b":2,"a":3,"a":4}', '{"b":2}'),
        ("msg.body[*]", "[1, 2, 3]", "[]"),
        ("msg.body[0], msg.body[-1]", "[1, 2, 3]", "[2]"),
        ("msg.body[0], msg.body[-1]", "[1]", "[]"),
        ("msg.body[1],msg.body[2]", "[1,2,3,4]", "[1,4]"),
        ("msg.body[*].a", '[{"a":1},{"b":2,"a":[3]},3]', '[{},{"b":2},3]'),
        ("msg.body.a.b, msg.body.c", '{"a":{"b":1},"c":2}', '{"a":{}}'),
    ],
)
def test_values_are_removed_with_one_comma_each(paths: str, before: str, after: str) -> None:
    assert mask(paths, "remove").body(before.encode()) == after.encode()


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (r'"a\u00e9\n\/"', "aé\n/"),
        (r'"\ud83d\ude00\ud83d"', "\U0001f600\ufffd"),
        ('""', ""),
        ("1.50", "1.50"),
        ("null", "null"),
        ('{ "b": 1 }', '{ "b": 1 }'),
    ],
)
def test_hashes_are_of_decoded_strings_and_of_other_values_as_they_are_written(value: str, content: str) -> None:
    assert mask("msg.body.a", "hash").body(f'{{"a": {value}}}'.encode()) == f'{{"a": {digest(content)}}}'.encode()


@pytest.mark.parametrize(
    "body",
    [None, b"", b"x", b'{"a":1', b'{"a":1}x', b'{"a":1,}', b'{"a":"\xff"}', '{"a":1}'.encode("utf-16"), b'{"a":1}\0'],
)
def test_a_body_that_is_not_json_has_no_mask(body: bytes | None) -> None:
    assert mask("msg.body.a").body(body) is None


def test_a_body_above_the_bounds_has_no_mask() -> None:
    padded = b'{"a":1}' + b" " * BOUNDS.size
    assert mask("msg.body.a").body(padded) is None
    assert mask("msg.body.a").body(padded[: BOUNDS.size]) == b'{"a":"***"}' + padded[7 : BOUNDS.size]
    nested = "[" * BOUNDS.depth + "]" * BOUNDS.depth
    assert mask("msg.body[0]").body(nested.encode()) == b'["***"]'
    assert mask("msg.body[0]").body(f"[{nested}]".encode()) is None


def test_masked_bodies_stay_json() -> None:
    wide = json.dumps([{"a": n, "b": [n, n]} for n in range(1000)])
    for method in MaskMethod:
        left = mask("msg.body[*].a, msg.body[-1].b, msg.body[*].b[0]", method).body(wide.encode())
        assert left is not None
        found = json.loads(left)
        assert len(found) == 1000
        assert ("a" in found[5]) is (method is not MaskMethod.REMOVE)
        assert found[5]["b"][-1] == 5


@pytest.mark.parametrize(
    ("paths", "method", "body", "types", "left"),
    [
        ("msg.body.a", "replace", '{"a":1,"b":2}', "a=int,b=long", "a=string,b=long"),
        ("msg.body.a", "hash", '{"a":"AA==","b":2}', "b=long,a=bytes", "b=long,a=string"),
        ("msg.body.a", "remove", '{"a":1,"b":2}', "a=int,b=long", "b=long"),
        ("msg.body.a", "remove", '{"a":1}', "a=int", ""),
        ("msg.body.a.b", "remove", '{"a":{"b":1}}', "a=int", "a=int"),
        ('msg.body."a=b,c"', "remove", '{"a=b,c":1,"c":2}', "a%3Db%2Cc=int,c=int", "c=int"),
    ],
)
def test_types_of_a_map_belong_to_its_masked_body(paths: str, method: str, body: str, types: str, left: str) -> None:
    assert mask(paths, method).types(body.encode(), types, is_map=True) == left


@pytest.mark.parametrize(
    ("paths", "method", "body", "types", "left"),
    [
        ("msg.body[0]", "replace", "[1,2]", "int,long", "string,long"),
        ("msg.body[0], msg.body[-1]", "remove", "[1,2,3]", "int,long,byte", "long"),
        ("msg.body[*]", "remove", "[1,2]", "int,long", ""),
        ("msg.body[*]", "hash", "[1]", "int,long", "string,long"),
        ("msg.body[*]", "hash", "{}", "int", "int"),
        ("msg.body[0]", "replace", "[1]", "", ""),
    ],
)
def test_types_of_a_stream_belong_to_its_masked_body(paths: str, method: str, body: str, types: str, left: str) -> None:
    assert mask(paths, method).types(body.encode(), types, is_map=False) == left


def test_the_secret_is_not_shown() -> None:
    assert SECRET not in repr(mask("msg.body.a", "hash"))
