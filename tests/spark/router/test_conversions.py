"""Messages of a route with steps leave with converted bodies, or do not leave."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.explain import explain
from engine.message import BODY, BODY_TYPES, NULL_BODY, BodyType, Message
from engine.router import route
from engine.router.plan.records import records_frame
from routes.config import loads
from tests.spark.router.conftest import HEAD
from tests.spark.router.harness import Result, Router

POLICY = "routing.on-soft-failure=dead-letter\n"
ROUTES = """\
routes.old.in.include=msg.address==orders
routes.old.out.topic=old
routes.old.out.convert={}
routes.rest.in.include=TRUE
routes.rest.out.topic=rest
"""
LINE = "Grüße [1]\n"
EBCDIC = bytes.fromhex("c799dc59854 0adf1bd15".replace(" ", ""))


def message(body: bytes, kind: BodyType = BodyType.BYTES, to: str = "queue:orders", types: str = "") -> Message:
    return Message(body, kind, {"JMSDestination": to, "JMSMessageID": "ID:1"}, body_types=types)


def why(result: Result) -> str | None:
    assert (result.topic, result.outcome) == ("dlt", "dead-letter.body-not-convertible")
    return result.header("__connect.errors.exception.message")


def test_only_the_route_with_steps_converts(router: Router) -> None:
    text = POLICY + ROUTES.format("gunzip, from IBM1047")
    packed = gzip.compress(EBCDIC)
    converted, kept = router(text, [message(packed), message(packed, to="queue:x")])
    assert (converted.topic, converted.record.value, converted.outcome) == ("old", LINE.encode(), "routed")
    assert converted.header(BODY) == "text"
    assert (kept.topic, kept.record.value, kept.header(BODY)) == ("rest", packed, "bytes")
    assert sorted(name for name, _ in converted.record.headers) == sorted(name for name, _ in kept.record.headers)


def test_text_becomes_bytes(router: Router) -> None:
    [result] = router(POLICY + ROUTES.format("to IBM1047, gzip"), [message(LINE.encode(), BodyType.TEXT)])
    assert result.record.value is not None
    assert gzip.decompress(result.record.value) == EBCDIC
    assert result.header(BODY) == "bytes"


def test_xml_becomes_json(router: Router) -> None:
    text = POLICY + ROUTES.format("from ISO-8859-1, xml-to-json")
    made, unread = router(text, [message('<a n="1">\xe4</a>'.encode("latin-1")), message(b"<!DOCTYPE a><a/>")])
    assert (made.record.value, made.header(BODY)) == ('{"a":{"@n":"1","#text":"ä"}}'.encode(), "text")
    assert why(unread) == (
        "'xml-to-json' could not be applied: it is not XML without a DTD of at most 1,048,576 bytes, "
        "with elements nested at most 100 deep"
    )


def test_json_becomes_xml_behind_a_mask(router: Router) -> None:
    text = POLICY + ROUTES.format("json-to-xml, to ISO-8859-1") + "routes.old.out.mask=msg.body.a.n\n"
    made, unfit = router(text, [message('{"a":{"n":1,"b":["ä",2]}}'.encode(), BodyType.TEXT), message(b'{"a":[]}')])
    assert (made.record.value, made.header(BODY)) == ("<a><n>***</n><b>ä</b><b>2</b></a>".encode("latin-1"), "bytes")
    assert why(unfit) == "'json-to-xml' could not be applied: the root element 'a' is an array"


def test_messages_of_other_routes_are_published_by_reference(spark: SparkSession, tmp_path: Path) -> None:
    config = loads(HEAD + ROUTES.format("from IBM1047"), base=tmp_path)
    frame = records_frame(spark, {"journal": [message(EBCDIC).to_record(), message(b"x", to="queue:x").to_record()]})
    rows = sorted(route(frame, config).frame.collect(), key=lambda row: int(row.journal_offset))
    assert [row.new_value for row in rows] == [LINE.encode(), None]


@pytest.mark.parametrize(
    ("steps", "body", "reason"),
    [
        ("gunzip", b"plain", "'gunzip' could not be applied: no gzip begins at 0"),
        ("gunzip", gzip.compress(b"x", mtime=0)[:-1], "'gunzip' could not be applied: it is truncated"),
        (
            "gunzip",
            gzip.compress(bytes(5 * 2**20), mtime=0),
            "'gunzip' could not be applied: it has more than 4,194,304 bytes",
        ),
        (
            "from windows-1252",
            b"abc\x81",
            "'from windows-1252' could not be applied: byte 0x81 at 3 begins no character of windows-1252",
        ),
        ("to IBM037", "a€".encode(), "'to IBM037' could not be applied: U+20AC at 1 is not in IBM037"),
        ("to IBM037, gzip", b"\xff", "'to IBM037' could not be applied: byte 0xFF at 0 begins no character of UTF-8"),
    ],
)
def test_a_body_that_cannot_be_converted_does_not_leave(router: Router, steps: str, body: bytes, reason: str) -> None:
    [result] = router(POLICY + ROUTES.format(steps), [message(body)])
    assert why(result) == reason
    # A dead letter is the message as it came.
    assert (result.record.value, result.header(BODY)) == (body, "bytes")


def test_a_message_without_a_body_does_not_leave(router: Router) -> None:
    [result] = router(
        POLICY + ROUTES.format("gzip"), [Message(headers={"JMSDestination": "queue:orders"}, has_null_value=True)]
    )
    assert why(result) == "'gzip' could not be applied: the message has no body"


def test_a_text_that_is_null_becomes_bytes(router: Router) -> None:
    [result] = router(POLICY + ROUTES.format("to IBM037"), [message(b"", BodyType.TEXT, types=NULL_BODY)])
    assert (result.record.value, result.header(BODY), result.header(BODY_TYPES)) == (b"", "bytes", None)


@pytest.mark.parametrize("kinds", ["as-is", "json", "any"])
@pytest.mark.parametrize("steps", ["to UTF-16BE", "from US-ASCII", "gunzip"])
def test_the_json_of_a_map_is_converted_where_the_route_takes_it(router: Router, kinds: str, steps: str) -> None:
    text = POLICY + ROUTES.format(steps) + f"routes.old.conv.body={kinds}\n"
    [result] = router(text, [message(b'{"a":1}', BodyType.MAP, types="a=int")])
    if kinds == "json" and steps == "to UTF-16BE":
        assert (result.record.value, result.header(BODY)) == ('{"a":1}'.encode("UTF-16BE"), "bytes")
        assert result.header(BODY_TYPES) is None
    else:
        rest = "neither text nor bytes" if kinds == "as-is" else "to which the steps of the route cannot be applied"
        assert why(result) == f"the body is of type map, {rest}"


def test_a_mask_comes_before_the_steps(router: Router) -> None:
    text = POLICY + ROUTES.format("to UTF-16BE") + "routes.old.out.mask=msg.body.a\nroutes.old.conv.key=msg.body.b\n"
    masked, unread = router(text, [message(b'{"a":1,"b":"k"}', BodyType.TEXT), message(b"\xff")])
    assert (masked.record.value, masked.record.key) == ('{"a":"***","b":"k"}'.encode("UTF-16BE"), b"k")
    assert unread.outcome == "dead-letter.body-unreadable"


def test_a_route_that_masks_stands_beside_one_that_converts(router: Router) -> None:
    text = POLICY + ROUTES.format("to UTF-16BE") + "routes.rest.out.mask=msg.body.a\n"
    converted, masked = router(text, [message(b"a", BodyType.TEXT), message(b'{"a":1}', BodyType.TEXT, "queue:x")])
    assert (converted.record.value, converted.header(BODY)) == (b"\0a", "bytes")
    assert (masked.record.value, masked.header(BODY)) == (b'{"a":"***"}', "text")


def test_the_size_is_that_of_the_converted_body(router: Router) -> None:
    text = POLICY + ROUTES.format("gunzip")
    limits = {"old": 100_000, "rest": 100_000}
    small, large = (gzip.compress(bytes(size)) for size in (80_000, 100_000))
    fits, too_large = router(text, [message(small), message(large)], limits=limits)
    assert fits.outcome == "routed"
    assert too_large.outcome == "dead-letter.too-large"
    [packed] = router(POLICY + ROUTES.format("gzip"), [message(bytes(200_000))], limits=limits)
    assert packed.outcome == "routed"


def test_the_policy_stop_names_the_steps(router: Router) -> None:
    with pytest.raises(Exception, match="the body is neither text nor bytes, or not one for the steps gunzip, from"):
        router(ROUTES.format("gunzip, from UTF-8"), [message(b"x")])


@pytest.mark.parametrize("style", ["text", "short", "typed"])
def test_converted_messages_are_explained_as_they_leave(router: Router, tmp_path: Path, style: str) -> None:
    text = POLICY + ROUTES.format("to IBM1047") + f"routing.headers={style}\nroutes.old.conv.body=json\n"
    given = [
        *(message(each) for each in (b"", LINE.encode(), b"\xff", "€".encode())),
        *(message(b'{"a":1}', kind, types="a=int") for kind in BodyType),
        message(LINE.encode(), to="queue:x"),
    ]
    config = loads(HEAD + text, base=tmp_path)
    for number, (each, result) in enumerate(zip(given, router(text, given), strict=True)):
        said = explain(each.to_record(), config, position=f"journal:0:{number}")
        assert (said.reason, said.topic) == (result.outcome.partition(".")[2], result.topic)
        if result.topic == "old":
            assert (said.changed_body, said.headers) == (result.record.value, result.record.headers)
        else:
            assert said.changed_body is None
            assert result.topic == "rest" or said.failures[0].detail == why(result)
