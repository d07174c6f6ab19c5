"""The status page of a bridge that runs, in Chromium."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from selenium.webdriver.common.by import By

from tests.integration.browser import DESK

if TYPE_CHECKING:
    from tests.integration.bridge_process import Bridge
    from tests.integration.browser import Browser


def test_a_running_bridge_shows_its_messages(browser: Browser, bridge: Bridge) -> None:
    browser.looks(DESK)
    bridge.send(range(20), "seen")
    browser.driver.get(f"{bridge.url}/")
    browser.wait(lambda: "All parts are ready" in browser.text())
    browser.driver.get(f"{bridge.url}/routes")
    row = "[...document.querySelectorAll('tr')].find((row) => /\\bseen\\b/.test(row.querySelector('th').innerText))"
    routed = f"return {row}?.querySelector('td[data-label=Routed]')?.innerText"
    browser.wait(lambda: browser.run(routed) == "20")


def test_a_message_is_found_and_followed_on_the_page(browser: Browser, bridge: Bridge) -> None:
    bridge.send([7001], "seen")
    where = "msg.address = 'seen' AND msg.text = 'order 7001'"
    browser.looks(DESK)

    def is_published() -> bool:
        browser.driver.get(f"{bridge.url}/find?{urlencode({'where': where})}")
        browser.wait(lambda: "Everything was read." in browser.text(), 60)
        return "2 found" in browser.text()

    browser.wait(is_published, 60)
    browser.driver.find_element(By.PARTIAL_LINK_TEXT, "seen:").click()
    browser.wait(lambda: "by route 'seen'" in browser.text(), 60)
    for event in ("journaled", "routed", "published"):
        assert event in browser.text()
    shown = json.loads(bridge.get("/api/status")[1])
    assert {part["state"] for part in shown["parts"]} == {"ready"}
    topics = {each["topic"]: each for each in json.loads(bridge.get("/api/topics")[1])["topics"]}
    assert topics["seen"]["kind"] == "destination"
    assert browser.complaints() == []
