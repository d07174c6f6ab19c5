"""AMQP's type system: every constructor read and written, hostile bytes refused."""

from __future__ import annotations

import struct
import time
import tracemalloc
from contextlib import suppress
from math import isnan
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.codec import encoding
from engine.connectors.amqp.codec.decoding import MOST_DEPTH, decode
from engine.connectors.amqp.codec.encoding import encode
from engine.connectors.amqp.codec.values import (
    AmqpError,
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    type_name,
)

ID = UUID("00112233-4455-6677-8899-aabbccddeeff")

# Constructor by constructor, OASIS AMQP 1.0 part 1, 1.6. `True` where the form is the shortest one of its value.
VECTORS: list[tuple[str, str, Any, bool]] = [
    ("null", "40", None, True),
    ("boolean", "56 01", True, False),
    ("boolean, false", "56 00", False, False),
    ("boolean:true", "41", True, True),
    ("boolean:false", "42", False, True),
    ("ubyte", "50 ff", UByte(255), True),
    ("ushort", "60 ffff", UShort(65535), True),
    ("uint", "70 ffffffff", UInt(2**32 - 1), True),
    ("uint:smalluint", "52 ff", UInt(255), True),
    ("uint:uint0", "43", UInt(0), True),
    ("ulong", "80 ffffffffffffffff", ULong(2**64 - 1), True),
    ("ulong:smallulong", "53 ff", ULong(255), True),
    ("ulong:ulong0", "44", ULong(0), True),
    ("byte", "51 80", Byte(-128), True),
    ("short", "61 8000", Short(-32768), True),
    ("int", "71 80000000", Int(-(2**31)), True),
    ("int:smallint", "54 80", Int(-128), True),
    ("long", "81 8000000000000000", -(2**63), True),
    ("long:smalllong", "55 80", -128, True),
    ("float", "72 3fc00000", Float(1.5), True),
    ("double", "82 3ff8000000000000", 1.5, True),
    ("decimal32", "74 22500001", Decimal32(bytes.fromhex("22500001")), True),
    ("decimal64", "84 2238000000000001", Decimal64(bytes.fromhex("2238000000000001")), True),
    ("decimal128", "94" + "22" * 16, Decimal128(b"\x22" * 16), True),
    ("char", "73 0001f600", Char("😀"), True),
    ("char, half of a pair", "73 0000d83d", Char("\ud83d"), True),
    ("timestamp", "83 0000018bcfe56800", Timestamp(1_700_000_000_000), True),
    ("timestamp before 1970", "83 ffffffffffffffff", Timestamp(-1), True),
    ("uuid", "98 00112233445566778899aabbccddeeff", ID, True),
    ("binary:vbin8", "a0 02 00ff", b"\x00\xff", True),
    ("binary:vbin32", "b0 00000002 00ff", b"\x00\xff", False),
    ("binary:vbin32, large", "b0 00000100" + "07" * 256, b"\x07" * 256, True),
    ("string:str8-utf8", "a1 03 e282ac", "€", True),
    ("string:str32-utf8", "b1 00000003 e282ac", "€", False),
    ("string:str32-utf8, large", "b1 00000100" + "61" * 256, "a" * 256, True),
    ("symbol:sym8", "a3 01 61", Symbol("a"), True),
    ("symbol:sym32", "b3 00000001 61", Symbol("a"), False),
    ("symbol:sym32, large", "b3 00000100" + "61" * 256, Symbol("a" * 256), True),
    ("list:list0", "45", [], True),
    ("list:list8", "c0 04 02 55 01 40", [1, None], True),
    ("list:list8, empty", "c0 01 00", [], False),
    ("list:list32", "d0 00000007 00000002 55 01 40", [1, None], False),
    ("list:list32, large", "d0 00000104 00000100" + "40" * 256, [None] * 256, True),
    ("map:map8", "c1 05 02 a1 01 61 41", AmqpMap([("a", True)]), True),
    ("map:map32", "d1 00000008 00000002 a1 01 61 41", AmqpMap([("a", True)]), False),
    ("map, a key that is a list", "c1 03 02 45 40", AmqpMap([([], None)]), True),
    ("array:array8", "e0 0a 02 71 00000001 ffffffff", Array(0x71, (Int(1), Int(-1))), True),
    ("array:array32", "f0 0000000d 00000002 71 00000001 ffffffff", Array(0x71, (Int(1), Int(-1))), False),
    ("array of symbols", "e0 06 02 a3 01 61 01 62", Array(0xA3, (Symbol("a"), Symbol("b"))), True),
    ("array of lists", "e0 06 02 c0 01 00 01 00", Array(0xC0, ([], [])), True),
    ("array of maps", "e0 09 01 c1 06 02 a1 02 6162 41", Array(0xC1, (AmqpMap([("ab", True)]),)), True),
    ("array of arrays", "e0 06 01 e0 03 01 50 07", Array(0xE0, (Array(0x50, (UByte(7),)),)), True),
    ("array of nulls", "e0 02 03 40", Array(0x40, (None, None, None)), True),
    ("array without elements", "e0 02 00 71", Array(0x71, ()), True),
    ("array of described", "e0 05 02 00 53 24 45", Array(0x45, ([], []), ULong(0x24)), True),
    ("described", "00 53 24 45", Described(ULong(0x24), []), True),
    ("described by a symbol", "00 a3 01 78 a1 01 79", Described(Symbol("x"), "y"), True),
    ("described twice", "00 53 01 00 53 02 40", Described(ULong(1), Described(ULong(2), None)), True),
]


def same(one: Any, other: Any) -> bool:
    """Equal in value and in every type; NaN is itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return (isnan(one) and isnan(other)) or struct.pack(">d", one) == struct.pack(">d", other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize(("encoded", "value"), [row[1:3] for row in VECTORS], ids=[row[0] for row in VECTORS])
def test_each_constructor_is_read(encoded: str, value: Any) -> None:
    assert same(decode(bytes.fromhex(encoded)), value)


@pytest.mark.parametrize(
    ("encoded", "value"), [row[1:3] for row in VECTORS if row[3]], ids=[row[0] for row in VECTORS if row[3]]
)
def test_each_value_is_written_in_its_shortest_form(encoded: str, value: Any) -> None:
    assert encode(value).hex() == encoded.replace(" ", "")


@pytest.mark.parametrize(
    ("encoded", "problem"),
    [
        ("", "the value at byte 0 is cut off: there are 0 bytes"),
        ("71 0000", "the value at byte 0 is cut off: there are 3 bytes"),
        ("a1 05 61", "the value at byte 0 is cut off: there are 3 bytes"),
        ("b0 ffffffff 61", "the value at byte 0 is cut off: there are 6 bytes"),
        ("98 00", "the value at byte 0 is cut off: there are 2 bytes"),
        ("40 40", "1 bytes are left after the value, from byte 1"),
        ("3f", "there is no type 0x3f, at byte 0"),
        ("c0 02 01 3f", "there is no type 0x3f, at byte 3"),
        ("e0 03 01 3f 00", "there is no type 0x3f, at byte 3"),
        ("56 02", "a boolean is 0 or 1, not 2, at byte 1"),
        ("73 00110000", "there is no character 0x110000, at byte 1"),
        ("a1 02 c328", "a string in the value at byte 0 is not UTF-8: invalid continuation byte"),
        ("a3 01 e4", "a symbol is ASCII, not b'\\xe4'"),
        ("c0 05 01 40", "the value at byte 3 should end at byte 7, but there are 4 bytes"),
        ("c0 02 09 40", "the value at byte 3 says it has 9 elements, in 1 bytes"),
        ("d0 00000005 ffffffff 40", "the value at byte 9 says it has 4294967295 elements, in 1 bytes"),
        ("c0 03 01 40 40", "the elements of the value at byte 3 end at byte 4, its size says 5"),
        ("c0 03 01 a1 05 61", "the elements of the value at byte 3 end at byte 10, its size says 5"),
        ("c1 02 01 40", "the map at byte 3 has a key without a value"),
        ("f0 00000005 ffffffff 40", "the array at byte 9 says it has 4294967295 elements, and no bytes for them"),
        ("f0 00000006 7fffffff 50 01", "the value at byte 10 says it has 2147483647 elements, in 1 bytes"),
        ("e0 06 01 00 53 01 00 40", "the elements of the array at byte 3 are described twice"),
        ("00", "the value at byte 0 is cut off: there are 1 bytes"),
    ],
)
def test_what_is_no_value_is_said_with_its_place(encoded: str, problem: str) -> None:
    with pytest.raises(AmqpError) as raised:
        decode(bytes.fromhex(encoded))
    assert str(raised.value) == problem


@pytest.mark.parametrize("kind", ["list", "map", "described", "descriptor"])
def test_depth_is_bounded(kind: str) -> None:
    encoded = b"\x40"
    for _ in range(10 * MOST_DEPTH):
        if kind == "list":
            encoded = b"\xd0" + struct.pack(">II", len(encoded) + 4, 1) + encoded
        elif kind == "map":
            encoded = b"\xd1" + struct.pack(">II", len(encoded) + 5, 2) + b"\x40" + encoded
        else:
            encoded = b"\0\x40" + encoded if kind == "described" else b"\0" + encoded + b"\x40"
    with pytest.raises(AmqpError, match="nested deeper than 64"):
        decode(encoded)
    with pytest.raises(AmqpError, match="nested deeper than 64"):
        decode(b"\0" * 1_000_000)


def test_a_few_bytes_never_take_much_memory() -> None:
    arrays = bytes.fromhex("f0 00000005 00001000 40") * 1000
    listed = b"\xd0" + struct.pack(">II", len(arrays) + 4, 1000) + arrays
    tracemalloc.start()
    try:
        assert len(decode(listed)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (object(), "object has no AMQP type"),
        ({"a": 1}, "dict has no AMQP type, in {'a': 1}"),
        ([{"a": 1}], "dict has no AMQP type, in [{'a': 1}]"),
        (UByte(256), "does not fit its type ubyte"),
        (2**63, "does not fit its type long"),
        (ULong(-1), "does not fit its type ulong"),
        (Float(1e300), "does not fit its type float"),
        (Decimal32(b"123"), "decimal32 has 4 bytes, not 3"),
        (Char("ab"), "a char is one character, not 'ab'"),
        (Symbol("ä"), "'ä' is not a symbol: symbols are ASCII"),
        (Array(0x3F, ()), "there is no type 0x3f for the elements of an array"),
        (Array(0xA1, ("a" * 256,)), "an element of 256 bytes is too large for its array"),
        (Array(0xC0, ([None] * 256,)), "an element with 256 values is too large for its array"),
        (Array(0xE0, (Array(0x40, (None,) * 256),)), "an array is too large for the array that it is in"),
    ],
)
def test_what_cannot_be_written_is_said(value: Any, problem: str) -> None:
    with pytest.raises(AmqpError) as raised:
        encode(value)
    assert problem in str(raised.value)


def test_a_lone_surrogate_does_not_stop_anything() -> None:
    assert decode(encode("a\ud800")) == "a?"


def test_types_have_names_for_people() -> None:
    values = (None, True, 1, 1.0, "", b"", Described(1, 2), UByte(1), Symbol(""), ID, AmqpMap(), [], Array(0x40, ()))
    names = "null boolean long double string binary described_type ubyte symbol uuid map list array"
    assert [type_name(value).replace(" ", "_") for value in values] == names.split()


def ranged(kind: type, bits: int, *, signed: bool) -> st.SearchStrategy[Any]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high).map(kind)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
ASCII = st.text(st.characters(max_codepoint=127), max_size=300)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "ubyte": ranged(UByte, 8, signed=False),
    "ushort": ranged(UShort, 16, signed=False),
    "uint": ranged(UInt, 32, signed=False),
    "ulong": ranged(ULong, 64, signed=False),
    "byte": ranged(Byte, 8, signed=True),
    "short": ranged(Short, 16, signed=True),
    "int": ranged(Int, 32, signed=True),
    "long": ranged(int, 64, signed=True),
    "float": st.floats(width=32).map(Float),
    "double": st.floats(),
    "char": st.characters(exclude_categories=["Cs"]).map(Char),
    "timestamp": ranged(Timestamp, 64, signed=True),
    "uuid": st.uuids(),
    "binary": st.binary(max_size=300),
    "string": TEXT,
    "symbol": ASCII.map(Symbol),
}
DECIMALS = st.one_of(
    st.binary(min_size=4, max_size=4).map(Decimal32),
    st.binary(min_size=8, max_size=8).map(Decimal64),
    st.binary(min_size=16, max_size=16).map(Decimal128),
)
ANY = st.one_of(*SCALARS.values(), DECIMALS)
ARRAYS = st.one_of(
    st.lists(SCALARS["int"], max_size=5).map(lambda found: Array(0x71, tuple(found))),
    st.lists(SCALARS["boolean"], max_size=300).map(lambda found: Array(0x56, tuple(found))),
    st.lists(TEXT, max_size=5).map(lambda found: Array(0xB1, tuple(found))),
    st.lists(ASCII.map(Symbol), max_size=5).map(lambda found: Array(0xB3, tuple(found), Symbol("kind"))),
    st.lists(st.lists(ANY, max_size=3), max_size=3).map(lambda found: Array(0xD0, tuple(found))),
)
VALUES = st.recursive(
    st.one_of(ANY, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(st.tuples(inner, inner), max_size=4).map(AmqpMap),
        st.builds(Described, inner, inner),
    ),
    max_leaves=20,
)


@given(VALUES)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    assert same(decode(encode(value)), value)


@given(st.one_of(st.binary(max_size=200), VALUES.map(encode).flatmap(lambda raw: st.binary().map(lambda b: raw + b))))
def test_any_bytes_are_a_value_or_a_named_error(data: bytes) -> None:
    started = time.monotonic()
    with suppress(AmqpError):
        value = decode(data)
        assert same(decode(encode(value)), value)
    assert time.monotonic() - started < 2


@given(VALUES, st.data())
def test_damaged_bytes_are_a_value_or_a_named_error(value: Any, data: st.DataObject) -> None:
    raw = bytearray(encode(value))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    for damaged in (bytes(raw), bytes(raw)[:at]):
        with suppress(AmqpError):
            decode(damaged)


def test_a_long_symbol_does_not_stay_in_memory() -> None:
    encoding._known_symbol.cache_clear()
    encode(Symbol("x" * 65))
    assert encoding._known_symbol.cache_info().currsize == 0
    encode(Symbol("x" * 64))
    assert encoding._known_symbol.cache_info().currsize == 1
