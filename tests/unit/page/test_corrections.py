"""The correction of a dead letter on the page: what can be changed, what differs, and who is named for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.dead_letters.letter import DeadLetter, original
from engine.dead_letters.replay import Options, Replayed, ReplayOutcome
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UsageError
from engine.kafka.reader import Position
from engine.message import Record
from engine.page import corrections
from engine.page.body_text import body_text, text_body
from engine.page.corrections import CorrectedPart, differences
from tests.unit.dead_letters.letters import letter
from tests.unit.kafka.reader_stand_in import ReaderStandIn
from tests.unit.page.bridge import LOGIN, Page

PLACE = "/dead-letters/letter/0/17/correct"
SAME = {**LOGIN, "Origin": "http://127.0.0.1"}


def with_body(body: bytes, *more: tuple[str, bytes]) -> DeadLetter:
    located = letter().located
    record = replace(located.record, key=b"42", value=body, headers=(*located.record.headers, *more))
    return DeadLetter(replace(located, record=record))


class Letters:
    def __init__(self) -> None:
        self.letter = with_body(b"one\ntwo")
        self.asked: list[tuple[bool, Options]] = []
        self.would = ReplayOutcome.WOULD_REPLAY
        self.error: Exception | None = None

    def replay(
        self, _: DeadLetterStore, positions: Sequence[Position], *, dry_run: bool, options: Options
    ) -> Iterator[Replayed]:
        if self.error:
            raise self.error
        assert list(positions) == [self.letter.position]
        self.asked.append((dry_run, options))
        yield (
            Replayed(self.letter, self.would)
            if dry_run
            else Replayed(self.letter, ReplayOutcome.REPLAYED, "journal:0:9")
        )

    def after(self) -> Record:
        return self.asked[-1][1].correction.apply(original(self.letter, "b1"))


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Letters:
    made = Letters()

    class Reader(ReaderStandIn):
        def at(self, *_: object) -> object:
            return made.letter.located

    monkeypatch.setattr(corrections, "KafkaTopicReader", Reader)
    monkeypatch.setattr(corrections, "replay", made.replay)
    return made


@pytest.fixture
def page(tmp_path: Path, kafka: Letters) -> Page:
    return Page(tmp_path, login=True)


def post(page: Page, **fields: str) -> Any:
    return page.client.post(PLACE, data={"seal": page.seal("/try", LOGIN), **fields}, headers=SAME)


def hidden(text: str) -> dict[str, str]:
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text))


def test_a_corrected_message_is_replayed_after_what_differs_was_shown(page: Page, kafka: Letters) -> None:
    text = post(page, edit="1").text
    assert ">\none\ntwo</textarea>" in text
    asked = post(page, set="region=apac\r\n", unset="JMSType", key="43", body="one\r\n2")
    assert "Replay the corrected message?" in asked.text
    for told in ("jms.region", "<code>key</code>", "one\ntwo", "one\n2", "The audit will name anna"):
        assert told in asked.text.replace("\\n", "\n")
    assert [dry for dry, _ in kafka.asked] == [True]
    done = page.client.post(PLACE, data={**hidden(asked.text), "confirmed": "yes"}, headers=SAME)
    assert '<a href="/messages/journal/0/9"><code>journal:0:9</code></a>' in done.text
    assert 'href="/messages/journal/0/9/timeline"' in done.text
    assert [(each.action, each.result) for each in page.actions.actions] == [
        ("correct and replay", ""),
        ("correct and replay", "replayed"),
    ]
    dry, options = kafka.asked[-1]
    assert not dry
    assert options.actor.user == "anna"
    assert options.actor.command == ("status page: replay --set region=apac --unset JMSType --key 43 --body-file -")
    after = kafka.after()
    assert (after.key, after.value, after.header("jms.region")) == (b"43", b"one\n2", "apac")


def test_from_the_quarantine_it_is_replayed_by_force(page: Page, kafka: Letters) -> None:
    kafka.letter = DeadLetter(replace(kafka.letter.located, position=Position("dead.quarantine", 0, 17)))
    fields = {"seal": page.seal("/try", LOGIN), "key": "43", "confirmed": "yes"}
    page.client.post(PLACE + "?quarantine=1", data=fields, headers=SAME)
    options = kafka.asked[-1][1]
    assert (options.quarantine, options.force) == (True, True)
    assert options.actor.command == "status page: replay from quarantine --key 43"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "nothing differs from the message as it is"),
        ({"key": "42", "body": "one\r\ntwo"}, "nothing differs from the message as it is"),
        ({"set": "a=1\nregion"}, "line 2 of the headers to set: &#39;region&#39;: expected NAME=VALUE"),
        ({"set": "=1"}, "line 1 of the headers to set"),
        ({"set": "jmsbridge.source=x"}, "&#39;jmsbridge.source&#39; is a header of the bridge itself"),
        ({"set": "a=1", "unset": "a"}, "&#39;a&#39; is both set and removed"),
        ({"body": "x" * 1_000_001}, "the form takes"),
    ],
)
def test_what_cannot_be_a_correction_is_named_and_the_form_stays(
    page: Page, kafka: Letters, fields: dict[str, str], told: str
) -> None:
    answer = post(page, **fields)
    assert answer.status_code == 400
    assert told in answer.text
    assert 'name="set"' in answer.text
    assert kafka.asked == []


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (with_body(b"\xff\x00"), "the body is not text that a form can hold"),
        (with_body(b"a\0b"), "the body is not text that a form can hold"),
        (with_body(b"x" * 1_000_001), "the body has 976.6 KiB, which is too much to be changed here"),
        (with_body(b"", ("jmsbridge.claim", b"1/2")), "the body is kept as a file"),
    ],
)
def test_a_body_that_the_form_cannot_hold_names_the_command(
    page: Page, kafka: Letters, found: DeadLetter, told: str
) -> None:
    kafka.letter = found
    text = post(page, edit="1").text
    assert told in text
    assert "use jms-bridge dlt replay 0:17 --body-file FILE" in text
    assert 'name="body"' not in text
    answer = post(page, body="other")
    assert answer.status_code == 400
    assert kafka.asked == []
    assert "Replay the corrected message?" in post(page, key="43").text


def test_a_letter_that_is_not_replayable_has_no_button(page: Page, kafka: Letters) -> None:
    kafka.would = ReplayOutcome.ALREADY_REPLAYED
    text = post(page, key="43").text
    assert "already replayed" in text
    assert 'name="confirmed"' not in text
    assert 'value="43"' in page.client.post(PLACE, data={**hidden(text), "edit": "1"}, headers=SAME).text


def test_an_error_of_the_replay_keeps_what_was_entered(page: Page, kafka: Letters) -> None:
    kafka.error = UsageError("another replay took over")
    answer = post(page, key="43", confirmed="yes")
    assert answer.status_code == 400
    assert "another replay took over" in answer.text
    assert 'value="43"' in answer.text


def test_only_a_form_of_ours_is_taken(page: Page, kafka: Letters) -> None:
    answer = page.client.post(PLACE, data={"key": "43", "confirmed": "yes"}, headers=SAME)
    assert answer.status_code == 403
    assert kafka.asked == []
    assert page.client.get(PLACE, headers=LOGIN).status_code == 405
    fields = {"seal": page.seal("/try", LOGIN), "edit": "1"}
    assert page.client.post("/dead-letters/letter/x/1/correct", data=fields, headers=SAME).status_code == 400


def test_of_a_long_body_only_the_part_that_differs_is_shown() -> None:
    before = Record(None, b"a" * 5000 + b"one" + b"z" * 5000, ())
    after = replace(before, value=b"a" * 5000 + b"two!" + b"z" * 5000)
    (found,) = differences(before, after)
    assert found == CorrectedPart(
        "body", f"… {'a' * 80}one{'z' * 80} …".encode(), f"… {'a' * 80}two!{'z' * 80} …".encode()
    )
    (found,) = differences(before, replace(before, value=b"b" * 9000))
    assert found.after is not None
    assert len(found.after) < 5000


@given(st.text(), st.text())
def test_parts_that_differ_are_in_what_is_shown(old: str, new: str) -> None:
    shown = list(
        differences(Record(None, old.encode("utf-8", "replace"), ()), Record(None, new.encode("utf-8", "replace"), ()))
    )
    assert bool(shown) is (old.encode("utf-8", "replace") != new.encode("utf-8", "replace"))


@given(st.one_of(st.binary(), st.text(alphabet="a\r\n\0\u00e4").map(str.encode)))
def test_a_body_comes_back_from_a_form_as_it_was_or_is_not_put_into_one(body: bytes) -> None:
    text = body_text(body)
    if text is None:
        return
    sent = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
    assert text_body(sent, body) == body
