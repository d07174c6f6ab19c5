"""Bodies with structure as JSON with types beside it: nothing is lost with the types, little without."""

from __future__ import annotations

import json
from contextlib import suppress
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.jms_values import (
    CHAR,
    NULL,
    MapEntry,
    StructureError,
    decode_map,
    decode_object,
    decode_stream,
    encode_map,
    encode_object,
    encode_stream,
)

SINGLE = float(np.float32(0.1))

# kind, value, JSON, and what it is without its type
TABLE = [
    ("boolean", True, "true", "boolean"),
    ("byte", -128, "-128", "int"),
    ("short", 32767, "32767", "int"),
    ("int", 7, "7", "int"),
    ("long", 7, "7", "int"),
    ("long", 2**40, "1099511627776", "long"),
    ("float", SINGLE, "0.1", "double"),
    ("double", 0.1, "0.1", "double"),
    ("double", float("inf"), '"Infinity"', "string"),
    ("float", float("-inf"), '"-Infinity"', "string"),
    ("char", "x", '"x"', "string"),
    ("string", "Grüße", '"Grüße"', "string"),
    ("bytes", b"\x00\xff", '"AP8="', "string"),
    ("null", None, "null", "null"),
]


@pytest.mark.parametrize(("kind", "value", "text", "without"), TABLE)
def test_each_type_is_natural_json_and_comes_back(kind: str, value: object, text: str, without: str) -> None:
    body, types = encode_object(MapEntry(kind, value))  # type: ignore[arg-type]
    assert (body.decode(), types) == (text, kind)
    found = decode_object(body, types)
    assert found.kind == kind
    assert found.value == pytest.approx(value) if kind == "float" else found.value == value
    assert decode_object(body, "").kind == without


def test_a_number_that_is_none_is_a_text() -> None:
    body, types = encode_object(MapEntry("double", float("nan")))
    assert (body, types) == (b'"NaN"', "double")
    value = decode_object(body, types).value
    assert isinstance(value, float)
    assert isnan(value)


def test_a_map_is_an_object_and_a_stream_an_array() -> None:
    entries = {"a,b=%": MapEntry("int", 1), "c": MapEntry(CHAR, "x")}
    assert encode_map(entries) == (b'{"a,b=%":1,"c":"x"}', "a%2Cb%3D%25=int,c=char")
    assert decode_map(*encode_map(entries)) == entries
    stream = [MapEntry("short", 1), MapEntry(NULL, None), MapEntry("string", "x")]
    assert encode_stream(stream) == (b'[1,null,"x"]', "short,null,string")
    assert decode_stream(*encode_stream(stream)) == stream


@pytest.mark.parametrize(
    ("body", "types", "kind"),
    [
        ("300", "byte", "int"),
        ('"x"', "int", "string"),
        ("1", "char", "int"),
        ('"xy"', "char", "string"),
        ('"*"', "bytes", "string"),
        ("1e300", "float", "double"),
        ("true", "int", "boolean"),
        ("1", "double", "double"),
        ("1", "nonsense", "int"),
        ("null", "string", "null"),
    ],
)
def test_a_type_that_does_not_fit_is_not_taken(body: str, types: str, kind: str) -> None:
    assert decode_object(body.encode(), types).kind == kind


@pytest.mark.parametrize("types", ["", "int", "int,int,int,int", ",,", "a=int", "amqp"])
def test_types_of_another_length_do_no_harm(types: str) -> None:
    assert [entry.kind for entry in decode_stream(b"[1,2]", types)] == ["int", "int"]
    assert decode_map(b'{"a":1}', types) == {"a": MapEntry("int", 1)}


@pytest.mark.parametrize(
    ("read", "body", "problem"),
    [
        (decode_map, b"[]", "the body of a map message is a JSON object, not an array"),
        (decode_map, b'{"a":{}}', "value 'a' is an object, which no value of a JMS message can be"),
        (decode_stream, b"{}", "the body of a stream message is a JSON array, not an object"),
        (decode_stream, b"[[]]", "value 0 is an array, which no value of a JMS message can be"),
        (decode_stream, b"[99999999999999999999]", "value 0 is a number of more than 64 bits"),
        (decode_object, b"\xff", "the body is not JSON: it is not UTF-8"),
        (decode_object, b"NaN", "the body is not JSON: NaN is not a JSON number"),
        (decode_object, b"", "the body is not JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_what_is_no_such_body_is_said(read: object, body: bytes, problem: str) -> None:
    assert callable(read)
    with pytest.raises(StructureError) as raised:
        read(body, "")
    assert str(raised.value) == problem


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" * 100_000])
def test_hostile_json_is_a_named_error(body: bytes) -> None:
    with pytest.raises(StructureError):
        decode_stream(body, "")


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
ENTRIES = st.one_of(
    st.booleans().map(lambda value: MapEntry("boolean", value)),
    st.integers(-128, 127).map(lambda value: MapEntry("byte", value)),
    st.integers(-(2**15), 2**15 - 1).map(lambda value: MapEntry("short", value)),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: MapEntry("int", value)),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: MapEntry("long", value)),
    st.floats(width=32).map(lambda value: MapEntry("float", value)),
    st.floats().map(lambda value: MapEntry("double", value)),
    st.characters(exclude_categories=["Cs"]).map(lambda value: MapEntry("char", value)),
    TEXT.map(lambda value: MapEntry("string", value)),
    st.binary().map(lambda value: MapEntry("bytes", value)),
    st.just(MapEntry("null", None)),
)


def same(one: MapEntry, other: MapEntry) -> bool:
    if one.kind != other.kind:
        return False
    if isinstance(one.value, float) and isinstance(other.value, float):
        narrow = np.float32 if one.kind == "float" else np.float64
        return narrow(one.value).tobytes() == narrow(other.value).tobytes() or (isnan(one.value) and isnan(other.value))
    return type(one.value) is type(other.value) and one.value == other.value


@given(st.dictionaries(TEXT, ENTRIES, max_size=8))
def test_every_map_comes_back(entries: dict[str, MapEntry]) -> None:
    body, types = encode_map(entries)
    assert isinstance(json.loads(body), dict)
    found = decode_map(body, types)
    assert list(found) == list(entries)
    assert all(same(found[name], entries[name]) for name in entries)


@given(st.lists(ENTRIES, max_size=8))
def test_every_stream_comes_back(entries: list[MapEntry]) -> None:
    body, types = encode_stream(entries)
    found = decode_stream(body, types)
    assert len(found) == len(entries)
    assert all(map(same, found, entries))


@given(st.binary(), st.text())
def test_any_body_is_read_or_a_named_error(body: bytes, types: str) -> None:
    for read in (decode_map, decode_stream, decode_object):
        with suppress(StructureError):
            read(body, types)
