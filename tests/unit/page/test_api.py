"""The API: its document, and that every path answers as the document says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.dead_letters.search import Found, Summary
from engine.errors import UnreachableError, UsageError
from engine.find.question import TopicKind
from engine.find.search import FindProgress, FoundRecord
from engine.find.timeline import TimelineEvent
from engine.kafka.reader import Position
from engine.looks.action import AuditedAction
from engine.looks.look import Look, LookWay
from engine.page import actions, letters, looks, searches
from engine.telemetry.control import CHANGES
from engine.telemetry.metrics import JOURNALED, ROUTED
from engine.telemetry.status import DeadLetterCounts
from engine.topologies.graph import write_graph
from engine.topologies.question import StateAnswer, StateFault, StateQuestion
from tests.unit.page.bridge import CONFIGURATION, LOGIN, VIEWER, Page
from tests.unit.page.kafka_records import KafkaRecords, located

PATHS = {
    "/api/status": "/api/status",
    "/api/find": "/api/find?text=hello",
    "/api/topics": "/api/topics",
    "/api/topics/{topic}/records": "/api/topics/orders/records?count=2&where=JMSPriority+IS+NULL",
    "/api/messages/{position}": "/api/messages/orders:0:1",
    "/api/letters": "/api/letters?reason=key-not-found&page=1",
    "/api/looks": "/api/looks?count=5&user=ann",
    "/api/audit": "/api/audit?user=ann&count=5",
    "/api/topologies/{topology}/state": "/api/topologies/totals/state",
    "/api/topologies/{topology}/state/{node}": "/api/topologies/totals/state/sums?key=ann&window_from=0&limit=2",
}
"""A request to each path."""
LINES = "application/x-ndjson"


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> KafkaRecords:
    kafka = KafkaRecords(monkeypatch)
    position = f"{'jms-bridge.journal'}:0:7".encode()
    kafka.put(
        "orders", located("orders", 0, b"\xff\0"), located("orders", 1, headers=[("jmsbridge.position", position)])
    )
    kafka.put("orders", located("orders", 2, b"x" * 100_000))
    kafka.events = (
        TimelineEvent(5, "taken", "source 's' took it", Position("jms-bridge.journal", 0, 7)),
        TimelineEvent(None, "waiting", "the sink has not come to it"),
    )
    summary = Summary(Position("dead", 0, 1), 5, "key-not-found", "", "no key", None, 3, 0)
    monkeypatch.setattr(letters, "search", lambda *_, **__: Found((summary,) * 51, 60, is_complete=False))
    found = (FoundRecord(TopicKind.DESTINATION, located("orders", 1)), FindProgress(9, 9, 1, None, done=True))
    monkeypatch.setattr(searches, "find", lambda *_: iter(found))
    look = Look("2026-11-28T12:00:00Z", "anna", "operator", "10.0.0.1", LookWay.API, False, (Position("orders", 0, 1),))
    monkeypatch.setattr(looks, "last_looks", lambda *_: [look])
    done = AuditedAction("2026-11-28T12:00:00Z", "anna", "operator", "10.0.0.1", "1", "pause", "router", "done")
    monkeypatch.setattr(actions, "last_actions", lambda *_: [done])
    return kafka


def page_with_topology(folder: Path, settings: str = "", *, login: bool = False) -> Page:
    """The page of a bridge with a topology that answers any question for its state."""
    text = CONFIGURATION + settings + f"topologies.totals.build=m:build\nembedded.data={folder}\n"
    page = Page(folder, text, login=login)
    node = {"topics": [], "stateful": True, "asked": True, "python": "", "after": []}
    write_graph(folder, "totals", "order-totals", [{**node, "name": "sums", "operator": "aggregate"}])
    rows = ({"key": "ann", "total": 5.5},)
    page.answer = StateAnswer(rows, "0:1.ab", live=True, positions={"orders": {"0": 17}})
    return page


@pytest.fixture
def page(tmp_path: Path, kafka: KafkaRecords) -> Page:
    page = page_with_topology(tmp_path)
    for number in range(3):
        page.figures.set(JOURNALED, number * 10, "jms")
        page.figures.set(ROUTED, number * 10, "orders", "orders")
        page.sample()
    page.census = DeadLetterCounts("dead", True, "", {"key-not-found": 2}, 1.0, 0)
    return page


@pytest.fixture
def document(page: Page) -> dict[str, Any]:
    found: dict[str, Any] = page.client.get("/api/openapi.json").json()
    return found


def test_the_document_is_openapi(document: dict[str, Any]) -> None:
    assert document["openapi"] == "3.1.0"
    assert {"title", "version"} <= document["info"].keys()
    asking = {path: methods["get"] for path, methods in document["paths"].items() if "get" in methods}
    changing = {path: methods["post"] for path, methods in document["paths"].items() if "post" in methods}
    assert asking.keys() == PATHS.keys()
    assert asking.keys() | changing.keys() == document["paths"].keys()
    assert changing.keys() == {each.path for each in CHANGES}
    operations = [*asking.values(), *changing.values()]
    assert len({each["operationId"] for each in operations}) == len(operations)
    for path, each in [*asking.items(), *changing.items()]:
        in_path = {parameter["name"] for parameter in each["parameters"] if parameter["in"] == "path"}
        assert in_path == set(re.findall(r"\{(\w+)\}", path))
        assert all(parameter["required"] for parameter in each["parameters"] if parameter["in"] == "path")
        statuses = {"200", "400", "403", "404", "503"} if path in asking else {"202", "400", "403"}
        assert each["responses"].keys() == statuses
        for parameter in each["parameters"]:
            Draft202012Validator.check_schema(parameter["schema"])
            assert parameter["description"]
        for response in each["responses"].values():
            (content,) = response["content"].values()
            Draft202012Validator.check_schema(content["schema"])


@pytest.mark.parametrize("path", PATHS)
def test_every_path_answers_as_the_document_says(page: Page, document: dict[str, Any], path: str) -> None:
    answer = page.client.get(PATHS[path])
    assert answer.status_code == 200, answer.text
    content = document["paths"][path]["get"]["responses"]["200"]["content"]
    media = answer.headers["content-type"].partition(";")[0]
    assert [media] == list(content)
    texts = answer.text.splitlines() if media == LINES else [answer.text]
    assert texts
    for text in texts:
        Draft202012Validator(content[media]["schema"]).validate(json.loads(text))
    query = PATHS[path].partition("?")[2]
    documented = {each["name"] for each in document["paths"][path]["get"]["parameters"]}
    assert {field.partition("=")[0] for field in query.split("&") if field} <= documented


def test_the_answers_have_what_is_asked_for(page: Page) -> None:
    get = page.client.get
    status = get("/api/status").json()
    assert (status["bridge"], status["journaled_per_second"], status["dead_letters"]["open"]) == ("b1", 2.0, 2)
    assert [part["name"] for part in status["parts"]] == ["router", "source:jms", "sink:nats"]
    topics = {each["topic"]: each for each in get("/api/topics").json()["topics"]}
    assert topics["orders"]["partitions"][0]["next"] == 6
    assert not topics["dead"]["exists"]
    first = get("/api/topics/orders/records?count=2").json()
    assert [(each["offset"], each["size"], each["cut"]) for each in first["records"]] == [
        (2, 100_000, True),
        (1, 5, False),
    ]
    (last,) = get(f"/api/topics/orders/records?count=2&before={first['older']}").json()["records"]
    assert last["body_base64"] == "/wA="
    message = get("/api/messages/orders:0:1").json()
    assert (message["body"], message["journal"], message["kind"]) == ("hello", "jms-bridge.journal:0:7", "destination")
    assert [each["what"] for each in message["timeline"]] == ["taken", "waiting"]
    found = get("/api/letters").json()
    assert (len(found["letters"]), found["next"], found["is_complete"]) == (50, 2, False)
    assert found["letters"][0]["position"] == "dead:0:1"


def test_the_state_of_a_topology_is_asked_as_the_parameters_say_and_noted(page: Page) -> None:
    get = page.client.get
    assert get("/api/topologies/totals/state").json() == {
        "topology": "totals",
        "nodes": [{"node": "sums", "operator": "aggregate"}],
    }
    asked = "from=a&to=c&window_from=5&window_to=1970-01-01T00:00:01&limit=7&after=0:0.&live=false"
    found = get(f"/api/topologies/totals/state/sums?{asked}").json()
    assert (found["rows"], found["next"], found["live"]) == ([{"key": "ann", "total": 5.5}], "0:1.ab", True)
    assert found["positions"] == {"orders": {"0": 17}}
    assert page.questions == [
        ("totals", StateQuestion("sums", None, None, 5, 1000, 7, "a", "c", after="0:0.", live=False))
    ]
    assert [(look.way, look.state) for look in page.looks.looks] == [("API", "totals/sums")]
    page.looks.error = UnreachableError("the audit of looks cannot be written")
    refused = get("/api/topologies/totals/state/sums")
    assert (refused.status_code, "5.5" in refused.text) == (503, False)


@pytest.mark.parametrize(
    ("answer", "query", "status", "told"),
    [
        (None, "other/state", 404, "no topology 'other' with state that can be asked has run on this machine"),
        (None, "totals/state/none", 404, "no node 'none' of topology 'totals' has state"),
        (None, "totals/state/sums", 503, "gave no answer within 10 s"),
        (StateAnswer(fault="no windows", kind=StateFault.QUESTION), "totals/state/sums", 400, "no windows"),
        (StateAnswer(fault="share 0", kind=StateFault.AWAY), "totals/state/sums", 503, "share 0"),
        (None, "totals/state/sums?live=yes", 400, "live 'yes': expected true or false"),
        (None, "totals/state/sums?limit=0", 400, "expected a number from 1 to 1000"),
        (None, "totals/state/sums?since=1", 400, "there is no parameter 'since'"),
    ],
)
def test_a_state_that_is_not_shown_is_told_why(
    page: Page, answer: StateAnswer | None, query: str, status: int, told: str
) -> None:
    page.answer = answer
    found = page.client.get(f"/api/topologies/{query}")
    assert found.status_code == status
    assert told in found.json()["error"]
    assert page.looks.looks == []


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/api/nothing", 404, "there is nothing at /api/nothing"),
        ("/api/find?id=1&since_=2h", 400, "there is no parameter 'since_': expected id, message_id, "),
        ("/api/status?x=1", 400, "there is no parameter 'x': /api/status has none"),
        ("/api/topics/secret/records", 404, "'secret' is not a topic of this bridge"),
        ("/api/messages/orders:0:99", 404, "no such record"),
        ("/api/messages/secret:0:1", 404, "'secret' is not a topic of this bridge"),
        ("/api/messages/x", 400, "'x' is not a position"),
        ("/api/topics/orders/records?count=x", 400, "count 'x': expected a number from 1 to 200"),
        ("/api/topics/orders/records?since=x", 400, "since 'x': expected a time"),
        ("/api/letters?where=%28", 400, "where"),
    ],
)
def test_an_error_is_json_with_a_status(page: Page, path: str, status: int, text: str) -> None:
    answer = page.client.get(path)
    assert answer.status_code == status
    assert text in answer.json()["error"]


def test_without_kafka_the_api_says_so(page: Page, kafka: KafkaRecords) -> None:
    kafka.error = UnreachableError("Kafka at 127.0.0.1:1 does not answer")
    for path in ("/api/topics", "/api/topics/orders/records", "/api/messages/orders:0:1"):
        answer = page.client.get(path)
        assert answer.status_code == 503
        assert answer.json() == {"error": "Kafka at 127.0.0.1:1 does not answer"}


def test_a_record_without_a_timeline_is_given_with_the_reason(page: Page, kafka: KafkaRecords) -> None:
    kafka.untold = UsageError("not one that this bridge has written")
    answer = page.client.get("/api/messages/orders:0:1").json()
    assert (answer["offset"], answer["timeline"]) == (1, None)
    assert answer["timeline_fault"] == "not one that this bridge has written"


def test_the_api_needs_the_login(tmp_path: Path, kafka: KafkaRecords) -> None:
    page = page_with_topology(tmp_path, login=True)
    for path in ("/api/openapi.json", *PATHS.values()):
        assert page.client.get(path).status_code == 401
        assert page.client.get(path, headers=LOGIN).status_code == 200


def test_viewers_with_a_mask_see_no_state(tmp_path: Path) -> None:
    viewers = "http.username=anna\nhttp.password=pass\nhttp.viewer.username=eve\nhttp.viewer.password=look\n"
    page = page_with_topology(tmp_path, viewers + "http.viewer.mask=msg.body.card\n", login=True)
    path = "/api/topologies/totals/state/sums"
    refused = page.client.get(path, headers=VIEWER)
    assert (refused.status_code, "ask an operator" in refused.text) == (403, True)
    assert page.questions == []
    assert page.client.get(path, headers=LOGIN).json()["rows"] == [{"key": "ann", "total": 5.5}]


def test_pages_of_another_site_cannot_ask_for_state(page: Page) -> None:
    refused = page.client.get("/api/topologies/totals/state/sums", headers={"Sec-Fetch-Site": "cross-site"})
    assert (refused.status_code, page.questions) == (403, [])
