"""The status page in Chromium: by keyboard, on a phone, in the dark, with a real Kafka, and without one."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from engine.dead_letters.audit import Action, last
from engine.dead_letters.store import DeadLetterStore
from engine.embedded import EmbeddedKafka
from engine.message import Message
from engine.page import corrections, letters
from engine.page.day import MINUTES
from engine.page.view import FAILED_OF, IN, LATENCY, ROUTED_BY, WAITING
from engine.telemetry.metrics import FAILED, JOURNALED
from engine.telemetry.status import State, Status
from routes.config.snapshot import Snapshot
from routes.properties import JmsType, Property
from tests.conftest import TopicFactory
from tests.integration.browser import PHONE, TABLET, Browser
from tests.integration.buried import CONFIGURATION, Bridge, message
from tests.integration.page_server import CONTRASTS, Served

PAGES = (
    *(
        "/",
        "/charts",
        "/routes",
        "/try",
        "/send",
        "/messages",
        "/find",
        "/looks",
        "/actions",
        "/dead-letters",
        "/dead-letters/audit",
    ),
    *("/settings", "/settings?all=1"),
)
LONG = """\
routes.settlement-instructions-frankfurt.in.include=msg.address==settlement.instructions.frankfurt AND amount > 1000
routes.settlement-instructions-frankfurt.in.exclude=msg.header.JMSType LIKE 'urn:company:payments:settlement:test:%'
routes.settlement-instructions-frankfurt.out.topic=company.payments.settlement.instructions.frankfurt.high-value
"""
"""A route with names as long as companies have them."""
SIZES = ((1400, 900), (800, 900), (390, 800))
HOSTILE = "<img src=x onerror=document.title='run'>"


def pictures(browser: Browser, name: str) -> None:
    """Pictures of a page on three sizes of screen, on each of which it fits and can be read."""
    for size in SIZES:
        browser.looks(size)
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), size
        assert browser.run(CONTRASTS) == [], size
        browser.shoot(f"{name}-{size[0]}")
    browser.looks()


@pytest.fixture
def bridge(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path) -> Bridge:
    file = tmp_path / "jms-bridge.properties"
    names = {"journal": topic("journal"), "dead": topic("dead")}
    file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, **names) + LONG)
    return Bridge(Snapshot.take(file).load(), kafka)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has pages wait for a Kafka that answers late, as on a machine with other work."""
    for module in (letters, corrections):
        for limit in ("_ANSWER_SECONDS", "_ASK_SECONDS"):
            monkeypatch.setattr(module, limit, 4 * getattr(module, limit))


@pytest.fixture
def served(bridge: Bridge, patient: None) -> Iterator[Served]:
    with ExitStack() as stack:
        yield Served(stack, bridge.config.path)


@pytest.fixture
def down(tmp_path: Path) -> Iterator[Served]:
    """Its Kafka is not there."""
    file = tmp_path / "jms-bridge.properties"
    file.write_text(CONFIGURATION.format(kafka="127.0.0.1:1", journal="journal", dead="dead"))
    with ExitStack() as stack:
        yield Served(stack, file)


def test_dead_letters_are_chosen_confirmed_and_replayed_by_keyboard_alone(
    browser: Browser, served: Served, bridge: Bridge
) -> None:
    bridge.bury(message(1), message(2), message(3))
    browser.looks()
    browser.wait(lambda: (census := served.census()) is not None and census.depth == 3)
    browser.open(f"{served.url}/dead-letters")
    browser.press(Keys.TAB)
    assert browser.run("return document.activeElement.textContent") == "Skip to content"
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.id") == "main"
    browser.tab_to("e.value === '0:1'")
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    browser.press(Keys.SPACE)
    browser.driver.find_element(By.ID, "main").click()
    browser.tab_to("e.value === 'replay'")
    browser.press(Keys.ENTER)
    browser.wait(lambda: "Replay 1 dead letter?" in browser.text())
    assert bridge.journal() == []
    browser.shoot("confirm")
    browser.tab_to("e.textContent === 'Replay 1'")
    browser.press(Keys.ENTER)
    browser.wait(lambda: "Done" in browser.text())
    assert [record.value for record in bridge.journal()] == [b"body 2"]
    entry = last(DeadLetterStore.of(bridge.config), 9)[0]
    assert (entry.position.offset, entry.action) == (1, Action.REPLAYED)
    assert (entry.actor.user, entry.actor.host, entry.actor.command) == ("anna", "127.0.0.1", "status page: replay")
    browser.wait(lambda: (census := served.census()) is not None and census.depth == 2)
    browser.open(f"{served.url}/dead-letters")
    states = browser.driver.find_elements(By.CSS_SELECTOR, "td[data-label=State]")
    assert sorted(state.text for state in states) == ["!open", "!open", "✓replayed"]
    browser.open(f"{served.url}/dead-letters/audit")
    assert "status page: replay" in browser.text()


def test_all_on_a_full_page_are_discarded_and_nothing_is_replayed(
    browser: Browser, served: Served, bridge: Bridge
) -> None:
    bridge.bury(*map(message, range(50)))
    browser.looks()
    browser.open(f"{served.url}/dead-letters?reason=key-not-found&route=orders")
    browser.driver.find_element(By.ID, "all").click()
    browser.driver.find_element(By.CSS_SELECTOR, "button[value=discard]").click()
    browser.wait(lambda: "Discard 50 dead letters?" in browser.text())
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Done" in browser.text())
    assert bridge.journal() == []
    assert {(entry.position.offset, entry.action) for entry in last(DeadLetterStore.of(bridge.config), 99)} == {
        (offset, Action.DISCARDED) for offset in range(50)
    }
    browser.open(f"{served.url}/dead-letters/letter/0/0")
    assert "discarded by anna on 127.0.0.1" in browser.text()


def test_all_that_match_are_replayed_in_the_background_and_newer_ones_are_not(
    browser: Browser, served: Served, bridge: Bridge
) -> None:
    bridge.bury(*(message(n, JMSType="odd" if n % 2 else "even") for n in range(600)))
    browser.looks()
    browser.open(f"{served.url}/dead-letters?where=JMSType%3D%27odd%27")
    browser.driver.find_element(By.CSS_SELECTOR, "button[form=all-that-match][value=replay]").click()
    browser.wait(lambda: "Replay 300 dead letters?" in browser.text())
    pictures(browser, "all-counted")
    bridge.bury(message(601, JMSType="odd"))
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "300 of 300 settled" in browser.text())
    browser.driver.refresh()
    assert "300 of 300 settled" in browser.text()
    pictures(browser, "all-done")
    assert sorted(int((record.value or b"").split()[1]) for record in bridge.journal()) == list(range(1, 600, 2))
    (command,) = {entry.actor.command for entry in last(DeadLetterStore.of(bridge.config), 999)}
    assert command.startswith("status page: replay --where ")
    with ExitStack() as stack:
        restarted = Served(stack, bridge.config.path)
        browser.open(f"{restarted.url}/dead-letters/all")
        assert "all others are open" in browser.text()
        browser.wait(lambda: (census := restarted.census()) is not None and census.depth == 301)


def test_a_letter_is_corrected_and_replayed_and_the_audit_has_the_correction(
    browser: Browser, served: Served, bridge: Bridge
) -> None:
    bridge.bury(replace(message(1, JMSType="old"), value=b'{\r\n  "amount": "x"\r\n}'))
    browser.looks()
    browser.open(f"{served.url}/dead-letters/letter/0/0")
    browser.driver.find_element(By.CSS_SELECTOR, "button[name=edit]").click()
    browser.wait(lambda: "Set JMS fields and properties" in browser.text())
    pictures(browser, "correct")
    browser.driver.find_element(By.ID, "set").send_keys("JMSCorrelationID=42\nregion=emea")
    browser.driver.find_element(By.ID, "unset").send_keys("JMSType")
    browser.run("const e = document.getElementById('body'); e.value = e.value.replace('\"x\"', '5')")
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Replay the corrected message?" in browser.text())
    assert bridge.journal() == []
    pictures(browser, "correct-confirm")
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Replayed" in browser.text())
    pictures(browser, "correct-done")
    (record,) = bridge.journal()
    found = Message.from_record(record)
    assert record.value == b'{\r\n  "amount": 5\r\n}'
    assert (found.headers["JMSCorrelationID"], found.properties["region"].text) == ("42", "emea")
    assert "JMSType" not in found.headers
    (entry,) = last(DeadLetterStore.of(bridge.config), 9)
    assert entry.actor.command == (
        "status page: replay --set JMSCorrelationID=42 --set region=emea --unset JMSType --body-file -"
    )
    assert bridge.command("dlt", "show", "0:0") == 0
    assert browser.driver.find_element(By.LINK_TEXT, "Timeline").get_attribute("href").endswith("/0/0/timeline")


def test_filters_find_the_newest_of_many_in_several_partitions(
    browser: Browser, kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path, patient: None
) -> None:
    file = tmp_path / "jms-bridge.properties"
    file.write_text(
        CONFIGURATION.format(kafka=kafka.bootstrap, journal=topic("journal"), dead=topic("dead", partitions=2))
    )
    bridge = Bridge(Snapshot.take(file).load(), kafka)
    for partition in (0, 1):
        bridge.bury(*(message(n, JMSType="odd" if n == 3 else "even") for n in range(1500)), partition=partition)
    browser.looks()
    with ExitStack() as stack:
        url = Served(stack, file).url
        browser.open(f"{url}/dead-letters")
        assert len(browser.driver.find_elements(By.NAME, "position")) == 50
        assert "Older" in browser.text()

        def all_are_read() -> bool:
            # On a machine with other work the page may give an answer before it has read all.
            browser.open(f"{url}/dead-letters?where=JMSType%3D%27odd%27")
            return "All 3,000 dead letters in the topic were read" in browser.text()

        browser.wait(all_are_read)
        assert len(browser.driver.find_elements(By.NAME, "position")) == 2
        browser.open(f"{url}/dead-letters?since=1h")
        assert "No dead letter matches." in browser.text()


def test_what_a_message_holds_is_shown_and_not_run(browser: Browser, served: Served, bridge: Bridge) -> None:
    record = message(1, JMSCorrelationID=HOSTILE, JMSType=f"'\"{HOSTILE}\x07")
    bridge.bury(replace(record, key=HOSTILE.encode(), value=HOSTILE.encode()))
    browser.looks()
    for path in ("/dead-letters", "/dead-letters/letter/0/0"):
        browser.open(served.url + path)
        assert HOSTILE in browser.text()
        assert browser.driver.title != "run"
    assert browser.driver.find_elements(By.CSS_SELECTOR, "main img") == []


def test_the_overview_is_live_and_keeps_the_focus(browser: Browser, served: Served) -> None:
    served.flow()
    browser.looks()
    browser.open(f"{served.url}/")
    assert "120/s" in browser.text()
    browser.run("window.same = true; document.querySelector('.flow a[href^=\"/routes\"]').focus()")
    served.board.put(Status("source:s", State.DEGRADED, "the broker has gone"))
    served.figures.set(JOURNALED, 0, "s")
    browser.wait(lambda: "source:s is not ready" in browser.text())
    assert browser.run("return window.same")
    assert browser.run("return document.activeElement.getAttribute('href')").startswith("/routes")
    assert browser.complaints() == []


def test_a_bridge_that_is_gone_is_seen_to_be_gone(browser: Browser, bridge: Bridge) -> None:
    browser.looks()
    with ExitStack() as stack:
        served = Served(stack, bridge.config.path)
        browser.open(f"{served.url}/")
    browser.wait(lambda: browser.run("return document.body.classList.contains('lost')"))
    browser.complaints()


def test_every_page_fits_and_can_be_read(browser: Browser, served: Served, bridge: Bridge) -> None:
    bridge.bury(*(message(n, JMSType="x" * 200) for n in range(3)))
    served.figures.set(FAILED, 7, "settlement-instructions-frankfurt", "value-not-convertible", "dead-letter")
    served.flow()
    served.board.put(Status("source:s", State.DEGRADED, "stomp://127.0.0.1:1 refuses; " + "y" * 120))
    browser.wait(lambda: (census := served.census()) is not None and census.depth == 3)
    for path in (*PAGES, "/dead-letters/letter/0/1", "/dead-letters?since=x"):
        name = path.strip("/").replace("/", "-").replace("?", "-") or "overview"
        for look in browser.each_look(served.url + path):
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (path, look)
            assert browser.run(CONTRASTS) == [], (path, look)
            browser.shoot(f"{name}-{look}")
    browser.complaints()


def test_a_day_of_charts_can_be_read(browser: Browser, down: Served) -> None:
    now = time.time()
    for minute in range(MINUTES):
        wave = 1 + math.sin(minute / 200)
        rates = {f"{ROUTED_BY}route-{n}": wave * 900 / n for n in range(1, 8)}
        failed = {f"{FAILED_OF}settlement-instructions-frankfurt-high-value": 0.3 if minute % 300 < 20 else 0.0}
        figures = {IN: wave * 2000, LATENCY: 0.004 * wave, WAITING: 20_000.0 if 600 < minute < 700 else 3.0}
        if not 900 < minute < 960:
            down.samples.day.add(now - 60 * (MINUTES - minute), rates | failed | figures)
    heights = "return [...document.querySelectorAll('.day text')].map((e) => e.getBoundingClientRect().height)"
    for look in browser.each_look(f"{down.url}/charts", [(1400, 900), TABLET, (390, 800)]):
        assert len(browser.driver.find_elements(By.CSS_SELECTOR, "svg.day")) == 5, look
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), look
        assert browser.run(CONTRASTS) == [], look
        assert min(browser.run(heights)) > 11, look
        browser.shoot(f"charts-{look}")
    browser.complaints()


def test_a_message_is_tried_on_a_phone(browser: Browser, down: Served) -> None:
    browser.looks(PHONE)
    browser.open(f"{down.url}/try")
    for field, text in (
        ("address", "queue:orders"),
        ("properties", "CorrelationId=42\namount:int=5"),
        ("body", "hello"),
    ):
        browser.driver.find_element(By.ID, field).send_keys(text)
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "published to kafka:orders by route 'orders', key 42" in browser.text())
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    browser.shoot("tried-phone")


def test_a_tried_message_is_sent_once_and_a_copy_of_it(browser: Browser, served: Served, bridge: Bridge) -> None:
    browser.looks()
    browser.open(f"{served.url}/try")
    for field, text in (
        ("address", "queue:orders"),
        ("properties", "CorrelationId=42\namount:int=5"),
        ("body", "one\ntwo"),
    ):
        browser.driver.find_element(By.ID, field).send_keys(text)
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "published to kafka:orders by route 'orders', key 42" in browser.text())
    pictures(browser, "tried")
    browser.driver.find_element(By.CSS_SELECTOR, "button[formaction='/send']").click()
    browser.wait(lambda: "Send this message?" in browser.text())
    assert "published to kafka:orders by route 'orders', key 42" in browser.text()
    assert bridge.journal() == []
    pictures(browser, "send-confirm")
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Sent as" in browser.text())
    browser.driver.refresh()
    pictures(browser, "sent")
    (record,) = bridge.journal()
    found = Message.from_record(record)
    assert (record.key, record.value) == (b"42", b"one\ntwo")
    assert (found.headers["JMSDestination"], found.properties["amount"]) == (
        "queue:orders",
        Property("5", JmsType.INT),
    )
    (entry,) = last(DeadLetterStore.of(bridge.config), 9)
    assert (entry.action, entry.actor.user, entry.actor.command) == (Action.SENT, "anna", "status page: send")
    assert entry.copy == str(entry.position) == f"{bridge.config.journal.topic}:0:0"
    browser.driver.find_element(By.LINK_TEXT, "timeline").click()
    browser.wait(lambda: "by anna on 127.0.0.1, with: status page: send" in browser.text())
    browser.open(f"{served.url}/messages/{bridge.config.journal.topic}/0/0")
    browser.driver.find_element(By.CSS_SELECTOR, "button[name=position]").click()
    browser.wait(lambda: "Show the record" in browser.text())
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Send this message?" in browser.text())
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Sent as" in browser.text())
    first, second = map(Message.from_record, bridge.journal())
    assert (second.body, second.properties) == (first.body, first.properties)
    assert second.headers["JMSCorrelationID"] == "42"
    assert second.headers["JMSMessageID"] != first.headers["JMSMessageID"]


def test_with_the_broker_down_every_page_is_there_within_three_seconds(browser: Browser, down: Served) -> None:
    down.board.put(Status("router", State.DEGRADED, "Kafka at 127.0.0.1:1 does not answer"))
    browser.looks()
    for path in PAGES:
        began = time.monotonic()
        browser.driver.get(down.url + path)
        assert time.monotonic() - began < 3.5, path
        assert browser.driver.find_elements(By.TAG_NAME, "h1"), path
    browser.driver.get(f"{down.url}/dead-letters")
    assert "Kafka at 127.0.0.1:1 d" in browser.text()
    browser.shoot("down-dead-letters")
    browser.driver.get(f"{down.url}/")
    assert "Kafka at 127.0.0.1:1 does not answer" in browser.text()
    browser.complaints()


def test_with_nothing_configured_the_pages_say_how_to_begin(browser: Browser, down: Served) -> None:
    routing = replace(down.config.routing, dead_letter_topic=None)
    down.config = replace(down.config, routes=(), sources=(), routing=routing)
    browser.looks()
    for path, told in (
        ("/", "Nothing is configured yet."),
        ("/routes", "There are no routes."),
    ):
        browser.driver.get(down.url + path)
        assert told in browser.text()
        browser.shoot(f"nothing{path.replace('/', '-')}")
    browser.complaints()
