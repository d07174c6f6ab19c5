"""Messages of a route with a mask leave with masked bodies, or do not leave."""

from __future__ import annotations

import hmac
import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from engine.explain import explain
from engine.jms_values import MapEntry, decode_map, decode_stream, encode_map, encode_stream
from engine.message import BODY_TYPES, BodyType, Message
from engine.router import route
from engine.router.plan.records import records_frame
from routes.config import loads
from tests.spark.router.conftest import HEAD
from tests.spark.router.harness import Router

SECRET = "0123456789abcdef0123456789abcdef"
POLICY = "routing.on-soft-failure=dead-letter\n"
CARDS = """\
routes.cards.in.include=msg.address==orders
routes.cards.out.topic=cards
routes.cards.out.mask=msg.body.card, msg.body.lines[*].iban
routes.rest.in.include=TRUE
routes.rest.out.topic=rest
"""
ORDER = '{"card": 4711, "lines": [{"iban": "DE1", "n": 1.50}]}'
HIDDEN = '{"card": "***", "lines": [{"iban": "***", "n": 1.50}]}'


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASK_SECRET", SECRET)


def message(body: str | bytes, to: str = "queue:orders", kind: BodyType = BodyType.TEXT, types: str = "") -> Message:
    content = body.encode() if isinstance(body, str) else body
    return Message(content, kind, {"JMSDestination": to, "JMSMessageID": "ID:1"}, body_types=types)


def test_only_the_route_with_a_mask_masks(router: Router) -> None:
    masked, kept, unchanged = router(POLICY + CARDS, [message(ORDER), message(ORDER, "queue:x"), message("{}")])
    assert (masked.topic, masked.record.value, masked.outcome) == ("cards", HIDDEN.encode(), "routed")
    assert (kept.topic, kept.record.value, kept.outcome) == ("rest", ORDER.encode(), "routed")
    assert (unchanged.topic, unchanged.record.value) == ("cards", b"{}")
    assert [name for name, _ in masked.record.headers] == [name for name, _ in kept.record.headers]


def test_messages_of_other_routes_are_published_by_reference(spark: SparkSession, tmp_path: Path) -> None:
    config = loads(HEAD + CARDS, base=tmp_path)
    frame = records_frame(spark, {"journal": [message(ORDER).to_record(), message(ORDER, "queue:x").to_record()]})
    rows = sorted(route(frame, config).frame.collect(), key=lambda row: int(row.journal_offset))
    assert [(row.kept, row.new_value) for row in rows] == [(6, HIDDEN.encode()), (7, None)]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("no JSON", "the body is not JSON, or is nested more than 100 deep"),
        (ORDER[:-1], "the body is not JSON, or is nested more than 100 deep"),
        ("[" * 101 + "]" * 101, "the body is not JSON, or is nested more than 100 deep"),
        (ORDER + " " * 2**20, "the body has more than 1,048,576 bytes"),
    ],
)
def test_a_body_that_cannot_be_masked_does_not_leave(router: Router, body: str, why: str) -> None:
    [result] = router(POLICY + CARDS, [message(body)])
    assert (result.topic, result.outcome) == ("dlt", "dead-letter.body-unreadable")
    assert result.header("__connect.errors.exception.message") == f"the mask could not be applied: {why}"
    # A dead letter is the message as it came.
    assert result.record.value == body.encode()


def test_a_message_without_a_body_does_not_leave(router: Router) -> None:
    [result] = router(POLICY + CARDS, [Message(headers={"JMSDestination": "queue:orders"}, has_null_value=True)])
    assert result.outcome == "dead-letter.body-unreadable"


def test_the_policy_stop_names_the_mask(router: Router) -> None:
    with pytest.raises(Exception, match="the mask could not be applied: the body is not JSON"):
        router(CARDS, [message("no JSON")])


def test_a_route_says_both_what_bodies_it_takes_and_what_it_masks(router: Router) -> None:
    text = POLICY + CARDS + "routes.cards.in.body=json\nroutes.rest.in.body=xml\n"
    unread, masked, others = router(text, [message("x"), message(ORDER), message("<a/>", "queue:x")])
    assert unread.header("__connect.errors.exception.message") == (
        "the body is not JSON, or is nested more than 100 deep"
    )
    assert masked.record.value == HIDDEN.encode()
    assert others.record.value == b"<a/>"


@pytest.mark.parametrize("method", ["replace", "remove", "hash"])
def test_a_masked_map_message_is_one_still(router: Router, method: str) -> None:
    entries = {"a,b": MapEntry("bytes", b"\0"), "n": MapEntry("long", 5), "f": MapEntry("float", 0.5)}
    body, types = encode_map(entries)
    text = f"""\
routes.a.in.include=TRUE
routes.a.out.topic=jms:queue/x
routes.a.conv.body=json
routes.a.out.mask=msg.body."a,b", msg.body.f, msg.body.absent
routes.a.out.mask-with={method}
"""
    secret = "routes.a.out.mask-secret=${env:MASK_SECRET}\n" if method == "hash" else ""
    [result] = router(text + secret, [message(body, kind=BodyType.MAP, types=types)])
    assert result.record.value is not None
    found = decode_map(result.record.value, result.header(BODY_TYPES) or "")

    def hidden(content: str) -> MapEntry:
        return MapEntry("string", hmac.digest(SECRET.encode(), content.encode(), "sha256").hex())

    assert (
        found
        == {
            "replace": {"a,b": MapEntry("string", "***"), "n": entries["n"], "f": MapEntry("string", "***")},
            "remove": {"n": entries["n"]},
            "hash": {"a,b": hidden("AA=="), "n": entries["n"], "f": hidden("0.5")},
        }[method]
    )


def test_a_masked_stream_message_is_one_still(router: Router) -> None:
    body, types = encode_stream([MapEntry("byte", 1), MapEntry("bytes", b"\1"), MapEntry("short", 3)])
    text = "routes.a.in.include=TRUE\nroutes.a.out.topic=jms:queue/x\nroutes.a.conv.body=any\n"
    text += "routes.a.out.mask=msg.body[0]\nroutes.a.out.mask-with=remove\n"
    [result] = router(text, [message(body, kind=BodyType.STREAM, types=types)])
    assert result.record.value is not None
    assert decode_stream(result.record.value, result.header(BODY_TYPES) or "") == [
        MapEntry("bytes", b"\1"),
        MapEntry("short", 3),
    ]


def test_a_serialized_object_does_not_leave(router: Router) -> None:
    text = POLICY + CARDS + "routes.cards.conv.body=any\n"
    [result] = router(text, [message(b"\xac\xed\0\5", kind=BodyType.OBJECT)])
    assert result.outcome == "dead-letter.body-unreadable"


def test_destination_and_key_are_of_the_body_as_it_came(router: Router) -> None:
    text = """\
routes.a.in.include=TRUE
routes.a.out.topic=nats:orders.${msg.body.lines[1].n}
routes.a.conv.key=msg.body.lines[1].n
routes.a.out.mask=msg.body.lines[*].iban, msg.body.lines[0].n
routes.a.out.mask-with=remove
"""
    [result] = router(text, [message('{"lines": [{"n": 1}, {"iban": 5, "n": 2}]}')])
    assert (result.record.key, result.header("jmsbridge.destination")) == (b"2", "orders.2")
    assert result.record.value == b'{"lines": [{}, {"n": 2}]}'


def test_a_topic_is_chosen_by_the_body_as_it_came(router: Router) -> None:
    text = """\
routes.a.in.include=TRUE
routes.a.out.topic=chosen.${msg.body.regions[1]}
routes.a.out.mask=msg.body.card, msg.body.regions[0]
routes.a.out.mask-with=remove
"""
    [result] = router(text, [message('{"regions":["apac","emea"],"card":1}')])
    assert (result.topic, result.record.value) == ("chosen.emea", b'{"regions":["emea"]}')


def test_a_body_that_outgrows_its_topic_fails_softly(router: Router) -> None:
    text = POLICY + "routes.a.in.include=TRUE\nroutes.a.out.topic=a\nroutes.a.out.mask=msg.body[*]\n"
    limits = {"a": 20_000, "dlt": 30_000_000}
    small, large = router(text, [message(json.dumps([1] * n)) for n in (1000, 4000)], limits)
    assert small.topic == "a"
    assert (small.record.value or b"").count(b'"***"') == 1000
    assert large.outcome == "dead-letter.too-large"
    assert "its topic takes 20000" in (large.header("__connect.errors.exception.message") or "")


def test_a_body_that_becomes_too_large_fails_softly(router: Router) -> None:
    text = POLICY + "routes.a.in.include=TRUE\nroutes.a.out.topic=a\nroutes.a.out.mask=msg.body[*]\n"
    text += "routes.a.out.mask-with=hash\nroutes.a.out.mask-secret=${env:MASK_SECRET}\n"
    [result] = router(text, [message(json.dumps([1] * 100_000))])
    assert result.outcome == "dead-letter.body-unreadable"
    assert result.header("__connect.errors.exception.message") == (
        "the mask could not be applied: the masked body has more than 4,194,304 bytes"
    )


def test_no_plan_shows_the_secret(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], router: Router
) -> None:
    text = CARDS + "routes.cards.out.mask-with=hash\nroutes.cards.out.mask-secret=${env:MASK_SECRET}\n"
    config = loads(HEAD + text, base=tmp_path)
    frame = route(records_frame(spark, {"journal": [message(ORDER).to_record()]}), config).frame
    for mode in ("extended", "codegen", "cost", "formatted"):
        frame.explain(mode=mode)
    printed = capsys.readouterr().out
    assert "mask:" in printed
    assert SECRET not in printed + repr(config) + str(config.routes)
    [result] = router(text, [message('{"card":"x"}')])
    assert result.record.value == b'{"card":"%s"}' % hmac.digest(SECRET.encode(), b"x", "sha256").hex().encode()


@pytest.mark.parametrize("style", ["text", "short", "typed"])
def test_masked_messages_are_explained_as_they_leave(router: Router, tmp_path: Path, style: str) -> None:
    text = POLICY + CARDS + f"routing.headers={style}\nroutes.cards.conv.body=json\n"
    body, types = encode_map({"card": MapEntry("bytes", b"1"), "n": MapEntry("long", 5)})
    given = [
        *(message(each) for each in (ORDER, "no JSON", "", "[1,2]", '{"card":1,"card":2}')),
        message(body, kind=BodyType.MAP, types=types),
        message(ORDER, "queue:x"),
    ]
    config = loads(HEAD + text, base=tmp_path)
    for number, (each, result) in enumerate(zip(given, router(text, given), strict=True)):
        said = explain(each.to_record(), config, position=f"journal:0:{number}")
        assert (said.reason, said.topic) == (result.outcome.partition(".")[2], result.topic)
        if result.topic == "cards":
            assert (said.changed_body, said.headers) == (result.record.value, result.record.headers)
        else:
            assert said.changed_body is None
