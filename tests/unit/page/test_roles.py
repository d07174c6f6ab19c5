"""Roles: every path by its method, the forms that viewers do not get, and the sentence that refuses them."""

from __future__ import annotations

import re
from base64 import b64encode
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from starlette.routing import Route
from starlette.testclient import TestClient

from engine.page import looks
from engine.page.app import pages
from engine.telemetry.control import control
from engine.telemetry.http import application
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.roles import NEEDED, UserRole, needed_role
from engine.telemetry.status import DeadLetterCounts, StatusBoard
from tests.unit.page.bridge import LOGIN, VIEWER, Page
from tests.unit.page.kafka_records import KafkaRecords, located
from tests.unit.page.test_parts import SAME, Recorder

ASKING = {"GET", "HEAD"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    KafkaRecords(monkeypatch).put("orders", located("orders", 1))
    monkeypatch.setattr(looks, "last_looks", lambda *_: [])
    return Page(tmp_path, login=True, control=Recorder())


def routes(page: Page) -> list[Route]:
    """Every route that a bridge serves behind its login."""
    found = application(StatusBoard([]), CollectorRegistry(), pages=[*control(Recorder()), *pages(page.view)]).routes
    assert all(isinstance(each, Route) for each in found)
    return [each for each in found if isinstance(each, Route)]


def test_every_request_that_is_not_a_question_has_a_role(page: Page) -> None:
    """A path that is added has to be added to `NEEDED`, too, by somebody who has thought about it."""
    assert {each.path for each in routes(page) if (each.methods or set()) - ASKING} == NEEDED.keys()


def test_a_viewer_is_refused_every_request_that_changes_something(page: Page) -> None:
    refused = []
    for each in routes(page):
        for method in (each.methods or set()) - ASKING:
            path = re.sub(r"{[^}]*}", "0", each.path)
            code = page.client.request(method, path, headers=VIEWER | SAME).status_code
            if code == 403 and needed_role(method, path) > UserRole.VIEWER:
                refused.append(path)
    needed = [re.sub(r"{[^}]*}", "0", path) for path, role in NEEDED.items() if role > UserRole.VIEWER]
    assert sorted(refused) == sorted(needed)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "STEAL"])
@pytest.mark.parametrize("path", ["/", "/nothing", "/parts/", "//parts", "/try/", "/metrics", "/api/find"])
def test_a_path_without_a_role_is_closed_to_viewers(page: Page, method: str, path: str) -> None:
    assert needed_role(method, path) is UserRole.OPERATOR
    answer = page.client.request(method, path, headers=VIEWER)
    assert answer.status_code == 403
    assert "this needs the role operator, and eve is a viewer; log in as another user" in answer.text


def test_programs_are_refused_in_json(page: Page) -> None:
    answer = page.client.post("/pause?part=router", headers=VIEWER | {"X-Jms-Bridge": "command"})
    assert answer.json()["error"].startswith("this needs the role operator, and eve is a viewer")
    # What only looks like the login of a viewer is not one.
    for wrong in (b"eve:pass", b"anna:look", b"eve:", b":look"):
        shown = {"Authorization": f"Basic {b64encode(wrong).decode()}"}
        assert page.client.get("/", headers=shown).status_code == 401


def test_a_viewer_sees_every_page_and_no_form_that_changes_something(page: Page) -> None:
    page.census = DeadLetterCounts("dead", True, "", {"key-not-found": 2}, 1.0, 0)
    for path in ("/", "/charts", "/routes", "/try", "/messages", "/messages/orders", "/find", "/settings", "/looks"):
        answer = page.client.get(path, headers=VIEWER)
        assert answer.status_code == 200, path
        posts = re.findall(r'<form[^>]*method="post"[^>]*action="([^"]*)"', answer.text)
        assert set(posts) <= {"/try"}, path
        assert "Logged in as <strong>eve</strong> (viewer)" in answer.text
    assert 'action="/parts"' in page.client.get("/", headers=LOGIN).text
    assert "<strong>anna</strong> (operator)" in page.client.get("/", headers=LOGIN).text


def test_a_page_that_is_a_form_for_operators_alone_is_closed(page: Page) -> None:
    for path in ("/send", "/dead-letters/all"):
        assert [page.client.get(path, headers=login).status_code for login in (LOGIN, VIEWER)] == [200, 403]
        assert page.client.head(path, headers=VIEWER).status_code == 403
    for path in ("/", "/try", "/messages", "/messages/orders/0/1"):
        texts = [page.client.get(path, headers=login).text for login in (LOGIN, VIEWER)]
        assert "/send" not in texts[1]
        assert ("/send" in texts[0]) is (path != "/")


def test_a_viewer_tries_a_message_of_his_own(page: Page) -> None:
    fields = {"seal": page.seal("/try", VIEWER), "address": "queue:orders", "properties": "region=emea"}
    answer = page.client.post("/try", data=fields, headers=VIEWER | SAME)
    assert (answer.status_code, "orders takes it" in answer.text) == (200, True)


def test_tokens_have_roles_and_without_a_login_everybody_operates(page: Page) -> None:
    access = HttpConfig("127.0.0.1", 0, token="strong", viewer=ViewerConfig(token="weak"))
    client = TestClient(HttpLogin(page.served, access, frozenset()), "http://127.0.0.1")
    codes = [
        client.post("/parts", headers={"Authorization": f"Bearer {token}"} | SAME).status_code
        for token in ("strong", "weak", "wrong")
    ]
    assert codes == [403, 403, 401]
    assert "does not come from a page" in client.post("/parts", headers={"Authorization": "Bearer strong"}).text
    assert "http.viewer.token is a viewer" in client.post("/parts", headers={"Authorization": "Bearer weak"}).text
    everybody = TestClient(HttpLogin(page.served, HttpConfig("127.0.0.1", 0), frozenset()), "http://127.0.0.1")
    assert "does not come from a page" in everybody.post("/parts").text
    assert "Logged in" not in everybody.get("/").text


def test_pages_that_nothing_has_checked_the_login_for_are_those_of_a_viewer(page: Page) -> None:
    assert 'action="/parts"' not in TestClient(page.served, "http://127.0.0.1").get("/").text
