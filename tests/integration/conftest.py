"""What several folders of these tests share: a browser, and the doctor."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

import engine.connectors.amqp.session
import engine.connectors.nats.connection
import engine.connectors.stomp.session
from tests.commands import finished
from tests.integration.browser import Browser
from tests.integration.doctor import Doctor, Told

PROGRAMS = ("chromium", "chromedriver")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    paths = [shutil.which(name) for name in PROGRAMS]
    if None in paths:
        pytest.skip("there is no Chromium with its driver; `make setup` installs the Debian packages chromium and "
                    "chromium-driver where it may")  # fmt: skip
    folder = tmp_path_factory.mktemp("chromium")
    options = Options()
    options.binary_location = str(paths[0])
    # As root, which tests in containers are, Chromium has no sandbox.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={folder}/profile"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(paths[1])))
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    def call(file: Path, timeout: str = "20s") -> Told:
        code, out, _ = finished(capsys, "doctor", "-c", file, "--json", "--timeout", timeout)
        findings = map(json.loads, out.splitlines())
        return Told(code, {finding["name"]: finding for finding in findings})

    return call


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections to brokers that give up after two seconds without an answer."""
    for session in (engine.connectors.amqp.session, engine.connectors.stomp.session, engine.connectors.nats.connection):
        monkeypatch.setattr(session, "_CONNECT_SECONDS", 2)
