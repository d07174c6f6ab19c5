"""Pages of messages and *Find* in Chromium, with a real Kafka: every record once, and searches that end."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from selenium.webdriver.common.by import By

from engine.embedded import EmbeddedKafka
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.message import BodyType, Message, Record
from engine.page import messages
from routes.config.snapshot import Snapshot
from tests.conftest import TopicFactory
from tests.integration.browser import DESK, PHONE, TABLET, Browser
from tests.integration.buried import Bridge, added
from tests.integration.page_server import CONTRASTS, LOGIN, VIEWER, Served
from tests.topic_records import ordered_producer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIGURATION = """\
bridge.id=b1
kafka.bootstrap.servers={kafka}
journal.topic={journal}
source.s.type=stomp
source.s.url=stomp://127.0.0.1:1
source.s.destinations=queue:orders
routing.dead-letter-topic={dead}
routing.on-soft-failure=dead-letter
routes.orders.in.include=msg.address==orders AND region = 'emea'
routes.orders.out.topic={orders}
routes.orders.conv.key=msg.header.CorrelationId
"""
MASKED = """\
http.username=anna
http.password=pass
http.viewer.username=eve
http.viewer.password=look
http.viewer.mask=JMSCorrelationID, msg.body.order.customer, xpath('/order/customer')
"""
HOSTILE = "<img src=x onerror=document.title='run'>\u202e"
JSON = b'{"order":{"id":4711,"customer":"ann","lines":[{"article":"bolt","amount":12.50},{"amount":1}]}}'
XML = b"<order id='4711'><customer>ann</customer><lines><line article='bolt'>12.50</line></lines></order>"
TIMELINE = "return document.querySelector('[data-load] table')?.innerText ?? ''"
TOO_NARROW = """
return [...document.querySelectorAll("td, th, dd, dt, .notice")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .filter((each) => !each.closest(".skip, .unseen, thead")).map((each) => each.outerHTML.slice(0, 200))
"""
HEX = bytes(range(256)) * 4


def message(number: int, body: bytes = JSON, **fields: str) -> Record:
    headers = {"JMSMessageID": f"ID:{number}", "JMSDestination": "queue:orders", "JMSCorrelationID": f"c{number}"}
    return Message(body, BodyType.of(body), {**headers, **fields}, {}, "s").to_record()


class Topics:
    """The topics of a bridge with messages in them."""

    def __init__(self, kafka: EmbeddedKafka, topic: TopicFactory, folder: Path) -> None:
        self.journal, self.dead, self.orders = topic("journal", partitions=2), topic("dead"), topic("orders")
        self.file = folder / "jms-bridge.properties"
        names = {"journal": self.journal, "dead": self.dead, "orders": self.orders}
        self.file.write_text(CONFIGURATION.format(kafka=kafka.bootstrap, **names))
        self.bridge = Bridge(Snapshot.take(self.file).load(), kafka)
        self._producer = ordered_producer(kafka.bootstrap, {})

    def put(self, topic: str, *records: Record, partition: int = 0) -> None:
        for record in records:
            self._producer.produce(topic, record.value, record.key, partition, headers=list(record.headers))
            self._producer.poll(0)
        assert self._producer.flush(10) == 0

    def publish(self, number: int, record: Record) -> None:
        """The record in the journal, and as the router publishes it."""
        self.put(self.journal, record)
        place = ("jmsbridge.position", f"{self.journal}:0:{number}".encode())
        trace = ("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
        self.put(self.orders, Record(record.key, record.value, (*record.headers, place, trace)))


@pytest.fixture
def topics(kafka: EmbeddedKafka, topic: TopicFactory, tmp_path: Path) -> Topics:
    return Topics(kafka, topic, tmp_path)


@pytest.fixture
def served(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(messages, "_ANSWER_SECONDS", 8.0)
    with ExitStack() as stack:
        yield Served(stack, topics.file)


def asked(served: Served, path: str) -> Any:
    with urlopen(Request(served.plain_url + path, headers=LOGIN), timeout=60) as answer:  # noqa: S310 - our own server
        return json.loads(answer.read())


@pytest.fixture
def masked(topics: Topics, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """Its viewers do not see some values."""
    monkeypatch.setattr(messages, "_ANSWER_SECONDS", 8.0)
    topics.file.write_text(topics.file.read_text() + MASKED)
    with ExitStack() as stack:
        yield Served(stack, topics.file)


def code(served: Served, path: str, login: dict[str, str]) -> int:
    """The status of an answer."""
    try:
        with urlopen(Request(served.plain_url + path, headers=login), timeout=60) as answer:  # noqa: S310 - our own server
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_a_viewer_sees_masked_records_and_no_buttons(browser: Browser, masked: Served, topics: Topics) -> None:
    topics.publish(0, message(0, JMSCorrelationID="secret-17"))
    topics.publish(1, message(1, XML))
    topics.publish(2, message(2, HEX))
    topics.bridge.bury(message(0))
    browser.looks()
    at = f"{masked.viewer_url}/messages/{topics.orders}"
    browser.open(at)
    assert '"customer":"***"' in browser.text()
    assert "<customer>***</customer>" in browser.text()
    assert "(not shown: it is neither JSON nor XML" in browser.text()
    browser.open(f"{at}/0/0")
    browser.wait(lambda: f"{topics.journal}:0:0" in browser.run(TIMELINE))
    assert '"customer": "***"' in browser.text()
    assert "Logged in as eve (viewer)" in browser.text()
    assert all(each not in browser.driver.page_source for each in ('"ann"', "secret-17", "Try it against"))
    browser.open(f"{masked.viewer_url}/find?kind=destination")
    browser.wait(lambda: "Everything was read." in browser.text(), 60)
    assert "3 found" in browser.text()
    assert all(each not in browser.driver.page_source for each in (">ann<", '"ann"', "secret-17"))
    browser.open(f"{masked.viewer_url}/dead-letters")
    assert browser.driver.find_elements(By.CSS_SELECTOR, "form[method=post]") == []
    browser.open(f"{masked.viewer_url}/dead-letters/letter/0/0")
    assert "neither replayed nor discarded" in browser.text()
    assert browser.driver.find_elements(By.CSS_SELECTOR, "form[method=post]") == []
    assert browser.complaints() == []
    for asked_for in ("where=msg.body.order.customer%3D%27ann%27", "text=ann", "correlation_id=secret-17", "key=k"):
        assert code(masked, f"/api/find?{asked_for}", VIEWER) == 403
    assert code(masked, f"/messages/{topics.orders}/0/2/body", VIEWER) == 403
    # An operator sees all of it.
    browser.open(f"{masked.url}/messages/{topics.orders}/0/0")
    assert '"customer": "ann"' in browser.text()
    # The page would go on asking a server that is gone.
    browser.wait(lambda: f"{topics.journal}:0:0" in browser.run(TIMELINE))


def test_each_look_is_in_the_audit_before_the_body_is_shown(browser: Browser, masked: Served, topics: Topics) -> None:
    topics.publish(0, message(0))
    at = f"{topics.orders}:0:0"
    assert asked(masked, "/api/looks") == {"looks": []}
    assert asked(masked, f"/api/messages/{at}")["body"] == JSON.decode()
    for path in (f"/messages/{topics.orders}", f"/messages/{topics.orders}/0/0", f"/messages/{topics.orders}/0/0/body"):
        assert code(masked, path, VIEWER) == 200
        assert code(masked, path, VIEWER) == 200
    found = asked(masked, "/api/looks")["looks"][::-1]
    assert [(each["user"], each["role"], each["way"], each["masked"]) for each in found] == [
        ("anna", "operator", "API", False),
        ("eve", "viewer", "list of records", True),
        *[("eve", "viewer", "record page", True)] * 2,
        *[("eve", "viewer", "download", True)] * 2,
    ]
    assert all(each["records"] == [at] and each["host"] == "127.0.0.1" for each in found)
    assert sorted(each["time"] for each in found) == [each["time"] for each in found]
    settings = Cluster(KafkaClients(masked.config.kafka_access), 10.0).settings([f"{topics.journal}.looks"])
    assert settings[f"{topics.journal}.looks"]["retention.ms"] == str(90 * 24 * 3_600_000)
    browser.looks()
    browser.open(f"{masked.url}/looks")
    assert "eve (viewer)" in browser.text()
    assert browser.complaints() == []
    # The browser would load the icon from a server that is gone.
    browser.driver.get("about:blank")
    browser.complaints()


def test_no_body_is_shown_where_the_audit_cannot_be_written(masked: Served, topics: Topics) -> None:
    topics.publish(0, message(0))
    path = f"/api/messages/{topics.orders}:0:0"
    assert asked(masked, path)["body"] == JSON.decode()
    looks = f"{topics.journal}.looks"
    entry = ConfigEntry("max.message.bytes", "1", incremental_operation=AlterConfigOpType.SET)
    small = ConfigResource(ResourceType.TOPIC, looks, incremental_configs=[entry])
    client = KafkaClients(masked.config.kafka_access).admin()
    for done in client.incremental_alter_configs([small]).values():
        done.result(30)

    def refused() -> bool:
        answer = asked(masked, path)
        return answer["body"] is None and looks in answer["body_hidden"] and "headers" in answer

    until(refused, seconds=20)


def test_topics_records_and_bodies_are_shown(browser: Browser, served: Served, topics: Topics) -> None:
    topics.publish(0, message(0))
    topics.publish(1, message(1, XML))
    topics.publish(2, message(2, HEX))
    topics.bridge.bury(message(0))
    browser.looks()
    browser.open(f"{served.url}/messages")
    assert f"{topics.journal}\tjournal\t2\t3" in browser.text()
    browser.driver.find_element(By.LINK_TEXT, topics.orders).click()
    browser.wait(lambda: "ID:2" not in browser.text() and "0:2" in browser.text())
    browser.driver.find_element(By.LINK_TEXT, "0:0").click()
    browser.wait(lambda: '"customer": "ann"' in browser.text())
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in browser.text()
    browser.wait(lambda: f"{topics.journal}:0:0" in browser.run(TIMELINE))
    browser.driver.find_element(By.LINK_TEXT, f"{topics.journal}:0:0").click()
    browser.wait(lambda: f"Message\n{topics.journal}:0:0" in browser.text())
    browser.driver.find_element(By.LINK_TEXT, "Try it against today's routes").click()
    browser.wait(lambda: "was tried as it is" in browser.text())
    browser.open(f"{served.url}/messages/{topics.orders}/0/1")
    assert "<customer>ann</customer>" in browser.text()
    browser.open(f"{served.url}/messages/{topics.orders}/0/2")
    assert "000000f0" in browser.text()
    browser.open(f"{served.url}/messages/{topics.dead}/0/0")
    browser.driver.find_element(By.LINK_TEXT, "Dead letter").click()
    browser.wait(lambda: "Replay …" in browser.text())
    browser.driver.find_element(By.LINK_TEXT, f"{topics.journal}:0:0").click()
    browser.wait(lambda: f"Message\n{topics.journal}:0:0" in browser.text())
    assert browser.complaints() == []


def test_live_records_appear_by_themselves(browser: Browser, served: Served, topics: Topics) -> None:
    browser.looks()
    browser.open(f"{served.url}/messages/{topics.journal}?live=1")
    assert "There are no records." in browser.text()
    topics.put(topics.journal, message(1, b"it has come"))
    browser.wait(lambda: "it has come" in browser.text())
    assert browser.complaints() == []
    # The page would go on asking a server that is gone.
    browser.driver.get("about:blank")
    browser.complaints()


def test_pages_of_the_api_have_every_record_once(served: Served, topics: Topics) -> None:
    for partition in (0, 1):
        topics.put(topics.journal, *(message(n, b"%d" % n) for n in range(230)), partition=partition)
    found: list[tuple[int, int]] = []
    older = ""
    while older is not None:
        page = asked(served, f"/api/topics/{topics.journal}/records?count=50&before={older}")
        found += [(each["partition"], each["offset"]) for each in page["records"]]
        older = page["older"]
    assert sorted(found) == [(partition, offset) for partition in (0, 1) for offset in range(230)]
    assert len(found) == 460
    where = "JMSMessageID%3D%27ID:7%27+AND+msg.text%3D%277%27"
    only = asked(served, f"/api/topics/{topics.journal}/records?where={where}")["records"]
    assert [(each["partition"], each["body"]) for each in only] == [(1, "7"), (0, "7")]
    spans = {each["topic"]: each for each in asked(served, "/api/topics")["topics"]}[topics.journal]["partitions"]
    assert [(each["first"], each["next"]) for each in spans] == [(0, 230), (0, 230)]
    assert all(each["first_time"] <= each["last_time"] for each in spans)


def test_a_search_finds_in_every_topic_and_says_what_it_read(browser: Browser, served: Served, topics: Topics) -> None:
    topics.put(topics.journal, *(message(n, b"other %d" % n) for n in range(300)), partition=1)
    topics.publish(0, message(4711, HOSTILE.encode(), JMSCorrelationID=HOSTILE))
    topics.bridge.bury(message(4711))
    browser.looks()
    browser.open(f"{served.url}/find")
    browser.driver.find_element(By.ID, "id").send_keys("ID:4711")
    browser.driver.find_element(By.CSS_SELECTOR, "button.main").click()
    browser.wait(lambda: "Everything was read." in browser.text(), 60)
    assert "303 of 303 records; 3 found" in browser.text()
    assert len(browser.driver.find_elements(By.CSS_SELECTOR, "[data-find] tbody tr")) == 3
    for name in (topics.journal, topics.orders, topics.dead):
        assert f"{name}:0:0" in browser.text()
    assert browser.driver.title != "run"
    assert browser.driver.find_elements(By.CSS_SELECTOR, "main img") == []
    browser.shoot("found")
    assert browser.complaints() == []


def test_a_search_for_many_is_continued_until_all_are_found(browser: Browser, served: Served, topics: Topics) -> None:
    topics.put(topics.journal, *(message(n, b"body %d" % n) for n in range(250)))
    browser.looks()
    browser.open(f"{served.url}/find?text=body&kind=journal")
    rows = "return document.querySelectorAll('[data-find] tbody tr').length"
    for count in (100, 200, 250):
        browser.wait(lambda count=count: browser.run(rows) == count, 60)  # type: ignore[misc]
        if count < 250:
            browser.wait(lambda: browser.run("return !document.querySelector('[data-continue]').hidden"))
            browser.driver.find_element(By.CSS_SELECTOR, "[data-continue]").click()
    browser.wait(lambda: "250 found. Everything was read." in browser.text())
    hrefs = browser.run("return [...document.querySelectorAll('[data-find] tbody a')].map((each) => each.href)")
    assert len(set(hrefs)) == 250


def test_every_page_of_messages_fits_and_can_be_read(browser: Browser, served: Served, topics: Topics) -> None:
    long = "x" * 300
    topics.publish(0, message(0, JMSType=long))
    topics.publish(1, message(1, XML, JMSCorrelationID=f"settlement-{long}"))
    topics.publish(2, message(2, HEX))
    topics.publish(3, message(3, long.encode(), JMSCorrelationID="b7f5c1f6-6a92-4a58-8b1a-5a1f6a926a58"))
    topics.bridge.bury_as_it_is(
        Record(b"k", JSON, (*message(0).headers, *((n, v) for n, v in added(topics.journal, 0))))
    )
    at = f"/messages/{topics.orders}"
    paths = {
        "messages": "/messages",
        "records": at,
        "filtered": f"{at}?where=JMSType+IS+NULL&since=1h&before=0:3",
        "json": f"{at}/0/0",
        "xml": f"{at}/0/1",
        "hex": f"{at}/0/2",
        "away": f"{at}/0/99",
        "find": "/find",
        "found": "/find?text=o",
        "wrong": "/find?where=a+%3D",
        "tried": f"/try?position={topics.journal}:0:0",
        "looks": "/looks",
    }
    for name, path in paths.items():
        for look in browser.each_look(served.url + path, [(1400, 900), DESK, TABLET, (390, 800), PHONE]):
            if name == "found":
                browser.wait(lambda: "Everything was read" in browser.text(), 60)
            if name == "json":
                browser.wait(lambda: "journaled" in browser.run(TIMELINE), 60)
            assert browser.run(TOO_NARROW) == [], (path, look)
            assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), (path, look)
            assert browser.run(CONTRASTS) == [], (path, look)
            browser.shoot(f"{name}-{look}")
    browser.complaints()
