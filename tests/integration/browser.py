"""A real browser for the status page."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

from tests.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["DESK", "PHONE", "TABLET", "Browser"]

DESK, TABLET, PHONE = (1280, 900), (800, 900), (360, 740)


class Browser:
    """A Chromium without a window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        folder = os.environ.get("PICTURES")
        self._pictures = None if folder is None else Path(folder)

    def looks(self, size: tuple[int, int] = DESK, *, dark: bool = False) -> None:
        width, height = size
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def each_look(self, url: str, sizes: Iterable[tuple[int, int]] = (DESK, TABLET, PHONE)) -> Iterator[str]:
        """Loads a page at each size, in light and then in dark colours, and yields a name for the look."""
        for width, height in sizes:
            self.looks((width, height))
            self.driver.get(url)
            for colours in ("light", "dark"):
                self.looks((width, height), dark=colours == "dark")
                yield f"{colours}-{width}"

    def open(self, url: str) -> None:
        self.driver.get(url)
        assert self.complaints() == []

    def complaints(self) -> list[str]:
        """What the page's policy forbade, what could not be loaded, and faults of scripts."""
        return [str(line["message"]) for line in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def text(self) -> str:
        # In one step: an element found before may be gone when the page has changed.
        return str(self.run("return document.body?.innerText ?? ''"))

    def press(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, condition: str, *, most: int = 60) -> None:
        """By keyboard only; `condition` is asked of the element with the focus, as `e`."""
        for _ in range(most):
            self.press(Keys.TAB)
            if self.run(f"const e = document.activeElement; return Boolean({condition})"):
                return
        pytest.fail(f"the keyboard does not reach {condition}")

    def wait(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        begun = time.monotonic()
        while not condition():
            assert time.monotonic() - begun < patience(seconds), self.text()
            time.sleep(0.1)

    def shoot(self, name: str) -> None:
        """Takes a picture of the whole page for people, if the environment variable PICTURES names a folder."""
        if self._pictures is None:
            return
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return innerWidth")
        shape = {"width": width, "height": min(height, 4000), "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        self.driver.save_screenshot(str(self._pictures / f"{name}.png"))
