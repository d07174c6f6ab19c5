"""The status page of a bridge that runs, in Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
