"""Masks for viewers: no masked value in anything that a viewer gets, and no question that tells one."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.dead_letters.letter import DETAIL
from engine.find.question import TopicKind
from engine.find.search import FindProgress, FoundRecord
from engine.find.timeline import Timeline, TimelineEvent
from engine.kafka.reader import LocatedRecord, Position
from engine.page import letters, messages, searches
from engine.page.viewer_mask import ViewerMask
from engine.record import Record
from routes.predicate.bodies import BodyDocument
from tests.unit.find.test_timeline import NOON, prepared
from tests.unit.page.bridge import CONFIGURATION, LOGIN, VIEWER, Page
from tests.unit.page.kafka_records import KafkaRecords, TopicRecords

LOGINS = "http.username=anna\nhttp.password=pass\nhttp.viewer.username=eve\nhttp.viewer.password=look\n"
MASK = "iban, Type, msg.body.card, msg.body.lines[*].pin, xpath('/order/card'), xpath('/order/owner/@tax')"
EDITS = "routes.orders.out.rename-header.iban=account\nroutes.orders.out.header.note=for ${msg.body.card}!\n"
TEXT = CONFIGURATION + LOGINS + EDITS + f"http.viewer.mask={MASK}\n"
SECRETS = st.text(st.characters(codec="ascii", categories=["Lu", "Nd"]), min_size=6, max_size=60).map("Q{}".format)
PLACE = ("jmsbridge.position", b"jms-bridge.journal:0:7")


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> KafkaRecords:
    kafka = KafkaRecords(monkeypatch)
    monkeypatch.setattr(letters, "KafkaTopicReader", lambda _, topic, *__: TopicRecords(kafka, topic))
    monkeypatch.setattr(letters, "identity", lambda *_: "id")
    monkeypatch.setattr(letters, "settled", lambda *_: {})
    return kafka


@pytest.fixture
def page(tmp_path: Path, kafka: KafkaRecords) -> Page:
    return Page(tmp_path, TEXT, login=True)


def record(
    body: bytes | None, *headers: tuple[str, str], key: str | None = None, topic: str = "orders"
) -> LocatedRecord:
    named = tuple((name, value.encode()) for name, value in headers)
    return LocatedRecord(Position(topic, 0, 3), 1_790_000_000_000, Record(key and key.encode(), body, (*named, PLACE)))


def viewed(page: Page, kafka: KafkaRecords, one: LocatedRecord, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Everything that a viewer can have of a record, by its address."""
    kafka.topics = {topic: [replace(one, position=Position(topic, 0, 3))] for topic in ("orders", "dead")}
    found = (FoundRecord(TopicKind.DESTINATION, one), FindProgress(1, 1, 1, None, done=True))
    monkeypatch.setattr(searches, "find", lambda *_: iter(found))
    key = (one.record.key or b"").decode()
    told = [TimelineEvent(1, "quoted", f"header {name}: {value!r}", None) for name, value in one.record.headers]
    told += [TimelineEvent(2, "published", f"to kafka:orders by route 'orders', key {key}", None)]
    told += [TimelineEvent(3, "dead letter", f"cut: {(one.record.value or b'').decode('utf-8', 'replace')}")]
    story = Timeline(one, tuple(told), (one,), (key,) if key else (), ("jms-bridge dlt replay --set x=1",))
    monkeypatch.setattr(messages, "timeline", lambda *_: story)
    at = "/messages/orders/0/3"
    paths = [
        *("/messages/orders", "/messages/orders?live=1", at, f"{at}/timeline", f"{at}/body", "/routes"),
        *(f"{at}?as={form}" for form in ("json", "xml", "text", "hex")),
        *("/api/topics/orders/records", "/api/messages/orders:0:3", "/api/find", "/find/rows", "/api/letters"),
        *("/dead-letters", "/dead-letters/letter/0/3", "/try?position=orders:0:3", "/find", "/messages"),
    ]
    return {path: html.unescape(page.client.get(path, headers=VIEWER).text) for path in paths}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(secrets=st.lists(SECRETS, min_size=5, max_size=5, unique=True), is_xml=st.booleans(), data=st.data())
def test_no_masked_value_is_in_anything_that_a_viewer_gets(
    page: Page,
    kafka: KafkaRecords,
    monkeypatch: pytest.MonkeyPatch,
    secrets: list[str],
    is_xml: bool,
    data: st.DataObject,
) -> None:
    monkeypatch.setattr(letters, "search", TopicSearch(kafka))
    one, two, three, four, five = (f"{secret}{number}" for number, secret in enumerate(secrets))
    if is_xml:
        quotes = data.draw(st.sampled_from("'\""))
        body = f"<order><card no='{one}'>{two}<b>{three}</b></card><owner x:tax={quotes}{four}{quotes} xmlns:x='u'/>"
        body += "<open>seen by all</open></order>"
    else:
        spaces = data.draw(st.sampled_from(["", " ", "\n\t"]))
        lines = [{"pin": three, "open": "seen by all"}, {"pin": {"of": [four]}}]
        body = spaces + json.dumps(
            {"card": {one: two, "more": [one]}, "lines": lines}, indent=data.draw(st.none() | st.just(1))
        )
        one = five
    quoted = data.draw(st.sampled_from([two, three, four, five]))
    found = viewed(
        page,
        kafka,
        record(
            body.encode(),
            ("jms.iban", five),
            ("account", five),
            ("jms.JMSType", one),
            ("jms.string.iban", two),
            ("jms.note", f"for {three}!"),
            ("jms.copied", f"({quoted})"),
            (DETAIL, f"the key '{quoted}' is not valid"),
            ("jmsbridge.reason", "key-invalid"),
            ("jms.region", "emea"),
            key=quoted,
        ),
        monkeypatch,
    )
    for path, text in found.items():
        assert [
            each for each in (one, two, three, four, five) if each in text or each.encode().hex(" ") in text
        ] == [], path
    shown = "***" if is_xml else '"***"'
    assert shown in found["/messages/orders/0/3/body"]
    for path in ("/messages/orders/0/3", "/messages/orders/0/3/body", "/api/messages/orders:0:3", "/api/find"):
        assert "seen by all" in found[path], path
    assert "emea" in found["/messages/orders/0/3"]
    assert "masked value" not in found["/messages/orders"]


class TopicSearch:
    """Search for dead letters, in all that a topic has."""

    def __init__(self, kafka: KafkaRecords) -> None:
        self._kafka = kafka

    def __call__(self, _: object, topic: str, *asked: object, shown: object) -> object:
        from engine.dead_letters.letter import DeadLetter
        from engine.dead_letters.search import Found, Summary

        assert callable(shown)
        found = tuple(Summary.of(DeadLetter(each), shown) for each in self._kafka.topics[topic])
        return Found(found, len(found), is_complete=True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x00\xff\xfe secret", "neither JSON nor XML"),
        (b'{"card":"secret"', "neither JSON nor XML"),
        (b"<order><card>secret</order>", "neither JSON nor XML"),
        (b"<!DOCTYPE o [<!ENTITY e 'secret'>]><o>&e;</o>", "neither JSON nor XML"),
        (b"card=secret", "neither JSON nor XML"),
        (b"[" * 200 + b"]" * 200, "neither JSON nor XML"),
        (b'{"card":"secret","x":"' + b"y" * (1 << 20) + b'"}', "the body has more than 1,048,576 bytes"),
        (b'{"card":"secret","x":"' + b"y" * (1 << 17) + b'"}', ""),
    ],
    ids=range(8),
)
def test_a_body_that_cannot_be_masked_is_not_shown(
    page: Page, kafka: KafkaRecords, monkeypatch: pytest.MonkeyPatch, body: bytes, why: str
) -> None:
    monkeypatch.setattr(letters, "search", TopicSearch(kafka))
    found = viewed(page, kafka, record(body, (DETAIL, "it says secret")), monkeypatch)
    for path, text in found.items():
        # The stand-in for the timeline quotes bodies, which the bridge does not.
        assert "timeline" in path or path == "/api/messages/orders:0:3" or "secret" not in text, path
    answer = json.loads(found["/api/messages/orders:0:3"])
    assert (why in answer["body_hidden"], answer["body"]) == (True, None) if why else "***" in answer["body"]
    assert "secret" not in json.dumps(answer["headers"])
    said = "is not shown" in found["/messages/orders/0/3"]
    assert said is bool(why)
    assert page.client.get("/messages/orders/0/3/body", headers=VIEWER).status_code == (403 if why else 200)
    # A list has the beginning of a large body alone, of which no mask is made.
    listed = json.loads(found["/api/topics/orders/records"])["records"][0]
    assert (listed["body"], listed["size"]) == (None, len(body))
    assert "not shown" in found["/messages/orders"]


def test_an_operator_sees_everything(page: Page, kafka: KafkaRecords) -> None:
    kafka.put("orders", record(b'{"card":"4111"}', ("jms.iban", "DE02")))
    text = html.unescape(page.client.get("/messages/orders/0/3", headers=LOGIN).text)
    assert ('"card": "4111"' in text, "DE02" in text, "***" in text) == (True, True, False)
    assert page.client.get("/messages/orders?where=iban%3D%27DE02%27", headers=LOGIN).status_code == 200


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("iban = 'DE02'", 403),
        ("region = 'emea' OR NOT (iban IS NULL)", 403),
        ("JMSType LIKE 'a%'", 403),
        ("msg.header.Type==a", 403),
        ("account = 'DE02'", 403),
        ("note IS NULL", 403),
        ("msg.body.card = '4111'", 403),
        ("msg.body.card.number IS NULL", 403),
        ("msg.body.lines[0].pin = '1'", 403),
        ("msg.body.lines[-1].pin = '1'", 403),
        ("msg.body.lines[*].pin = '1'", 403),
        ("msg.text LIKE '%4111%'", 403),
        ("xpath('/order/card') = '1'", 403),
        ("xpath('/order') = '1'", 403),
        ("xpath('/order/card[1]/@no') = '1'", 403),
        ("xpath('/order/line/@no') = '1'", 200),
        ("msg.body.lines[0].amount > 3", 200),
        ("msg.body.amount > 3", 200),
        ("region = 'emea' AND msg.address = 'orders'", 200),
    ],
)
def test_a_predicate_tells_no_masked_value(
    page: Page, kafka: KafkaRecords, monkeypatch: pytest.MonkeyPatch, where: str, code: int
) -> None:
    kafka.put("orders", record(b"{}"))
    kafka.put("dead", record(b"{}"))
    monkeypatch.setattr(searches, "find", lambda *_: iter(()))
    monkeypatch.setattr(letters, "search", TopicSearch(kafka))
    asked = f"where={quote(where)}"
    for path in ("/messages/orders", "/api/topics/orders/records", "/api/find", "/find", "/find/rows", "/dead-letters"):
        answer = page.client.get(f"{path}?{asked}", headers=VIEWER)
        assert answer.status_code == code, path
        assert ("http.viewer.mask hides that from viewers" in answer.text) is (code == 403), path
        assert page.client.get(f"{path}?{asked}", headers=LOGIN).status_code == 200
    assert page.client.get(f"/api/letters?{asked}", headers=VIEWER).status_code == code


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("text=4111", 403),
        ("header=iban=DE02", 403),
        ("header=jms.iban=DE02", 403),
        ("header=jms.string.iban=DE02", 403),
        ("header=Type=a", 403),
        ("header=JMSType=a", 403),
        ("header=jms.Type=a", 403),
        ("header=region=emea", 200),
        ("message_id=ID:1", 200),
        ("key=k", 200),
        ("id=1", 200),
    ],
)
def test_a_search_tells_no_masked_value(page: Page, monkeypatch: pytest.MonkeyPatch, asked: str, code: int) -> None:
    monkeypatch.setattr(searches, "find", lambda *_: iter(()))
    for path in ("/api/find", "/find/rows", "/find"):
        assert page.client.get(f"{path}?{asked}", headers=VIEWER).status_code == code, path


@pytest.mark.parametrize("mask", ["key", "JMSCorrelationID", "JMSXGroupID", "msg.body"])
def test_keys_are_masked_by_their_name_and_by_that_of_their_origin(
    tmp_path: Path, kafka: KafkaRecords, monkeypatch: pytest.MonkeyPatch, mask: str
) -> None:
    routes = "" if mask != "msg.body" else "routes.more.in.include=TRUE\nroutes.more.out.topic=more\n"
    routes += "" if mask != "msg.body" else "routes.more.conv.key=msg.body.customer\n"
    page = Page(tmp_path, f"{CONFIGURATION}{LOGINS}{routes}http.viewer.mask={mask}\n", login=True)
    monkeypatch.setattr(letters, "search", TopicSearch(kafka))
    found = viewed(page, kafka, record(b"hello", key="k-17"), monkeypatch)
    assert [path for path, text in found.items() if "k-17" in text] == []
    assert page.client.get("/api/find?key=k-17", headers=VIEWER).status_code == 403
    assert page.client.get("/api/find?id=k-17", headers=VIEWER).status_code == (403 if "Corr" in mask else 200)
    shown = "hello" in found["/messages/orders/0/3"]
    assert shown is (mask != "msg.body")


def test_formats_without_a_masked_path_are_not_shown(tmp_path: Path, kafka: KafkaRecords) -> None:
    page = Page(tmp_path, f"{CONFIGURATION}{LOGINS}http.viewer.mask=msg.body.card\n", login=True)
    kafka.put("orders", record(b"<order><card>4111</card></order>"))
    text = html.unescape(page.client.get("/messages/orders/0/3", headers=VIEWER).text)
    assert "The body is not shown: it is XML, and http.viewer.mask has no path into XML" in text
    assert "4111" not in text
    assert page.client.get("/find?where=xpath(%27/a/b%27)%3D%27c%27", headers=VIEWER).status_code == 403


def test_the_content_of_a_body_with_a_schema_is_masked(
    page: Page, kafka: KafkaRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Documents:
        def has_schema(self, *_: object) -> bool:
            return True

        def document(self, *_: object) -> BodyDocument:
            return BodyDocument("AVRO", b'{"card":"4111","open":"seen by all"}')

    for module in ("messages", "sight"):
        monkeypatch.setattr(f"engine.page.{module}.documents_of", lambda *_: Documents())
    kafka.put("orders", record(b"4111"))
    text = html.unescape(page.client.get("/messages/orders/0/3", headers=VIEWER).text)
    assert "a body with a schema has no mask; its content is shown with one" in text
    assert ("seen by all" in text, '"card": "***"' in text, "4111" in text) == (True, True, False)
    assert [(look.user, look.masked, look.records) for look in page.looks.looks] == [
        ("eve", True, (Position("orders", 0, 3),))
    ]


@pytest.mark.parametrize("correlation", ["secret-17", "x", "é" * 400])
def test_no_event_of_a_whole_story_quotes_a_masked_value(monkeypatch: pytest.MonkeyPatch, correlation: str) -> None:
    story = prepared(monkeypatch, f"{LOGINS}http.viewer.mask=JMSCorrelationID\n")
    at = story.journal(JMSCorrelationID=correlation)
    letter = story.bury(at)
    kafka = story.publish("orders", at, 1, key=correlation)
    copy = story.replay(letter, NOON + 2000)
    again = story.publish("orders", copy, key=correlation)
    mask = ViewerMask(story.config, None)
    for position in (at, letter, kafka, copy, again):
        told = story.of(position)
        quoted = re.compile(rf"(?<!\w){correlation[:40]}(?!\w)" if len(correlation) < 4 else correlation[:40])
        assert any(quoted.search(event.detail) for event in told.events)
        assert any("dlt replay --all" in event.detail for event in told.events)
        shown = mask.events(told)
        assert [event.detail for event in shown if quoted.search(event.detail) or "--all" in event.detail] == []
        assert [(event.at, event.what, event.record) for event in shown] == [
            (event.at, event.what, event.record) for event in told.events
        ]
        assert any("key ***" in event.detail for event in shown)


def test_commands_and_errors_that_may_quote_are_left_out(page: Page, kafka: KafkaRecords) -> None:
    mask = ViewerMask(page.config, None)
    one = record(b'{"card":"' + b"4" * 60 + b'","lines":[{"pin":7}]}')
    quotes = f"the key '{'4' * 50}' from 'msg.body.card', pin 7, 17 others, by anna, with: jms-bridge dlt --set a=b"
    story = Timeline(one, (TimelineEvent(1, "told", quotes),), (one,), (), ("jms-bridge dlt --set a=b",))
    (event,) = mask.events(story)
    assert event.detail == "the key '***"
    short = Timeline(
        one, (TimelineEvent(1, "told", "pin 7, 17 others; with: dlt --set a=b"),), (one,), (), ("dlt --set a=b",)
    )
    assert mask.events(short)[0].detail == "pin ***, 17 others; with: ***"
    assert page.client.get("/try?position=orders:0:3", headers=VIEWER).status_code == 403
