"""The page *Find* and searches of the API, with a stand-in for the search: streams, bounds, and how they end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest

from engine.errors import UnreachableError
from engine.find.question import FindQuestion, TopicKind
from engine.find.search import FindProgress, FoundRecord
from engine.page import searches
from engine.telemetry import http
from engine.telemetry.http import HttpServer
from engine.telemetry.http_section import HttpConfig
from routes.model import Config
from tests.unit.page.bridge import Page
from tests.unit.page.kafka_records import HOSTILE, located
from tests.waiting import patience


class Finder:
    """Stand-in for the search."""

    def __init__(self) -> None:
        self.questions: list[FindQuestion] = []
        self.items: list[Any] = []
        self.goes_on = Event()
        self.waits = False
        self.closed = Event()

    def find(self, _: Config, question: FindQuestion, stop: Event) -> Iterator[FoundRecord | FindProgress]:
        self.questions.append(question)
        try:
            yield FindProgress(0, 10, 0, None, done=False)
            while self.waits and not self.goes_on.wait(0.01):
                if stop.is_set():
                    return
                yield FindProgress(1, 10, 0, "token", done=False)
            for item in self.items:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed.set()


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> Finder:
    made = Finder()
    monkeypatch.setattr(searches, "find", made.find)
    return made


@pytest.fixture
def page(tmp_path: Path, finder: Finder) -> Page:
    return Page(tmp_path)


@pytest.fixture
def served(page: Page) -> Iterator[str]:
    with HttpServer(HttpConfig("127.0.0.1", 0), page.served) as server:
        yield urlsplit(server.url).netloc


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + patience(seconds)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_parameters_are_the_question(page: Page, finder: Finder) -> None:
    query = (
        "id=i&message_id=ID:1&correlation_id=c&key=k&header=region%3Demea&header=a%3Db%3Dc%0Ad%3D&where=x+%3D+1&text=+t"
        "&since=1970-01-01T00:00:01Z&until=1970-01-01T00:00:02Z&kind=sink&kind=journal&most=7&resume=r&topic=orders"
    )
    assert page.client.get(f"/api/find?{query}").status_code == 200
    assert finder.questions == [
        FindQuestion(
            "ID:1", "c", "k", (("region", "emea"), ("a", "b=c"), ("d", "")), "x = 1", " t", 1000, 2000,
            frozenset({TopicKind.SINK, TopicKind.JOURNAL}), 7, "r", frozenset({"orders"}), "i",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("kind=x", "kind 'x': expected one of journal"),
        ("header=x", "header 'x': expected NAME=VALUE"),
        ("since=x", "since 'x': expected a time"),
        ("most=0", "most '0': expected a number from 1 to 1000"),
        ("most=%D9%A1", "expected a number from 1 to 1000"),
        ("where=a+%3D", "where"),
        ("where=" + "a" * 5000, "the field 'where' has 5,000 characters"),
    ],
)
def test_a_wrong_question_is_refused(page: Page, finder: Finder, query: str, text: str) -> None:
    for path in ("/api/find", "/find/rows"):
        answer = page.client.get(f"{path}?{query}")
        assert answer.status_code == 400
        assert text in answer.json()["error"]
    assert page.client.get(f"/find?{query}").status_code == 400
    assert finder.questions == []


def test_records_and_progress_are_lines_of_json(page: Page, finder: Finder) -> None:
    finder.items = [
        FoundRecord(TopicKind.DESTINATION, located("orders", 3, b"\xff")),
        FindProgress(1_000_000, 1_000_000, 1, None, done=True, records=1_000_000),
    ]
    answer = page.client.get("/api/find?since=1970-01-01T00:00:01Z")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    begun, record, ended = lines(answer.text)
    assert begun["progress"]["total"] == 10
    assert record["record"]["kind"] == "destination"
    assert (record["record"]["topic"], record["record"]["offset"], record["record"]["body_base64"]) == (
        "orders",
        3,
        "/w==",
    )
    assert ended["progress"]["done"] is True
    assert ended["progress"]["text"] == "1,000,000 of 1,000,000 records from 1970-01-01T00:00:01.000Z; 1 found"


def test_the_page_gets_rows_in_which_nothing_is_run(page: Page, finder: Finder) -> None:
    record = located("orders", 3, HOSTILE.encode(), JMSCorrelationID=HOSTILE)
    finder.items = [FoundRecord(TopicKind.DESTINATION, record)]
    row = lines(page.client.get("/find/rows").text)[1]["row"]
    assert 'href="/messages/orders/0/3"' in row
    assert "&lt;img" in row
    assert "<img" not in row
    assert not {"\x1b", "\u202e"} & set(row)


def test_a_question_on_the_page_has_its_fields_and_begins_at_once(page: Page) -> None:
    text = page.text("/find?message_id=%3Cb%3E&header=a%3Db&kind=sink")
    assert 'value="&lt;b&gt;"' in text
    assert "data-find=" in text
    assert text.count(" checked") == 1
    assert "data-find=" not in page.text("/find")
    assert "data-find=" in page.text("/find?search=1&message_id=")


def test_what_fails_on_the_way_is_the_last_line(page: Page, finder: Finder) -> None:
    finder.items = [UnreachableError("Kafka has gone")]
    assert lines(page.client.get("/api/find").text)[-1] == {"error": "Kafka has gone"}
    finder.items = [RuntimeError("secret")]
    (last,) = lines(page.client.get("/api/find").text)[-1:]
    assert "secret" not in str(last)
    assert "the search failed by a fault of the bridge" in last["error"]


def test_a_page_of_another_site_starts_no_search(page: Page, finder: Finder) -> None:
    for path in ("/api/find", "/find/rows"):
        answer = page.client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert answer.status_code == 403
        assert "a page of another site" in answer.json()["error"]
        assert page.client.get(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert len(finder.questions) == 2


def test_two_searches_run_at_once_and_a_third_is_refused(page: Page, finder: Finder, served: str) -> None:
    finder.waits = True
    running = [HTTPConnection(served, timeout=patience(10)) for _ in range(2)]
    for connection in running:
        connection.request("GET", "/api/find")
        assert connection.getresponse().readline()
    refused = page.client.get("/api/find")
    assert refused.status_code == 503
    assert "2 searches are running" in refused.json()["error"]
    finder.goes_on.set()
    for connection in running:
        connection.close()
    until(lambda: page.client.get("/api/find").status_code == 200)


def test_a_search_ends_when_its_client_goes_away(finder: Finder, served: str) -> None:
    finder.waits = True
    connection = HTTPConnection(served, timeout=patience(10))
    connection.request("GET", "/api/find")
    answer = connection.getresponse()
    assert "token" in (answer.readline() + answer.readline()).decode()
    answer.close()
    connection.close()
    assert finder.closed.wait(patience(10))


def test_a_search_may_take_longer_than_a_request_to_a_client_that_reads(
    finder: Finder, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.3)
    finder.waits = True
    connection = HTTPConnection(served, timeout=patience(10))
    connection.request("GET", "/api/find")
    answer = connection.getresponse()
    began = time.monotonic()
    while time.monotonic() - began < 1.5:
        assert answer.readline()
    finder.goes_on.set()
    assert answer.read() is not None
    connection.close()


def test_a_client_that_does_not_read_is_left(finder: Finder, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_REQUEST_SECONDS", 0.3)
    finder.items = [FoundRecord(TopicKind.JOURNAL, located("j", n, b"x" * 1_000_000)) for n in range(100)]
    connection = HTTPConnection(served, timeout=patience(10))
    connection.request("GET", "/api/find")
    assert finder.closed.wait(patience(10))
    connection.close()
