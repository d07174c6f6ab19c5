"""The whole login in Chromium: to the server, back with a session, a change on a page, and the logout."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from engine.embedded import free_ports
from engine.looks.action import merged
from engine.page import actions
from engine.page.render import login_note
from engine.telemetry.http import HttpServer
from engine.telemetry.http_section import HttpConfig, ViewerConfig
from engine.telemetry.login_section import OidcConfig
from tests.integration.browser import DESK, PHONE, Browser
from tests.integration.page_server import CONTRASTS
from tests.token_issuer import CLIENT, SECRET, USER, TokenIssuer
from tests.unit.page.bridge import Page
from tests.unit.page.test_parts import Recorder


@pytest.fixture
def control() -> Recorder:
    return Recorder()


@pytest.fixture
def url(issuer: TokenIssuer, control: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a status page whose users log in at the issuer."""
    (port,) = free_ports(1)
    config = HttpConfig(
        "127.0.0.1",
        port,
        operator_groups=("ops",),
        viewer=ViewerConfig(groups=("support",)),
        public_url=f"http://127.0.0.1:{port}",
        oidc=OidcConfig(issuer.url, CLIENT, SECRET),
    )
    page = Page(tmp_path, control=control)
    monkeypatch.setattr(actions, "last_actions", lambda *_: merged(page.actions.actions))
    with HttpServer(config, page.served, login_page=login_note) as server:
        yield server.url


def pictures(browser: Browser, name: str) -> None:
    for size, kind in ((DESK, "desk"), (PHONE, "phone")):
        browser.looks(size)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (name, kind)
        assert browser.run(CONTRASTS) == [], (name, kind)
        browser.shoot(f"{name}-{kind}")
    browser.looks(DESK)


def log_in(browser: Browser, url: str) -> None:
    browser.open(url)
    assert "Login server" in browser.text()
    browser.driver.find_element(By.ID, "in").click()


def test_a_user_logs_in_changes_something_and_logs_out(
    browser: Browser, url: str, issuer: TokenIssuer, control: Recorder
) -> None:
    log_in(browser, f"{url}/routes?filter=orders")
    browser.wait(lambda: "Logged in as olga (operator)" in browser.text())
    assert browser.driver.current_url == f"{url}/routes?filter=orders"
    assert browser.complaints() == []
    pictures(browser, "logged-in")
    browser.driver.find_element(By.CSS_SELECTOR, 'button[name="action"][value="pause"]').click()
    browser.wait(lambda: bool(control.asked))
    assert control.asked[0][:2] == ("pause", "route:orders")
    assert control.asked[0][2].startswith("olga (")
    browser.open(f"{url}/actions")
    assert "route:orders" in browser.text()
    pictures(browser, "actions")
    # Neither a script of a page nor another address of the machine gets the secret of the session.
    assert browser.run("return document.cookie") == ""
    cookies = {each["name"]: each for each in browser.driver.get_cookies()}
    (session,) = cookies.values()
    assert (session["httpOnly"], session["sameSite"]) == (True, "Lax")
    browser.driver.find_element(By.CSS_SELECTOR, 'button[form="logout"]').click()
    # The logout of the server leads back to the page, and so to the login.
    browser.wait(lambda: "Login server" in browser.text())
    assert "/logout" in issuer.asked
    assert browser.complaints() == []
    issuer.is_away = True
    browser.open(f"{url}/")
    assert "Login server" in browser.text()


def test_a_server_that_is_away_is_told(browser: Browser, url: str, issuer: TokenIssuer) -> None:
    browser.driver.delete_all_cookies()
    issuer.is_away = True
    browser.driver.get(url)
    browser.wait(lambda: "nobody can log in at present" in browser.text())
    pictures(browser, "away")
    assert [line for line in browser.complaints() if "503" not in line] == []


def test_a_user_without_a_group_is_told_which_is_missing(browser: Browser, url: str, issuer: TokenIssuer) -> None:
    browser.driver.delete_all_cookies()
    issuer.user = {**USER, "groups": ["guests", "a-group-with-a-very-long-name-as-directories-of-companies-have-them"]}
    log_in(browser, url)
    browser.wait(lambda: "olga needs one of the groups support" in browser.text())
    pictures(browser, "refused")
    assert [line for line in browser.complaints() if "403" not in line] == []
    issuer.user = dict(USER)
    browser.driver.find_element(By.LINK_TEXT, "Log in as another user").click()
    browser.wait(lambda: "Login server" in browser.text())
    assert "prompt=login" in browser.driver.current_url
    browser.driver.find_element(By.ID, "in").click()
    browser.wait(lambda: "Logged in as olga (operator)" in browser.text())
