"""Names of message files: both examples of DropboxMQ's documentation, each row of its tables, and any name at all."""

from __future__ import annotations

import string
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.dropbox.file_name import (
    CLASSES,
    LONG,
    LONGEST_BYTES,
    DropboxName,
    decode,
    encode,
    escape,
    fitted,
    rank,
)
from routes.properties import JmsType, Property

FULL = "4.1140429201295000-9262574723.T.1140429211295.corr1283.TestQueue1.XYZType.prop1S=hello"
LEAST = "4.1140429201295000-9262574723.T"
SENT = 1140429201295


def test_all_fields_of_the_first_example() -> None:
    name = DropboxName(
        "1140429201295000-9262574723",
        4,
        "T",
        1140429211295,
        "corr1283",
        "TestQueue1",
        "XYZType",
        {"prop1": Property("hello", JmsType.STRING)},
    )
    assert decode(FULL) == name
    assert name.timestamp == SENT
    assert encode(name) == FULL


def test_the_least_fields_of_the_second_example() -> None:
    name = decode(LEAST)
    assert name == DropboxName("1140429201295000-9262574723", 4, "T")
    assert name.timestamp == SENT
    assert (name.expiration, name.correlation_id, name.reply_to, name.type, name.properties) == (
        0,
        None,
        None,
        None,
        {},
    )
    assert encode(name) == LEAST


@pytest.mark.parametrize("dots", range(8))
def test_trailing_dots_may_be_there_or_not(dots: int) -> None:
    assert decode(LEAST + "." * dots) == decode(LEAST)


@pytest.mark.parametrize(
    ("filename", "expected"),
    [
        ("4.id.", DropboxName("id")),
        (".id.T", DropboxName("id", 4, "T")),
        ("-2147483648.id.T", DropboxName("id", -(1 << 31), "T")),
        ("2147483647.id.T", DropboxName("id", (1 << 31) - 1, "T")),
        ("+7.id.T", DropboxName("id", 7, "T")),
        ("4.id.T.0", DropboxName("id", 4, "T")),
        ("4.id.T...queue+1", DropboxName("id", 4, "T", reply_to="queue 1")),
        ("4.a%2Fb%2Ec.T", DropboxName("a/b.c", 4, "T")),
        ("4.%e2%82%ac.T", DropboxName("€", 4, "T")),
        ("4.hällo.T", DropboxName("hällo", 4, "T")),
        ("4.%FF.T", DropboxName("\ufffd", 4, "T")),
    ],
)
def test_names_of_the_form(filename: str, expected: DropboxName) -> None:
    assert decode(filename) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("aS=1&bS=", {"a": Property("1", JmsType.STRING), "b": Property("", JmsType.STRING)}),
        ("vD=1.5", {"v": Property("1.5", JmsType.DOUBLE)}),
        ("aS=x%26y%3Dz", {"a": Property("x&y=z", JmsType.STRING)}),
        ("aS=1&aI=2", {"a": Property("2", JmsType.INT)}),
        ("SS=1", {"S": Property("1", JmsType.STRING)}),
        ("a+bS=x=y", {"a b": Property("x=y", JmsType.STRING)}),
    ],
)
def test_properties(field: str, expected: dict[str, Property]) -> None:
    assert decode(f"4.id.T.....{field}").properties == expected


@pytest.mark.parametrize("letter", sorted(CLASSES))
def test_message_classes(letter: str) -> None:
    assert decode(f"4.id.{letter}").message_class == letter


@pytest.mark.parametrize(
    ("encoded", "text", "kind"),
    [
        ("B=true", "true", JmsType.BOOLEAN),
        ("B=FALSE", "false", JmsType.BOOLEAN),
        ("Y=-128", "-128", JmsType.BYTE),
        ("H=32767", "32767", JmsType.SHORT),
        ("I=-2147483648", "-2147483648", JmsType.INT),
        ("L=9223372036854775807", "9223372036854775807", JmsType.LONG),
        ("F=1.5f", "1.5", JmsType.FLOAT),
        ("F=-Infinity", "-Infinity", JmsType.FLOAT),
        ("D=1%2E0E10", "10000000000.0", JmsType.DOUBLE),
        ("D=NaN", "NaN", JmsType.DOUBLE),
        ("S=a+b", "a b", JmsType.STRING),
    ],
)
def test_types_of_properties(encoded: str, text: str, kind: JmsType) -> None:
    assert decode(f"4.id.T.....x{encoded}").properties == {"x": Property(text, kind)}


@pytest.mark.parametrize(
    "filename",
    [
        "report",
        "invoice.pdf",
        "2024.report.pdf",
        "4",
        "4.",
        "4.id",
        "10.csv",
        "..",
        "4..T",
        "x.id.T",
        "2147483648.id.T",
        "-2147483649.id.T",
        "4.id.X",
        "4.id.t",
        "4.id.TT",
        "4.id.T.soon",
        "4.id.T.-1",
        "4.id.T.9223372036854775808",
        "4.i%d.T",
        "4.id.T.....x=1",
        "4.id.T.....xS",
        "4.id.T.....S=1",
        "4.id.T.....xZ=1",
        "4.id.T.....xB=yes",
        "4.id.T.....xY=128",
        "4.id.T.....xH=40000",
        "4.id.T.....xI=1e3",
        "4.id.T.....xL=9223372036854775808",
        "4.id.T.....xF=one",
        "4.id.T.....xD=",
        "4.id.T.....xS=%",
        "٤.id.T",
    ],
)
def test_any_other_name_is_the_message_id(filename: str) -> None:
    assert decode(filename) == DropboxName(filename, is_foreign=True)


def test_a_foreign_name_says_no_time_whatever_digits_it_has() -> None:
    assert decode("20261123120000-orders.csv").timestamp is None
    assert decode("4.1140429201295000-9262574723.T").timestamp == SENT


def test_bytes_that_are_no_text_do_not_matter() -> None:
    filename = b"caf\xe9.T".decode("utf-8", "surrogateescape")
    assert decode(filename) == DropboxName("caf\ufffd.T", is_foreign=True)
    assert decode(f"4.{filename}") == DropboxName("4.caf\ufffd.T", is_foreign=True)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a b", "a+b"),
        ("a.b*c-d_e", "a%2Eb%2Ac-d_e"),
        ("/\0~", "%2F%00%7E"),
        ("%&=+", "%25%26%3D%2B"),
        ("ü€", "%C3%BC%E2%82%AC"),
        ("\ud800", "%3F"),
    ],
)
def test_escapes_are_those_of_java_but_for_dots_and_stars(text: str, escaped: str) -> None:
    assert escape(text) == escaped


@pytest.mark.parametrize("message_id", ["1140429201295000-9262574723", "1140429201295000-x.y"])
def test_the_time_of_sending_is_in_the_message_id(message_id: str) -> None:
    assert DropboxName(message_id).timestamp == SENT


@pytest.mark.parametrize("message_id", ["id", "123-4", "1140429201295000", "x1140429201295000-1", "1140429201295000-"])
def test_other_message_ids_say_no_time(message_id: str) -> None:
    assert DropboxName(message_id).timestamp is None


def test_a_number_that_does_not_fit_its_type_goes_as_text() -> None:
    name = DropboxName("id", 4, "T", properties={"n": Property("300", JmsType.BYTE), "u": Property("5")})
    assert encode(name) == "4.id.T.....nS=300&uS=5"


def test_a_name_that_fits_is_whole() -> None:
    name = DropboxName("id", 4, "T", correlation_id="é" * 41)
    assert len(encode(name)) == LONGEST_BYTES - 1
    assert fitted(name) is name


LONG_TEXT = "x" * 200
MARK = {LONG: Property("true", JmsType.BOOLEAN)}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (
            DropboxName("id", 4, "T", 5, "c", "r", "t", {"p": Property(LONG_TEXT * 2, JmsType.STRING)}),
            DropboxName("id", 4, "T", 5, "c", "r", "t", MARK),
        ),
        (DropboxName("id", 4, "T", 5, LONG_TEXT * 2, "r", "t"), DropboxName("id", 4, "T", 5, "id", "r", "t", MARK)),
        (
            DropboxName("id", 4, "T", 5, LONG_TEXT, LONG_TEXT, LONG_TEXT),
            DropboxName("id", 4, "T", 5, "id", LONG_TEXT, None, MARK),
        ),
        (DropboxName("id", 4, "T", 5, None, LONG_TEXT * 2, "t"), DropboxName("id", 4, "T", 5, None, None, None, MARK)),
    ],
)
def test_of_a_name_that_is_too_long_a_part_fits(name: DropboxName, part: DropboxName) -> None:
    assert fitted(name) == part


def test_the_higher_priority_goes_first_then_the_older_then_the_name() -> None:
    files = {
        "9.x.T": 50.0,
        "4.0000000040000000-2.T": 99.0,
        "4.0000000040000000-1.T": 99.0,
        "plain": 30.0,
        "later": 60.0,
        "-1.0000000000001000-1.T": 1.0,
        "2024.report.pdf": 70.0,
        "20261124.csv": 72.0,
        "20261123.csv": 71.0,
        "20261123120000-10.csv": 73.0,
    }
    ordered = sorted(files, key=lambda filename: rank(filename, lambda: files[filename]))
    assert ordered == [
        "9.x.T",
        "plain",
        "4.0000000040000000-1.T",
        "4.0000000040000000-2.T",
        "later",
        "2024.report.pdf",
        "20261123.csv",
        "20261124.csv",
        "20261123120000-10.csv",
        "-1.0000000000001000-1.T",
    ]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


def whole(kind: JmsType, bits: int) -> st.SearchStrategy[Property]:
    return st.integers(-(1 << bits), (1 << bits) - 1).map(lambda number: Property(str(number), kind))


values = st.one_of(
    texts.map(Property.of),
    st.booleans().map(Property.of),
    st.floats(allow_nan=False).map(Property.of),
    whole(JmsType.BYTE, 7),
    whole(JmsType.SHORT, 15),
    whole(JmsType.INT, 31),
    whole(JmsType.LONG, 63),
)
names = st.builds(
    DropboxName,
    texts,
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.sampled_from(sorted(CLASSES)),
    st.integers(0, (1 << 63) - 1),
    st.none() | texts,
    st.none() | texts,
    st.none() | texts,
    st.dictionaries(texts, values, max_size=2),
)


@given(names)
def test_what_is_encoded_is_decoded_the_same(name: DropboxName) -> None:
    filename = encode(name)
    assert decode(filename) == name
    assert set(filename) <= set(string.ascii_letters + string.digits + "%&+-.=_")


@given(
    names,
    st.text(min_size=100, max_size=400),
    st.sets(st.sampled_from(["correlation_id", "reply_to", "type", "properties"])),
)
def test_a_part_of_any_name_fits_and_keeps_its_place(name: DropboxName, text: str, long: set[str]) -> None:
    for field in long:
        name = replace(name, **{field: {"p": Property.of(text)} if field == "properties" else text})
    part = fitted(name)
    assert len(encode(part)) <= LONGEST_BYTES
    assert rank(encode(part), lambda: 0.0)[:2] == rank(encode(name), lambda: 0.0)[:2]
    assert (part.message_id, part.expiration) == (name.message_id, name.expiration)
    assert (part is name) is (LONG not in part.properties)


@given(
    st.binary(min_size=1, max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
    | st.from_regex(r"-?[0-9]{1,3}\.[^./]{1,5}\.[MBSPOTx](\.[^.]{0,4}){0,6}").filter(str.isprintable)
)
def test_any_name_is_a_message(filename: str) -> None:
    name = decode(filename)
    assert name.message_id
    assert name.message_class in CLASSES
    assert rank(filename, lambda: 0.0).descending_priority == -name.priority
