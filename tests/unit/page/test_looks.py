"""Looks at bodies: each is noted before the body is shown, and without the note there is no body."""

from __future__ import annotations

import html
import json
from pathlib import Path

import pytest

from engine.dead_letters.letter import DeadLetter
from engine.dead_letters.replay import Replayed, ReplayOutcome
from engine.errors import HardFailureError
from engine.find.question import TopicKind
from engine.find.search import FindProgress, FoundRecord
from engine.kafka.reader import LocatedRecord, Position
from engine.looks.look import Look, LookWay
from engine.page import corrections, letters, looks, searches
from tests.unit.page.bridge import LOGIN, VIEWER, Page
from tests.unit.page.kafka_records import HOSTILE, KafkaRecords, TopicRecords, located
from tests.unit.page.test_parts import SAME

WAYS = {
    "/messages/orders": (LookWay.LIST, (1, 0)),
    "/messages/orders?live=1": (LookWay.LIST, (1, 0)),
    "/messages/orders/0/1": (LookWay.RECORD, (1,)),
    "/messages/orders/0/1/body": (LookWay.FILE, (1,)),
    "/dead-letters/letter/0/1": (LookWay.LETTER, (1,)),
    "/find/rows": (LookWay.SEARCH, (1,)),
    "/try?position=orders:0:1": (LookWay.TRIAL, (1,)),
    "/api/topics/orders/records": (LookWay.API, (1, 0)),
    "/api/messages/orders:0:1": (LookWay.API, (1,)),
    "/api/find": (LookWay.API, (1,)),
}
"""Requests that show bodies, each with the way of its look, and the offsets of the records."""
SILENT = (
    "/",
    "/routes",
    "/charts",
    "/messages",
    "/find",
    "/try",
    "/settings",
    "/looks",
    "/messages/orders/0/1/timeline",
)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    kafka = KafkaRecords(monkeypatch)
    for topic in ("orders", "dead"):
        kafka.put(topic, located(topic, 0, b"first body"), located(topic, 1, b"second body"))
    kafka.put("orders", LocatedRecord(Position("orders", 0, 2), 1, type(located("orders", 2).record)(b"k", None, ())))
    for module in (letters, corrections):
        monkeypatch.setattr(module, "KafkaTopicReader", lambda _, topic, *__: TopicRecords(kafka, topic))
    outcome = Replayed(DeadLetter(located("dead", 1)), ReplayOutcome.WOULD_REPLAY)
    monkeypatch.setattr(corrections, "replay", lambda *_, **__: iter([outcome]))
    monkeypatch.setattr(letters, "identity", lambda *_: "id")
    monkeypatch.setattr(letters, "settled", lambda *_: {})
    found = (
        FoundRecord(TopicKind.DESTINATION, located("orders", 1, b"second body")),
        FindProgress(1, 1, 1, None, True),
    )
    monkeypatch.setattr(searches, "find", lambda *_: iter(found))
    monkeypatch.setattr(looks, "last_looks", lambda *_: [])
    return Page(tmp_path, login=True)


@pytest.mark.parametrize("path", WAYS)
def test_a_look_is_noted_with_user_host_and_records(page: Page, path: str) -> None:
    answer = page.client.get(path, headers=VIEWER)
    assert answer.status_code == 200
    assert "second body" in answer.text
    (look,) = page.looks.looks
    way, offsets = WAYS[path]
    assert (look.user, look.role, look.host, look.way, look.masked) == ("eve", "viewer", "testclient", way, False)
    topic = "dead" if way is LookWay.LETTER else "orders"
    assert look.records == tuple(Position(topic, 0, offset) for offset in offsets)
    page.client.get(path, headers=LOGIN)
    assert [(each.user, each.role) for each in page.looks.looks[1:]] == [("anna", "operator")]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/send", {"position": "orders:0:1"}),
        ("/dead-letters/letter/0/1/correct", {"edit": "1"}),
        ("/dead-letters/letter/0/1/correct", {"body": "other", "key": ""}),
    ],
)
def test_a_form_with_a_message_is_a_look(page: Page, path: str, fields: dict[str, str]) -> None:
    form = fields | {"seal": page.seal("/send", LOGIN)}
    assert "second body" in page.client.post(path, data=form, headers=LOGIN | SAME).text
    assert [(look.way, [each.offset for each in look.records]) for look in page.looks.looks] == [(LookWay.FORM, [1])]
    page.looks.error = HardFailureError("refused")
    answer = page.client.post(path, data=form, headers=LOGIN | SAME)
    assert (answer.status_code, "second body" in answer.text, "refused" in answer.text) == (503, False, True)


def test_pages_without_a_body_note_nothing(page: Page) -> None:
    for path in (*SILENT, "/messages/orders/0/2", "/messages/orders/0/9", "/api/topics", "/api/messages/orders:0:2"):
        page.client.get(path, headers=LOGIN)
    assert page.looks.looks == []


@pytest.mark.parametrize("path", WAYS)
def test_a_look_that_cannot_be_noted_shows_no_body(page: Page, path: str) -> None:
    page.looks.error = HardFailureError("Kafka refuses the audit of looks in topic 'j.looks'")
    for login in (LOGIN, VIEWER):
        answer = page.client.get(path, headers=login)
        text = html.unescape(answer.text)
        assert [body for body in ("first body", "second body") if body in text] == []
        assert "Kafka refuses the audit of looks in topic 'j.looks'" in text


def test_the_rest_of_a_record_is_shown_then(page: Page) -> None:
    page.looks.error = HardFailureError("refused")
    answer = page.client.get("/api/messages/orders:0:1", headers=LOGIN).json()
    assert (answer["body"], answer["body_hidden"]) == (None, "a look at a body has to be noted, and refused")
    assert {"name": "jms.JMSMessageID", "value": "ID:1"} in answer["headers"]
    assert "ID:1" in page.client.get("/messages/orders/0/1", headers=LOGIN).text
    assert page.client.get("/messages/orders/0/1/body", headers=LOGIN).status_code == 503
    lines = page.client.get("/api/find", headers=LOGIN).text.splitlines()
    assert [json.loads(line) for line in lines] == [{"error": "refused"}]


def test_without_a_login_the_host_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    KafkaRecords(monkeypatch).put("orders", located("orders", 1))
    page = Page(tmp_path)
    assert "hello" in page.text("/messages/orders/0/1")
    assert [(look.user, look.role, look.host) for look in page.looks.looks] == [("", "operator", "testclient")]


def test_the_page_shows_the_newest_first_and_runs_nothing(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    records = tuple(Position(HOSTILE if n == 0 else "orders", 0, n) for n in range(7))
    entries = [
        Look("t0", "anna", "operator", "h", HOSTILE, True, records),
        Look("t1", "", "operator", "h", "API", False, ()),
    ]
    monkeypatch.setattr(looks, "last_looks", lambda *_: entries)
    text = page.client.get("/looks", headers=VIEWER).text
    assert text.index("t1") < text.index("t0")
    assert ("nobody logged in" in text, "and 2 more" in text, "<img" in text) == (True, True, False)
    found = page.client.get("/api/looks?count=2", headers=VIEWER).json()["looks"]
    assert [each["time"] for each in found] == ["t1", "t0"]
    assert page.client.get("/api/looks?count=0", headers=VIEWER).status_code == 400


def test_a_trial_of_a_record_needs_the_note_as_well(page: Page) -> None:
    page.looks.error = HardFailureError("refused")
    assert page.client.get("/try?position=orders:0:1", headers=LOGIN).status_code == 503
