"""Dead letters on the page, with stand-ins for Kafka: what is shown, and who may do what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.dead_letters.audit import Action, Actor, AuditEntry
from engine.dead_letters.letter import DeadLetter
from engine.dead_letters.replay import Options, Replayed, ReplayOutcome
from engine.dead_letters.search import Found, Summary
from engine.dead_letters.state import LetterState
from engine.dead_letters.store import DeadLetterStore
from engine.errors import UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.reader import Position
from engine.page import letters
from tests.unit.dead_letters.letters import letter
from tests.unit.kafka.reader_stand_in import ReaderStandIn
from tests.unit.page.bridge import CONFIGURATION, LOGIN, Page

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"
PLACE = "/dead-letters/settle"
SAME = {**LOGIN, "Origin": "http://127.0.0.1"}


class Kafka:
    """Says what was asked of it."""

    def __init__(self) -> None:
        self.found = Found((), 0, is_complete=True)
        self.letter = letter()
        self.entry: AuditEntry | None = None
        self.asked: Any = None
        self.settled: list[tuple[str, tuple[Position, ...], bool, Options]] = []
        self.error: Exception | None = None
        self.has_quarantine = True

    def search(self, _: KafkaClients, *asked: object, shown: object) -> Found:
        self.asked = asked
        return self.found

    def settle(self, name: str) -> Any:
        def done(
            _: DeadLetterStore, positions: Sequence[Position], *, dry_run: bool, options: Options
        ) -> Iterator[Replayed]:
            if self.error:
                raise self.error
            self.settled.append((name, tuple(positions), dry_run, options))
            would = ReplayOutcome.WOULD_REPLAY if name == "replay" else ReplayOutcome.WOULD_DISCARD
            outcome = ReplayOutcome.REPLAYED if name == "replay" else ReplayOutcome.DISCARDED
            for _each in positions:
                yield Replayed(self.letter, would if dry_run else outcome)

        return done


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()

    class Reader(ReaderStandIn):
        def at(self, *_: object) -> object:
            return made.letter.located

        def bounds(self) -> dict[int, tuple[int, int]]:
            return {0: (0, 9)}

    monkeypatch.setattr(letters, "KafkaTopicReader", Reader)
    monkeypatch.setattr(letters, "search", made.search)
    monkeypatch.setattr(letters, "exists", lambda *_: made.has_quarantine)
    monkeypatch.setattr(letters, "identity", lambda *_: "id")
    monkeypatch.setattr(letters, "settled", lambda *_: {Position("dead", 0, 7): made.entry} if made.entry else {})
    monkeypatch.setattr(letters, "_ACTIONS", {name: made.settle(name) for name in ("replay", "discard")})
    return made


@pytest.fixture
def page(tmp_path: Path, kafka: Kafka) -> Page:
    return Page(tmp_path, login=True)


def summary(offset: int, **more: Any) -> Summary:
    shown = {"time_ms": 1, "reason": "unmatched", "route": "", "detail": "", "key": b"42", "bytes": 4, "replays": 0}
    return Summary(Position("dead", 0, offset), **{**shown, **more})


def sealed(page: Page) -> str:
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    return str(re.findall(r'name="seal" value="([0-9a-f]+)"', text)[0])


def test_the_list_shows_what_was_found_and_escapes_it(page: Page, kafka: Kafka) -> None:
    found = (summary(7, reason=HOSTILE, route=HOSTILE, detail=HOSTILE, key=HOSTILE.encode()), summary(6, key=b"\xff"))
    kafka.found = Found(found, 2, is_complete=True)
    text = page.client.get("/dead-letters", headers=LOGIN).text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;\\x1b[2J") == 4
    assert "<img" not in text
    assert 'value="0:7"' in text
    assert '<span class="badge">hex</span> ff' in text


def test_a_quarantine_that_is_not_there_yet_is_empty(page: Page, kafka: Kafka) -> None:
    kafka.found = Found((summary(7),), 1, is_complete=True)
    kafka.has_quarantine = False
    answer = page.client.get("/dead-letters?quarantine=1", headers=LOGIN)
    assert answer.status_code == 200
    assert "The quarantine is empty." in answer.text
    kafka.has_quarantine = True
    assert 'value="0:7"' in page.client.get("/dead-letters?quarantine=1", headers=LOGIN).text


def test_letters_are_chosen_by_their_state(page: Page, kafka: Kafka) -> None:
    states = {Position("dead", 0, offset): state for offset, state in enumerate(LetterState)}
    page.state_of_letter = states.get
    for state in LetterState:
        answer = page.client.get(f"/dead-letters?state={state}", headers=LOGIN)
        assert answer.status_code == 200
        is_wanted = kafka.asked[-1]
        assert [each for place, each in states.items() if is_wanted(place)] == [state]
        assert not is_wanted(Position("dead", 0, 9))
    page.client.get("/dead-letters?state=", headers=LOGIN)
    assert kafka.asked[-1](Position("dead", 0, 9))
    answer = page.client.get("/dead-letters?state=settled", headers=LOGIN)
    assert answer.status_code == 400
    assert "is not a state of a dead letter; expected one of open, replayed, discarded, quarantined" in answer.text


def test_the_list_shows_states_and_the_next_retry(tmp_path: Path, kafka: Kafka) -> None:
    page = Page(tmp_path, f"{CONFIGURATION}routing.retry=5s, 1m\n", login=True)
    states = dict(zip((Position("dead", 0, offset) for offset in range(4)), LetterState, strict=True))
    page.state_of_letter = states.get
    kafka.found = Found(tuple(summary(n, replays=1, time_ms=1_000) for n in range(5)), 5, is_complete=True)
    text = page.client.get("/dead-letters", headers=LOGIN).text
    shown = re.findall(r'data-label="State"><span class="(?:status )?\w+">(?:<span.*?</span>)?(.+?)</span>', text)
    assert shown == [*LetterState, "\u2013"]
    assert text.count("retried at 1970-01-01T00:01:01.000Z") == 1
    found = page.client.get("/api/letters", headers=LOGIN).json()["letters"]
    assert [each["state"] for each in found] == [*LetterState, None]
    assert [each["retry"] for each in found] == ["1970-01-01T00:01:01.000Z", None, None, None, None]
    text = page.client.get("/dead-letters?quarantine=1", headers=LOGIN).text
    assert "retried at" not in text


def test_filters_and_page_are_in_the_address(page: Page, kafka: Kafka) -> None:
    kafka.found = Found(tuple(summary(n) for n in range(120)), 500, is_complete=False)
    address = "/dead-letters?reason=unmatched&route=orders&since=2h&where=region+%3D+%27emea%27&page=2"
    text = page.client.get(address, headers=LOGIN).text
    topic, filters, count, seconds, _ = kafka.asked
    assert (topic, count) == ("dead", 101)
    assert seconds < 3
    assert (filters.reasons, filters.routes) == ({"unmatched"}, {"orders"})
    assert filters.since_ms is not None
    assert filters.where.text == "region = 'emea'"
    assert text.count('type="checkbox" name="position"') == 50
    assert "page=1" in text
    assert "page=3" in text
    assert "The newest 500 dead letters in the topic were read." in text


@pytest.mark.parametrize("number", ["0", "-1", "x", "99999", "1e9", "٣"])
def test_a_page_that_is_none_is_the_first_or_the_last(page: Page, kafka: Kafka, number: str) -> None:
    answer = page.client.get("/dead-letters", params={"page": number}, headers=LOGIN)
    assert answer.status_code == 200
    assert kafka.asked[2] <= 1001


def test_a_letter_shows_headers_and_body_escaped(page: Page, kafka: Kafka) -> None:
    located = letter((HOSTILE, HOSTILE.encode()), ("binary", b"\x00\xff"), ("none", None)).located
    record = type(located.record)(HOSTILE.encode(), HOSTILE.encode(), located.record.headers)
    kafka.letter = DeadLetter(type(located)(located.position, located.time_ms, record))
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;\\x1b[2J") == 4
    assert "<img" not in text
    assert "00 ff" in text
    assert "(none)" in text
    assert "<strong>Open</strong>" in text


@pytest.mark.parametrize("place", ["x/7", "0/-1", "0/1.5", f"0/{'9' * 5000}", "0/%00"])
def test_a_place_that_is_none_is_named(page: Page, place: str) -> None:
    answer = page.client.get(f"/dead-letters/letter/{place}", headers=LOGIN)
    assert answer.status_code == 404
    assert "is not a position" in answer.text


def test_a_large_body_is_cut(page: Page, kafka: Kafka) -> None:
    located = letter().located
    record = type(located.record)(None, b"x" * 3_000_000, located.record.headers)
    kafka.letter = DeadLetter(type(located)(located.position, located.time_ms, record))
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    assert len(text) < 100_000
    assert "2.9 MiB in all" in text


def test_a_settled_letter_says_by_whom(page: Page, kafka: Kafka) -> None:
    kafka.entry = AuditEntry(
        Position("dead", 0, 7), Action.DISCARDED, "2026-11-22T05:00:00Z", actor=Actor("bob", "10.0.0.1", "status page")
    )
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    assert "<strong>discarded</strong> by bob on 10.0.0.1, 2026-11-22T05:00:00Z" in text
    assert '<a href="/dead-letters/audit?letter=dead%3A0%3A17#dead:0:17">Audit</a>' in text
    kafka.entry = replace(kafka.entry, action=Action.REPLAYED, copy="jms-bridge.journal:1:42")
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    assert 'as <a href="/messages/jms-bridge.journal/1/42"><code>jms-bridge.journal:1:42</code></a>' in text
    for copy in ("<b>", "0:9"):
        kafka.entry = replace(kafka.entry, copy=copy)
        text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
        assert f"as <code>{copy.replace('<', '&lt;').replace('>', '&gt;')}</code>" in text


def test_a_letter_that_is_to_be_retried_says_when(tmp_path: Path, kafka: Kafka) -> None:
    page = Page(tmp_path, f"{CONFIGURATION}routing.retry=5s, 1m\n", login=True)
    text = page.client.get("/dead-letters/letter/0/7", headers=LOGIN).text
    assert "<strong>Open</strong>: the bridge replays it by itself after " in text


@pytest.mark.parametrize("action", ["replay", "discard"])
def test_what_is_chosen_is_confirmed_and_then_done_in_the_name_of_the_login(
    page: Page, kafka: Kafka, action: str
) -> None:
    chosen = {"seal": sealed(page), "action": action, "position": ["0:7", "0:8", "0:7"]}
    asked = page.client.post(PLACE, data=chosen, headers=SAME)
    assert asked.status_code == 200
    assert "The audit will name anna." in asked.text
    assert 'name="confirmed" value="yes"' in asked.text
    assert [(name, dry) for name, _, dry, _ in kafka.settled] == [(action, True)]
    done = page.client.post(PLACE, data={**chosen, "confirmed": "yes"}, headers=SAME)
    assert "<h1>Done</h1>" in done.text
    name, positions, dry_run, options = kafka.settled[1]
    assert (name, dry_run) == (action, False)
    assert positions == (Position("dead", 0, 7), Position("dead", 0, 8))
    assert options.actor == Actor("anna", "testclient", f"status page: {action}")
    assert not options.force
    before, after = page.actions.actions
    assert (before.action, before.target, before.result) == (action, "dead:0:7, dead:0:8", "")
    assert (after.id, bool(after.result)) == (before.id, True)


def test_nothing_is_settled_that_cannot_be_noted(page: Page, kafka: Kafka) -> None:
    page.actions.error = UnreachableError("no Kafka")
    chosen = {"seal": sealed(page), "action": "discard", "position": "0:7", "confirmed": "yes"}
    answer = page.client.post(PLACE, data=chosen, headers=SAME)
    assert (answer.status_code, "an action has to be noted, and no Kafka" in answer.text) == (503, True)
    assert kafka.settled == []


def test_from_the_quarantine_a_replay_is_forced(page: Page, kafka: Kafka) -> None:
    chosen = {"seal": sealed(page), "action": "replay", "position": "0:7", "quarantine": "1", "confirmed": "yes"}
    page.client.post(PLACE, data=chosen, headers=SAME)
    _, positions, _, options = kafka.settled[0]
    assert positions == (Position("dead.quarantine", 0, 7),)
    assert (options.quarantine, options.force) == (True, True)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}, 200),
        ({}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:81"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://127.0.0.1/"}, 403),
        ({"Origin": "http://127.0.0.1#evil.example"}, 403),
        ({"Origin": "http://evil.example@127.0.0.1"}, 403),
        ({"Origin": "evil://127.0.0.1"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
    ],
)
def test_only_a_page_of_ours_may_change_anything(page: Page, kafka: Kafka, headers: dict[str, str], code: int) -> None:
    chosen = {"seal": sealed(page), "action": "discard", "position": "0:7", "confirmed": "yes"}
    assert page.client.post(PLACE, data=chosen, headers={**LOGIN, **headers}).status_code == code
    assert len(kafka.settled) == (code == 200)


def test_an_origin_with_more_than_a_host_is_refused_though_the_host_header_repeats_it(page: Page, kafka: Kafka) -> None:
    chosen = {"seal": sealed(page), "action": "discard", "position": "0:7", "confirmed": "yes"}
    headers = {**LOGIN, "Origin": "http://evil.example@127.0.0.1", "Host": "evil.example@127.0.0.1"}
    assert page.client.post(PLACE, data=chosen, headers=headers).status_code == 403
    assert kafka.settled == []


def test_a_form_without_our_signature_changes_nothing(page: Page, kafka: Kafka, tmp_path: Path) -> None:
    other = Page(tmp_path, login=True)
    for seal in ("", "0" * 64, "\u00e4", sealed(other)):
        chosen = {"seal": seal, "action": "discard", "position": "0:7", "confirmed": "yes"}
        assert page.client.post(PLACE, data=chosen, headers=SAME).status_code == 403
    assert page.client.get(PLACE, headers=SAME).status_code == 405
    assert kafka.settled == []


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"action": "replay"}, "no dead letter is selected"),
        ({"action": "drop", "position": "0:7"}, "there is no action &#39;drop&#39;"),
        ({"action": "replay", "position": "x"}, "is not a position"),
        ({"action": "replay", "position": f"0:{'9' * 5000}"}, "is not a position"),
        ({"action": "replay", "position": [f"0:{n}" for n in range(201)]}, "201 dead letters are too many"),
    ],
)
def test_a_choice_that_makes_no_sense_is_named(page: Page, kafka: Kafka, fields: dict[str, Any], told: str) -> None:
    answer = page.client.post(PLACE, data={"seal": sealed(page), **fields}, headers=SAME)
    assert answer.status_code == 400
    assert told in answer.text
    assert kafka.settled == []


def test_an_error_after_the_confirmation_leads_to_the_audit(page: Page, kafka: Kafka) -> None:
    kafka.error = UnreachableError("Kafka at 127.0.0.1:1 does not answer")
    chosen = {"seal": sealed(page), "action": "replay", "position": "0:7", "confirmed": "yes"}
    answer = page.client.post(PLACE, data=chosen, headers=SAME)
    assert answer.status_code == 503
    assert "Not done" in answer.text
    assert 'href="/dead-letters/audit"' in answer.text


def test_the_audit_names_who_did_what(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = AuditEntry(
        Position("dead", 0, 7), Action.REPLAYED, "yesterday", "journal:0:9", actor=Actor(HOSTILE, "host", "status page")
    )
    monkeypatch.setattr(letters, "last", lambda *_: [entry])
    text = page.client.get("/dead-letters/audit", headers=LOGIN).text
    assert "&lt;img src=x onerror=alert(1)&gt;\\x1b[2J" in text
    assert '<a href="/messages/journal/0/9"><code>journal:0:9</code></a>' in text
    assert '<tr id="dead:0:7">' in text
    assert page.client.get("/dead-letters/audit?letter=x", headers=LOGIN).status_code == 400
