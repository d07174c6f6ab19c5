"""Actions of users: each is noted before it is done, and again with its result."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from engine.errors import UnreachableError
from engine.looks.action import ActionQuestion, AuditedAction, merged
from engine.page import actions, sending
from engine.page.acting import acting_on_bridge
from engine.telemetry.control import control
from engine.telemetry.http import application
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_section import HttpConfig
from tests.unit.page.bridge import CONFIGURATION, LOGIN, VIEWER, Page
from tests.unit.page.test_parts import SAME, Recorder

ENTRIES = st.builds(
    AuditedAction, st.text(min_size=1), *(st.text() for _ in range(3)), *(st.text(min_size=1) for _ in range(2)),
    st.text(), st.text(),
)  # fmt: skip


@given(ENTRIES)
def test_an_entry_is_read_as_it_was_written(entry: AuditedAction) -> None:
    assert AuditedAction.parse(entry.to_json().encode("utf-8", "surrogatepass")) == entry


@given(st.none() | st.binary() | st.sampled_from([b"{}", b"[]", b'{"id":1,"time":"t","action":"a"}', b"[" * 9999]))
def test_other_records_are_not_entries(value: bytes | None) -> None:
    assert AuditedAction.parse(value) is None


@given(st.lists(ENTRIES, max_size=6))
def test_actions_are_shown_once_with_the_last_result(entries: list[AuditedAction]) -> None:
    found = merged(entries)
    assert [each.id for each in found] == list(dict.fromkeys(each.id for each in entries))
    assert {each.id: each.result for each in found} == {each.id: each.result for each in entries}


def entry(**changed: str) -> AuditedAction:
    given = {"id": "1", "time": "t", "user": "Anna", "role": "operator", "host": "h", "action": "pause"}
    return AuditedAction(**{**given, "target": "source:orders", **changed})


@pytest.mark.parametrize(
    ("question", "takes"),
    [
        ({}, True),
        ({"user": "ann"}, True),
        ({"user": "eve"}, False),
        ({"action": "paus"}, False),
        ({"target": "ord"}, True),
    ],
)
def test_a_question_takes_parts_of_names(question: dict[str, str], takes: bool) -> None:
    assert ActionQuestion(**question).takes(entry()) is takes


def noted(page: Page) -> list[tuple[str, str, str, str]]:
    return [(each.user, each.action, each.target, each.result) for each in page.actions.actions]


def pause(page: Page, action: str = "pause", part: str = "router") -> Any:
    fields = {"seal": page.seal("/", LOGIN), "part": part, "action": action}
    return page.client.post("/parts", data=fields, headers=LOGIN | SAME, follow_redirects=False)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def page(tmp_path: Path, recorder: Recorder) -> Page:
    return Page(tmp_path, login=True, control=recorder)


def test_an_action_of_a_page_is_noted_before_it_is_done(page: Page, recorder: Recorder) -> None:
    def pause_noted(name: str, by: str) -> list[str]:
        assert noted(page) == [("anna", "pause", "router", "")]
        return [name]

    recorder.pause = pause_noted  # type: ignore[method-assign]
    assert pause(page).status_code == 303
    assert noted(page)[1:] == [("anna", "pause", "router", "done")]
    first, second = page.actions.actions
    assert first.id == second.id
    assert (first.role, first.host) == ("operator", "testclient")


def test_a_refused_action_is_noted_with_the_reason(page: Page) -> None:
    assert pause(page, part="nothing").status_code == 400
    assert noted(page)[-1] == ("anna", "pause", "nothing", "refused: 'nothing' is not a part")


def test_the_bridge_obeys_while_kafka_is_away_and_its_log_has_the_action(
    page: Page, recorder: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    page.actions.error = UnreachableError("no Kafka")
    assert pause(page).status_code == 303
    assert recorder.asked[0][:2] == ("pause", "router")
    told = capsys.readouterr().out
    assert "an action cannot be noted in the audit" in told
    assert "anna" in told


def test_no_message_is_sent_that_cannot_be_noted(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending.JournalSender, "send", lambda *_: pytest.fail("sent"))
    page.actions.error = UnreachableError("no Kafka")
    fields = {"seal": page.seal("/send", LOGIN), "address": "queue:orders", "kind": "text", "body": "x"}
    answer = page.client.post("/send", data={**fields, "confirmed": "yes", "token": "ID:1"}, headers=LOGIN | SAME)
    assert (answer.status_code, "an action has to be noted, and no Kafka" in answer.text) == (503, True)


def test_requests_of_programs_are_noted_with_the_user_they_name(page: Page, recorder: Recorder) -> None:
    recorder.request = lambda: 1  # type: ignore[method-assign]
    routes = control(recorder, partial(acting_on_bridge, page.view))
    app = HttpLogin(
        application(page.board, page.registry, pages=routes), HttpConfig("127.0.0.1", 0, token="t"), frozenset()
    )
    client = TestClient(app, headers={"Authorization": "Bearer t", "X-Jms-Bridge": "1"})
    assert client.post("/api/reload").status_code == 202
    assert client.post("/api/pause?part=router&by=olga").status_code == 202
    assert client.post("/api/pause?part=x").status_code == 400
    assert client.get("/api/pause?part=x").status_code == 405
    assert noted(page)[1::2] == [
        ("http.token", "reload", "", "done"),
        ("http.token (olga)", "pause", "router", "done"),
        ("http.token", "pause", "x", "refused: 'x' is not a part"),
    ]


def test_viewers_change_nothing_and_are_not_noted(page: Page) -> None:
    assert page.client.post("/parts", headers=VIEWER | SAME).status_code == 403
    assert noted(page) == []


def test_actions_are_found_on_their_page_and_by_programs(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ActionQuestion, int]] = []

    def last(topic: Any, question: ActionQuestion, count: int, _: float) -> list[AuditedAction]:
        asked.append((topic.name, question, count))
        return [entry(result="done"), entry(id="2", user="<b>\x1b", target="", result="")]

    monkeypatch.setattr(actions, "last_actions", last)
    shown = page.client.get("/actions?user=ann&action=pause", headers=VIEWER).text
    assert shown.index("&lt;b&gt;\\x1b") < shown.index("Anna")
    assert 'value="ann"' in shown
    answer = page.client.get("/api/audit?target=orders&count=7", headers=VIEWER).json()
    assert [each["id"] for each in answer["actions"]] == ["2", "1"]
    assert asked == [
        ("jms-bridge.journal.actions", ActionQuestion("ann", "pause"), 200),
        ("jms-bridge.journal.actions", ActionQuestion(target="orders"), 7),
    ]
    assert page.client.get("/api/audit?users=x", headers=VIEWER).status_code == 400


def test_the_reason_of_a_refusal_is_hidden_from_masked_viewers(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [entry(result="refused: line 1: iban=DE1"), entry(id="2", result="done")]
    monkeypatch.setattr(actions, "last_actions", lambda *_: given)
    assert "iban=DE1" in page.client.get("/actions", headers=VIEWER).text
    text = CONFIGURATION + "http.token=t0ken\nhttp.viewer.token=l00ker\nhttp.viewer.mask=iban\n"
    masked = Page(tmp_path, text, login=True)
    for path in ("/actions", "/api/audit"):
        shown = masked.client.get(path, headers=VIEWER).text
        assert "refused" in shown
        assert "iban" not in shown
    assert "iban=DE1" in masked.client.get("/actions", headers=LOGIN).text
