"""Forms of pages whose users have sessions: a form of another session, or of another site, changes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from engine.page.render import login_note
from engine.telemetry.http_login import HttpLogin
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.login_section import OidcConfig
from tests.token_issuer import CLIENT, SECRET, USER, TokenIssuer
from tests.unit.page.bridge import Page
from tests.unit.page.test_parts import Recorder

URL = "https://bridge.example"
SAME = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def page(tmp_path: Path, recorder: Recorder) -> Page:
    return Page(tmp_path, control=recorder)


@pytest.fixture
def app(page: Page, issuer: TokenIssuer) -> HttpLogin:
    config = HttpConfig(
        "127.0.0.1",
        0,
        operator_groups=("ops",),
        viewer=ViewerConfig(groups=("staff",)),
        public_url=URL,
        oidc=OidcConfig(issuer.url, CLIENT, SECRET),
    )
    return HttpLogin(page.served, config, frozenset(), login_note)


def browser(app: HttpLogin, issuer: TokenIssuer) -> TestClient:
    """A browser whose user has logged in."""
    client = TestClient(app, URL, follow_redirects=False, headers={"Accept": "text/html"})
    assert client.get(issuer.approve(client.get("/login").headers["location"])).status_code == 303
    return client


def seal(client: TestClient) -> str:
    found = re.search(r'name="seal" value="([^"]+)"', client.get("/").text)
    assert found
    return found[1]


def test_only_a_form_of_the_same_session_and_site_changes_something(
    app: HttpLogin, issuer: TokenIssuer, recorder: Recorder, page: Page
) -> None:
    victim, attacker = browser(app, issuer), browser(app, issuer)
    fields = {"part": "router", "action": "pause"}
    for stolen, headers in (
        (seal(attacker), SAME),
        ("", SAME),
        (seal(victim), {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}),
        (seal(victim), {"Sec-Fetch-Site": "same-site"}),
        (seal(victim), {"Origin": "https://bridge.example.evil.example"}),
        (seal(victim), {"Origin": "null"}),
        (seal(victim), {}),
    ):
        answer = victim.post("/parts", data={**fields, "seal": stolen}, headers=headers)
        assert answer.status_code == 403, headers
    # A program's request needs a header that no other site can have a browser send.
    assert victim.post("/api/pause?part=router").status_code in (403, 404, 405)
    assert recorder.asked == []
    assert victim.post("/parts", data={**fields, "seal": seal(victim)}, headers=SAME).status_code == 303
    assert [each[:2] for each in recorder.asked] == [("pause", "router")]
    assert [(each.user, each.role) for each in page.actions.actions] == [("olga", "operator")] * 2


def test_a_page_shows_the_user_and_the_logout_and_viewers_are_masked(app: HttpLogin, issuer: TokenIssuer) -> None:
    text = browser(app, issuer).get("/").text
    assert "Logged in as <strong>olga</strong> (operator)" in text
    assert '<form method="post" action="/logout" id="logout">' in text
    issuer.user = {**USER, "groups": ["staff"]}
    text = browser(app, issuer).get("/").text
    assert "(viewer)" in text
    assert 'action="/parts"' not in text


def test_notes_say_nothing_of_the_bridge_and_run_nothing(app: HttpLogin, issuer: TokenIssuer) -> None:
    issuer.user = {**USER, "preferred_username": "<script>\x1b", "groups": []}
    client = TestClient(app, URL, follow_redirects=False, headers={"Accept": "text/html"})
    answer = client.get(issuer.approve(client.get("/login").headers["location"]))
    assert answer.status_code == 403
    assert "&lt;script&gt;\\x1b needs one of the groups" in answer.text
    assert "b1" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
