"""The two forms of bridge frames: what the Java programs write is read, what is written they can read."""

from __future__ import annotations

import json
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.nats import json_frame, typed_frame
from engine.connectors.nats.header_frame import (
    FIELDS,
    FIELDS_1_0,
    FrameError,
    HeaderFrame,
    checksum,
    from_message,
    to_message,
)
from engine.message import BodyType, Message
from routes.properties import JmsType, Property


def java_hash(data: bytes) -> int:
    """`createHashCode` of the Java program, as its signed 32 bits would stand in a frame."""
    total = 0
    for byte in data:
        total = (31 * total + byte) & 0xFFFFFFFF
    return total


def part(data: bytes) -> bytes:
    return struct.pack(">iI", len(data), java_hash(data)) + data


def json_bytes(headers: bytes, body: bytes) -> bytes:
    return json_frame.MARKER + part(headers) + part(body)


def typed_bytes(count: int, headers: bytes, body: bytes = b"") -> bytes:
    return b"\xab\xcd\x01\x00" + bytes((count,)) + headers + part(body)


@given(st.binary(max_size=10_000))
def test_checksum_is_that_of_java(data: bytes) -> None:
    assert checksum(data) == java_hash(data)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8191, 8192, 8193, 12_288, 100_001])
def test_checksum_of_long_data(size: int) -> None:
    # The second has the largest sums, which must still be exact.
    for data in (bytes(number * 7 & 255 for number in range(size)), b"\xff" * size):
        assert checksum(data) == java_hash(data)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
numbers = st.one_of(
    st.integers(-(1 << 7), (1 << 7) - 1).map(lambda n: Property(str(n), JmsType.BYTE)),
    st.integers(-(1 << 15), (1 << 15) - 1).map(lambda n: Property(str(n), JmsType.SHORT)),
    st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: Property(str(n), JmsType.INT)),
    st.integers(-(1 << 63), (1 << 63) - 1).map(lambda n: Property(str(n), JmsType.LONG)),
    st.floats(width=32).map(lambda n: Property(Property.of(n).text, JmsType.DOUBLE)),
    st.floats().map(Property.of),
)
values = st.one_of(texts.map(Property.of), st.booleans().map(Property.of), numbers)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(lambda name: name not in FIELDS)
frames = st.builds(HeaderFrame, st.binary(max_size=200), st.dictionaries(names, values, max_size=20))


@given(frames)
def test_typed_frames_come_back_as_they_were(frame: HeaderFrame) -> None:
    expected = {name: value for name, value in frame.headers.items() if value.text}
    assert typed_frame.decode(typed_frame.encode(frame)) == HeaderFrame(frame.body, expected)


@given(frames)
def test_json_frames_come_back_with_the_types_that_json_has(frame: HeaderFrame) -> None:
    found = json_frame.decode(json_frame.encode(frame))
    assert found.body == frame.body
    assert found.headers.keys() == frame.headers.keys()
    for name, value in found.headers.items():
        sent = frame.headers[name]
        if value.type is JmsType.DOUBLE:
            assert float(value.text) == float(sent.text)
        else:
            assert value.text == sent.text


@given(frames, st.data())
def test_no_damage_does_more_than_raise_frame_errors(frame: HeaderFrame, data: st.DataObject) -> None:
    for codec in (json_frame, typed_frame):
        good = codec.encode(frame)
        at = data.draw(st.integers(len(codec.MARKER), len(good)))
        byte = bytes((data.draw(st.integers(0, 255)),))
        for bad in (good[:at], good[:at] + byte + good[at + 1 :], good[:at] + byte + good[at:]):
            with suppress(FrameError):
                codec.decode(bad)


@given(st.binary(max_size=400))
def test_anything_after_a_marker_is_a_frame_or_a_frame_error(rest: bytes) -> None:
    for codec in (json_frame, typed_frame):
        with suppress(FrameError):
            codec.decode(codec.MARKER + rest)


class TestJson:
    def test_a_frame_of_the_java_program(self) -> None:
        headers = {
            "BRIDGE_timestamp": 1795240301012,
            "BRIDGE_mode": 2,
            "BRIDGE_type": "NO_TYPE",
            "BRIDGE_redelivered": True,
            "region": "emea",
            "amount": 12.5,
            "count": 3,
            "big": 1 << 40,
            "nothing": None,
        }
        frame = json_frame.decode(json_bytes(json.dumps(headers).encode(), b"hello"))
        assert frame.headers == {
            "BRIDGE_timestamp": Property("1795240301012", JmsType.LONG),
            "BRIDGE_mode": Property("2", JmsType.INT),
            "BRIDGE_type": Property("NO_TYPE", JmsType.STRING),
            "BRIDGE_redelivered": Property("true", JmsType.BOOLEAN),
            "region": Property("emea", JmsType.STRING),
            "amount": Property("12.5", JmsType.DOUBLE),
            "count": Property("3", JmsType.INT),
            "big": Property(str(1 << 40), JmsType.LONG),
        }
        message = to_message(frame, "nats")
        assert message.headers == {
            "JMSTimestamp": "1795240301012",
            "JMSDeliveryMode": "PERSISTENT",
            "JMSRedelivered": "true",
        }
        assert message.body_type is BodyType.TEXT

    def test_the_bytes_that_are_written(self) -> None:
        frame = HeaderFrame(b"hi", {"region": Property.of("ä"), "n": Property("7", JmsType.INT)})
        assert json_frame.encode(frame) == json_bytes('{"region":"ä","n":7}'.encode(), b"hi")
        assert json_frame.encode(HeaderFrame()) == bytes.fromhex(
            "abcd0100abcd 00000002 00000f62 7b7d 00000000 00000000"
        )

    def test_the_java_programs_message_without_a_body(self) -> None:
        assert json_frame.decode(json_frame.MARKER + part(b"{}") + b"\0\0") == HeaderFrame()

    def test_a_time_that_the_java_program_cannot_read_is_left_out_and_read(self) -> None:
        early = HeaderFrame(b"", {"BRIDGE_timestamp": Property("1000", JmsType.LONG)})
        assert json_frame.decode(json_frame.encode(early)) == HeaderFrame()
        assert json_frame.decode(json_bytes(b'{"BRIDGE_timestamp":1000}', b"")) == early

    def test_what_follows_is_left_alone(self) -> None:
        assert json_frame.decode(json_bytes(b' {"a":true} x', b"b") + b"more").body == b"b"

    @pytest.mark.parametrize(
        ("headers", "why"),
        [
            (b"", "not JSON"),
            (b"[]", "not a JSON object"),
            (b"null", "not a JSON object"),
            (b'{"a":', "not JSON"),
            (b'{"a":NaN}', "NaN is not a JSON number"),
            (b'{"a":[1,2]}', "header a is 2 values"),
            (b'{"a":{}}', "header a is 0 values"),
            (b'{"a":' + b"9" * 30 + b"}", "more than 64 bits"),
            (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
            (b"\xff\xfe", "not JSON"),
            (b"[" * 100_000, "not JSON"),
            (b'{"BRIDGE_mode":"2"}', "header BRIDGE_mode is of type string, not int"),
            (b'{"BRIDGE_redelivered":1}', "not boolean"),
            (b'{"BRIDGE_type":4}', "not string"),
        ],
    )
    def test_bad_headers(self, headers: bytes, why: str) -> None:
        with pytest.raises(FrameError, match=why):
            json_frame.decode(json_bytes(headers, b""))

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "ends before the length"),
            (b"\x7f\xff\xff\xff" + b"\0" * 4, "should have 2147483647 bytes, of which 0"),
            (b"\xff\xff\xff\xff" + b"\0" * 4, "should have -1 bytes"),
            (struct.pack(">iI", 2, 1) + b"{}", "checksum of the headers"),
            (part(b"{}") + struct.pack(">iI", 1, 1) + b"x", "checksum of the body"),
            (part(b"{}") + struct.pack(">iI", 5, 0) + b"\0" * 4, "should have 5 bytes, of which 4"),
            (part(b"{}") + b"\0\0\0", "ends before the length and checksum of the body"),
        ],
    )
    def test_damage(self, data: bytes, why: str) -> None:
        with pytest.raises(FrameError, match=why):
            json_frame.decode(json_frame.MARKER + data)


class TestTyped:
    def test_a_frame_of_the_java_program(self) -> None:
        headers = b"".join(
            (
                b"\x81\x88" + struct.pack(">q", 1795240301012),  # timestamp
                b"\x82\x02",  # mode
                b"\x84\x92\x07invoice",  # type
                b"\x85\x04",  # priority
                b"\x86\x90",  # redelivered
                b"\x87\x92\x04prod",  # ENV
                b"\x01i\x8a" + struct.pack(">i", -5),
                b"\x01s\x8c\x00\x01",
                b"\x01b\x8e\xff",
                b"\x01f\x86" + struct.pack(">f", 0.1),
                b"\x01d\x85" + struct.pack(">d", 0.1),
                b"\x01n\x8f",
                b"\x01t\x91\x01\x00" + b"x" * 256,
            )
        )
        frame = typed_frame.decode(typed_bytes(13, headers, b"hello"))
        assert {name: (value.text, value.type) for name, value in frame.headers.items()} == {
            "BRIDGE_timestamp": ("1795240301012", JmsType.LONG),
            "BRIDGE_mode": ("2", JmsType.INT),
            "BRIDGE_type": ("invoice", JmsType.STRING),
            "BRIDGE_priority": ("4", JmsType.INT),
            "BRIDGE_redelivered": ("true", JmsType.BOOLEAN),
            "ENV": ("prod", JmsType.STRING),
            "i": ("-5", JmsType.INT),
            "s": ("1", JmsType.SHORT),
            "b": ("-1", JmsType.BYTE),
            "f": ("0.1", JmsType.FLOAT),
            "d": ("0.1", JmsType.DOUBLE),
            "n": ("false", JmsType.BOOLEAN),
            "t": ("x" * 256, JmsType.STRING),
        }
        assert frame.body == b"hello"

    def test_the_bytes_that_are_written(self) -> None:
        headers = {
            "BRIDGE_mode": Property("1", JmsType.INT),
            "H3": Property("127", JmsType.INT),
            "ä": Property("-110", JmsType.INT),
            "own": Property("-109", JmsType.INT),
            "text": Property("ä" * 64),
            "no": Property("false", JmsType.BOOLEAN),
        }
        expected = (
            b"\x82\x01"
            b"\x8b\x7f"
            b"\x02\xc3\xa4\x8a\xff\xff\xff\x92"
            b"\x03own\x93"
            b"\x04text\x91\x00\x80" + b"\xc3\xa4" * 64 + b"\x02no\x8f"
        )
        assert typed_frame.encode(HeaderFrame(b"hi", headers)) == typed_bytes(6, expected, b"hi")
        assert typed_frame.encode(HeaderFrame()) == b"\xab\xcd\x01\x00\x00" + b"\0" * 8

    def test_what_the_java_program_writes_and_cannot_read_is_read_where_it_has_one_meaning(self) -> None:
        many = b"".join(b"\x03%03d\x01" % number for number in range(200))
        assert len(typed_frame.decode(typed_bytes(200, many)).headers) == 200
        empty, longer = b"\x01e\x92\x00", b"\x01l\x92\xc8" + b"x" * 200
        name = b"\xc8" + b"n" * 200 + b"\x01"
        found = typed_frame.decode(typed_bytes(3, empty + longer + name)).headers
        assert {key: value.text for key, value in found.items()} == {"e": "", "l": "x" * 200, "n" * 200: "1"}

    @pytest.mark.parametrize(
        ("headers", "why"),
        [
            ({str(number): Property("x") for number in range(128)}, "128 headers are more than the 127"),
            ({"n" * 128: Property("x")}, "has 128 bytes, more than 127"),
            ({"long": Property("x" * 65_536)}, "header long has 65536 bytes, more than 65535"),
        ],
    )
    def test_what_does_not_fit(self, headers: dict[str, Property], why: str) -> None:
        with pytest.raises(FrameError, match=why):
            typed_frame.encode(HeaderFrame(b"", headers))

    def test_a_number_that_does_not_fit_its_type_becomes_a_text(self) -> None:
        headers = {
            "a": Property("300", JmsType.BYTE),
            "b": Property("x", JmsType.INT),
            "c": Property("1e99", JmsType.FLOAT),
        }
        found = typed_frame.decode(typed_frame.encode(HeaderFrame(b"", headers))).headers
        assert {name: (value.text, value.type) for name, value in found.items()} == {
            name: (value.text, JmsType.STRING) for name, value in headers.items()
        }

    @pytest.mark.parametrize(
        ("data", "why"),
        [
            (b"", "cut off"),
            (b"\x01", "cut off"),
            (b"\x01\x05ab", "a text should have 5 bytes, of which 2"),
            (b"\x01\x01a", "cut off"),
            (b"\x01\x01a\x88\0\0", "cut off"),
            (b"\x01\x01a\x92\x7fx", "should have 127 bytes, of which 1"),
            (b"\x01\x01a\x89", "no header type -119"),
            (b"\x01\x81\x05", "header BRIDGE_timestamp is of type int, not long"),
            (b"\0\0\0", "cut off"),
            (b"\0" + struct.pack(">iI", -1, 0), "should have -1 bytes"),
            (b"\0" + struct.pack(">iI", 1 << 30, 0), "should have 1073741824 bytes, of which 0"),
            (b"\0" + struct.pack(">iI", 1, 5) + b"x", "checksum"),
        ],
    )
    def test_damage(self, data: bytes, why: str) -> None:
        with pytest.raises(FrameError, match=why):
            typed_frame.decode(typed_frame.MARKER + data)

    @pytest.mark.parametrize(
        ("codes", "expected"),
        [
            # The code is one of a JMS field in the later releases, and the others have moved by one.
            (typed_frame.CODES_0_3, {-121: "ENV", -120: "H1", -119: "H2", -117: "H3", -116: "H4", -115: "ENVIRONMENT"}),
            (
                typed_frame.CODES_1_0,
                {
                    -121: "BRIDGE_correlation_id",
                    -120: "ENV",
                    -119: "H1",
                    -118: "H2",
                    -116: "H3",
                    -115: "H4",
                    -114: "ENVIRONMENT",
                },
            ),
        ],
        ids=["0.3", "1.0"],
    )
    def test_the_codes_of_names_are_those_of_the_release(
        self, codes: typed_frame.HeaderCodes, expected: dict[int, str]
    ) -> None:
        headers = b"".join(bytes((code & 0xFF,)) + b"\x92\x01x" for code in expected)
        frame = HeaderFrame(b"b", {name: Property("x", JmsType.STRING) for name in expected.values()})
        assert typed_frame.decode(typed_bytes(len(expected), headers, b"b"), codes) == frame
        assert typed_frame.encode(frame, codes) == typed_bytes(len(expected), headers, b"b")


class TestMessages:
    def test_fields_both_ways(self) -> None:
        headers = {
            "JMSTimestamp": "1795240301012",
            "JMSExpiration": "1795240309999",
            "JMSDeliveryTime": "1795240301013",
            "JMSDeliveryMode": "NON_PERSISTENT",
            "JMSType": "invoice",
            "JMSPriority": "0",
            "JMSRedelivered": "true",
        }
        message = Message(b"\xff", BodyType.BYTES, headers, {"region": Property.of("emea")}, "nats")
        for codec in (json_frame, typed_frame):
            assert to_message(codec.decode(codec.encode(from_message(message))), "nats") == message

    def test_only_frames_of_release_1_0_have_a_correlation_id(self) -> None:
        message = Message(b"x", BodyType.TEXT, {"JMSCorrelationID": "c-1"})
        assert from_message(message).headers == {}
        frame = from_message(message, FIELDS_1_0)
        encoded = typed_frame.encode(frame, typed_frame.CODES_1_0)
        assert to_message(typed_frame.decode(encoded, typed_frame.CODES_1_0), known=FIELDS_1_0) == message
        # The Java program sets none either for one that is blank.
        blank = HeaderFrame(b"x", {"BRIDGE_correlation_id": Property(" ", JmsType.STRING)})
        assert to_message(blank, known=FIELDS_1_0).headers == {}

    def test_an_empty_type_is_a_type(self) -> None:
        frame = HeaderFrame(b"", {"BRIDGE_type": Property("", JmsType.STRING)})
        assert to_message(json_frame.decode(json_frame.encode(frame))).headers == {"JMSType": ""}
        assert from_message(Message(b"", BodyType.TEXT, {"JMSType": ""})) == frame

    @pytest.mark.parametrize("name", FIELDS)
    def test_what_the_java_program_takes_for_not_set_is_no_field(self, name: str) -> None:
        kind = FIELDS[name][1]
        nothing = {JmsType.STRING: "NO_TYPE", JmsType.BOOLEAN: "false"}.get(kind, "-1")
        found = to_message(HeaderFrame(b"", {name: Property(nothing, kind)})).headers
        assert found == ({"JMSRedelivered": "false"} if kind is JmsType.BOOLEAN else {})

    def test_a_header_without_a_name_is_no_property(self) -> None:
        frame = HeaderFrame(b"", {"": Property("x", JmsType.STRING), "a": Property("1", JmsType.INT)})
        message = to_message(frame)
        assert message.properties == {"a": Property("1", JmsType.INT)}
        assert from_message(Message(b"", BodyType.TEXT, {}, frame.headers)).headers == message.properties

    def test_what_is_not_set_is_not_sent(self) -> None:
        headers = {
            "JMSTimestamp": "0",
            "JMSExpiration": "0",
            "JMSRedelivered": "false",
            "JMSPriority": "high",
            "JMSMessageID": "ID:1",
            "JMSDeliveryMode": "often",
            "JMSDeliveryTime": "9" * 19,
        }
        properties = {"JMS_vendor": Property("x"), "BRIDGE_mode": Property("y"), "own": Property("z")}
        assert from_message(Message(b"", BodyType.TEXT, headers, properties)).headers == {"own": Property("z")}


@pytest.mark.parametrize("text", ["soon", "", "1.5", "9" * 5000])
def test_a_time_that_is_no_number_is_left_out_of_a_json_frame(text: str) -> None:
    name = next(iter(json_frame._TIMES))
    encoded = json_frame.encode(HeaderFrame(b"", {name: Property(text, JmsType.LONG)}))
    assert json_frame.decode(encoded).headers == {}
