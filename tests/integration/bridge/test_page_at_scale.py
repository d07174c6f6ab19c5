"""The status page of a large bridge in Chromium: 30 sources, 200 routes, 10,000 dead letters, a long journal.

The journal has 50,000 records here; ten million were tried by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from engine.embedded import EmbeddedKafka
from engine.telemetry.metrics import FAILED, JOURNALED, ROUTED, UNMATCHED_BY_ADDRESS
from engine.telemetry.status import State, Status
from routes.config.snapshot import Snapshot
from tests.conftest import TopicFactory
from tests.integration.browser import Browser
from tests.integration.buried import CONFIGURATION, Bridge, message
from tests.integration.page_server import CONTRASTS, Served
from tests.topic_records import ordered_producer
from tests.waiting import patience

SIZES = ((1400, 900), (800, 900), (390, 800))
SOURCES, ROUTES, LETTERS, JOURNALED_RECORDS = 30, 200, 10_000, 50_000
CITIES = ("frankfurt", "london", "new-york", "tokyo")
LETTER = "/dead-letters/letter/0/9999"
PAGES = ("/", "/routes", "/charts", "/messages", "/try", "/dead-letters", LETTER, "/settings")
_SECONDS = 3.0
CLIPPED = """
return [...document.querySelectorAll("td, th, dt, dd, li, button, .button, .badge, .status")].filter((e) =>
  e.getClientRects().length && e.clientWidth && e.scrollWidth > e.clientWidth + 1
  && !e.closest("thead, .unseen, .scroll")
).map((e) => `${e.tagName} ${e.scrollWidth} > ${e.clientWidth}: ${e.textContent.trim().slice(0, 60)}`);
"""
"""What does not fit into its cell."""
LOADED_MS = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
"""Time from the request of the page until it was there, in milliseconds."""
NAMES = "return [...document.querySelectorAll('.routes tbody th strong')].map((e) => e.textContent)"


@dataclass
class LargeBridge:
    """A bridge with all that, and its status page."""

    served: Served
    journal: str


@pytest.fixture(scope="module")
def large(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeBridge]:
    file = tmp_path_factory.mktemp("large") / "jms-bridge.properties"
    journal = topic("journal")
    file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, journal=journal, dead=topic("dead")) + _more())
    bridge = Bridge(Snapshot.take(file).load(), kafka)
    bridge.bury(*(message(number) for number in range(LETTERS)))
    producer = ordered_producer(kafka.bootstrap, {"linger.ms": 20, "queue.buffering.max.messages": 200_000})
    for number in range(JOURNALED_RECORDS):
        record = message(number)
        producer.produce(journal, record.value, record.key, headers=list(record.headers))
    assert producer.flush(60) == 0
    with ExitStack() as stack:
        served = Served(stack, file)
        _flow(served)
        served.board.put(Status("source:broker-07", State.DEGRADED, "stomp://broker-07.example:61613 refuses; " * 3))
        yield LargeBridge(served, journal)


def _more() -> str:
    lines = [
        f"source.broker-{n:02}.{key}"
        for n in range(SOURCES - 1)
        for key in ("type=stomp", f"url=stomp://broker-{n:02}.example:61613", f"destinations=queue:in.{n}")
    ]
    for n in range(ROUTES - 1):
        name = f"routes.{_route(n)}"
        lines += [
            f"{name}.in.include=msg.address==settlement.instructions.{n} AND amount > {n * 10} AND region = 'emea'",
            f"{name}.out.topic=company.payments.settlement.instructions.{n // 2}.high-value",
        ]
    return "\n".join(lines) + "\n"


def _route(number: int) -> str:
    return f"settlement-instructions-{CITIES[number % 4]}-{number:03}"


def _flow(served: Served) -> None:
    for _ in range(4):
        served.now += 5
        for n in range(SOURCES - 1):
            served.figures.set(JOURNALED, served.now * n, f"broker-{n:02}")
        for n in range(ROUTES - 1):
            served.figures.set(ROUTED, served.now * n, _route(n), "topic")
        served.figures.set(FAILED, served.now, _route(42), "value-not-convertible", "dead-letter")
        for n in range(40):
            served.figures.set(UNMATCHED_BY_ADDRESS, 100 + n, f"queue.that.no.route.takes.{n}")
        served.samples.take()


def test_every_page_of_a_large_bridge_is_there_soon_fits_and_clips_nothing(
    browser: Browser, large: LargeBridge
) -> None:
    served = large.served
    browser.wait(lambda: (census := served.census()) is not None and census.depth == LETTERS, 60)
    for path in (*PAGES, f"/messages/{large.journal}", f"/messages/{large.journal}/0/40000"):
        name = path.strip("/").replace("/", "-") or "overview"
        for look in browser.each_look(served.url + path, SIZES):
            assert 0 < browser.run(LOADED_MS) < patience(_SECONDS) * 1_000, (path, look)
            assert browser.driver.find_elements(By.TAG_NAME, "h1"), (path, look)
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (path, look)
            assert browser.run(CLIPPED) == [], (path, look)
            assert browser.run(CONTRASTS) == [], (path, look)
            browser.shoot(f"large-{name}-{look}")
    browser.complaints()


def test_a_broken_source_is_red_in_the_headline_the_picture_and_the_parts(browser: Browser, large: LargeBridge) -> None:
    browser.looks()
    browser.open(f"{large.served.url}/")
    assert "source:broker-07 is not ready" in browser.driver.find_element(By.CSS_SELECTOR, "h1 .headline.bad").text
    assert browser.driver.find_elements(By.CSS_SELECTOR, "g.node.bad")[0].text.startswith("broker-07")
    row = browser.driver.find_element(By.CSS_SELECTOR, ".parts tbody tr")
    assert "source:broker-07" in row.text
    assert row.find_elements(By.CSS_SELECTOR, ".status.bad")


def test_the_topology_is_a_list_on_a_phone(browser: Browser, large: LargeBridge) -> None:
    browser.looks((390, 800))
    browser.open(f"{large.served.url}/")
    assert not browser.driver.find_element(By.CSS_SELECTOR, "svg.flow").is_displayed()
    shown = browser.driver.find_element(By.CSS_SELECTOR, ".steps").text
    assert shown.index("broker-07") < shown.index(_route(42)) < shown.index("Dead letters")
    assert "→ company.payments.settlement.instructions.21.high-value, Dead letters" in shown
    assert "and 184 more" in shown


def test_routes_are_filtered_and_sorted_by_keyboard(browser: Browser, large: LargeBridge) -> None:
    browser.looks((1400, 900))
    browser.open(f"{large.served.url}/routes")
    assert len(browser.run(NAMES)) == ROUTES
    browser.tab_to("e.id === 'filter'")
    browser.press("tokyo instructions.19")
    browser.wait(lambda: "of 200 routes" in browser.text())
    browser.wait(lambda: browser.run(NAMES) == [_route(n) for n in (19, 39, 191, 195)])
    assert browser.run("return document.activeElement.id") == "filter"
    assert browser.run("return location.search").startswith("?filter=tokyo+instructions.19")
    browser.tab_to("e.closest('th') && e.textContent === 'Now'")
    browser.press(Keys.ENTER)
    browser.wait(lambda: "sort=-rate" in browser.run("return location.search"))
    names = browser.run(NAMES)
    assert names == sorted(names, reverse=True)
    assert names
    browser.complaints()
