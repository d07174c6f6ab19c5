"""Messages that are sent from the page: shown first, sent once, in the name of the login."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dead_letters.audit import Actor
from engine.dead_letters.store import DeadLetterStore
from engine.errors import HardFailureError, UnreachableError
from engine.find.browse import BrowsedTopic
from engine.find.question import TopicKind
from engine.kafka.reader import LocatedRecord, Position
from engine.message import BodyType, Message, Record
from engine.page import message_form
from engine.page.message_form import form_of, message_in
from engine.rerouting import sending
from routes.model import Config
from routes.properties import JmsType, Property
from tests.unit.page.bridge import LOGIN, Page

SAME = {**LOGIN, "Origin": "http://127.0.0.1"}
FORM = {"address": "queue:orders", "properties": "region=emea\namount:int=5", "body": "one\r\ntwo", "kind": "text"}


class Journal:
    def __init__(self) -> None:
        self.written: list[tuple[Record, Actor]] = []
        self.error: Exception | None = None
        self.record = Record(None, b"", ())

    def write(self, _: DeadLetterStore, record: Record, actor: Actor) -> Position:
        if self.error:
            raise self.error
        self.written.append((record, actor))
        return Position("journal", 0, len(self.written))

    def at(self, _: Config, position: Position) -> tuple[BrowsedTopic, LocatedRecord]:
        return BrowsedTopic("journal", TopicKind.JOURNAL, ""), LocatedRecord(position, 0, self.record)


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    made = Journal()
    monkeypatch.setattr(sending, "_written", made.write)
    monkeypatch.setattr(message_form, "record_at", made.at)
    return made


@pytest.fixture
def page(tmp_path: Path, journal: Journal) -> Page:
    return Page(tmp_path, login=True)


def post(page: Page, fields: Mapping[str, str]) -> Any:
    fields = {"seal": page.seal("/send", LOGIN), **fields}
    return page.client.post("/send", data=fields, headers=SAME, follow_redirects=False)


def hidden(text: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def test_a_message_is_shown_and_then_sent_once(page: Page, journal: Journal) -> None:
    shown = post(page, FORM)
    assert "Send this message?" in shown.text
    assert "By the routes in force: <strong>" in shown.text
    assert "The audit will name anna." in shown.text
    assert journal.written == []
    confirmed = {**hidden(shown.text), "confirmed": "yes"}
    for _ in range(2):
        answer = post(page, confirmed)
        assert (answer.status_code, answer.headers["location"]) == (303, "/send?sent=journal:0:1")
    ((record, actor),) = journal.written
    assert actor == Actor("anna", "testclient", "status page: send")
    found = Message.from_record(record)
    assert (found.body, found.headers["JMSDestination"]) == (b"one\ntwo", "queue:orders")
    assert found.properties == {"region": Property("emea"), "amount": Property("5", JmsType.INT)}
    assert record.key == found.headers["JMSMessageID"].encode() == confirmed["token"].encode()
    done = page.client.get("/send?sent=journal:0:1", headers=LOGIN).text
    assert '<a href="/messages/journal/0/1/timeline">timeline</a>' in done


def test_a_key_of_its_own_and_ids_of_its_own_are_taken(page: Page, journal: Journal) -> None:
    fields = {**FORM, "properties": "MessageID=ID:mine\nJMSMessageID=ID:mine", "key": "k"}
    shown = post(page, fields)
    post(page, {**hidden(shown.text), "confirmed": "yes"})
    ((record, _),) = journal.written
    assert (record.key, record.header("jms.JMSMessageID")) == (b"k", "ID:mine")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"properties": "x"}, "line 1 of the headers"),
        ({"kind": "x"}, "there is no kind of body"),
        ({"confirmed": "yes"}, "this form lacks its token"),
    ],
)
def test_what_cannot_be_sent_is_named_and_the_form_stays(
    page: Page, journal: Journal, fields: dict[str, str], told: str
) -> None:
    answer = post(page, {**FORM, **fields})
    assert answer.status_code == 400
    assert told in answer.text.replace("&#39;", "'")
    assert 'value="queue:orders"' in answer.text
    assert journal.written == []


def test_a_message_that_kafka_did_not_take_can_be_sent_again_with_the_same_button(page: Page, journal: Journal) -> None:
    confirmed = {**hidden(post(page, FORM).text), "confirmed": "yes"}
    journal.error = UnreachableError("Kafka does not answer")
    answer = post(page, confirmed)
    assert answer.status_code == 503
    assert hidden(answer.text)["token"] == confirmed["token"]
    journal.error = HardFailureError("the message is larger than 'journal' takes")
    answer = post(page, confirmed)
    assert answer.status_code == 503
    assert "larger than" in answer.text
    assert journal.written == []


def test_only_a_form_of_ours_sends(page: Page, journal: Journal) -> None:
    for headers in (SAME, {**LOGIN, "Origin": "http://evil.example"}):
        answer = page.client.post("/send", data={**FORM, "token": "x", "confirmed": "yes"}, headers=headers)
        assert answer.status_code == 403
    assert journal.written == []


def test_a_copy_has_the_parts_of_the_record_and_a_new_id(page: Page, journal: Journal) -> None:
    message = Message(
        b"\nhello", BodyType.BYTES, {"JMSMessageID": "ID:1", "JMSType": "t", "JMSDestination": "queue:a"}, {}, "jms"
    )
    journal.record = replace(message.to_record(), key=b"own")
    text = post(page, {"position": "journal:0:7"}).text
    assert ">\n\nhello</textarea>" in text
    assert "JMSType=t</textarea>" in text
    assert "ID:1" not in text
    assert 'name="key" value="own"' in text
    journal.record = message.to_record()
    assert 'name="key" value=""' in post(page, {"position": "journal:0:7"}).text


@pytest.mark.parametrize("record", [Record(None, b"\xff", ()), Record(None, b"", (("jmsbridge.claim", b"1/2"),))])
def test_a_copy_that_a_form_cannot_hold_names_the_command(page: Page, journal: Journal, record: Record) -> None:
    journal.record = record
    answer = post(page, {"position": "0:7"})
    assert answer.status_code == 400
    assert "jms-bridge journal replay POSITION" in answer.text


def test_what_was_tried_can_be_sent(page: Page) -> None:
    assert "Send this message" not in page.client.get("/try", headers=LOGIN).text
    fields = {"seal": page.seal("/try", LOGIN), **FORM}
    assert 'formaction="/send"' in page.client.post("/try", data=fields, headers=SAME).text


NAMES = st.from_regex("[a-z][a-z0-9]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")))


@given(
    st.dictionaries(NAMES, st.builds(Property, TEXTS, st.sampled_from([None, *JmsType]))),
    TEXTS,
    st.sampled_from(BodyType),
)
def test_a_message_comes_back_from_its_form(properties: dict[str, Property], body: str, kind: BodyType) -> None:
    fields = {"JMSCorrelationID": "42", "JMSDestination": "queue:orders"}
    message = Message(body.encode(), kind, fields, properties, "s")
    assert message_in(form_of(message), {}) == message
