"""The HTTP server, asked over a socket."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from threading import Thread
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from engine.errors import SetupError
from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import DeadLetterCounts, Merged, State, Status, StatusBoard


class Served:
    def __init__(self, url: str, board: StatusBoard) -> None:
        self.url = url
        self.board = board

    def get(self, path: str, accept: str = "*/*") -> tuple[int, str, str]:
        with closing(HTTPConnection(urlsplit(self.url).netloc, timeout=10)) as connection:
            connection.request("GET", path, headers={"Accept": accept})
            answer = connection.getresponse()
            return answer.status, answer.headers["content-type"], answer.read().decode()


@pytest.fixture
def served() -> Iterator[Served]:
    board = StatusBoard(["router", "source:orders"])
    registry = CollectorRegistry()
    BridgeMetrics(registry, ["router"], "0.1", "4.2")
    registry.register(Merged(board))
    with HttpServer(HttpConfig("127.0.0.1", 0), application(board, registry)) as server:
        yield Served(server.url, board)


def test_health_answers_while_nothing_is_ready(served: Served) -> None:
    assert served.get("/health") == (200, "application/json", '{"status":"up"}')


def test_ready_names_what_is_not_ready_and_why(served: Served) -> None:
    served.board.put(Status("router", State.READY, "2 routes"))
    served.board.put(Status("source:orders", State.DEGRADED, "stomp://127.0.0.1:1 refuses"))
    code, _, body = served.get("/ready")
    assert code == 503
    assert json.loads(body) == {
        "ready": False,
        "waiting_for": ["source:orders"],
        "components": {
            "router": {"state": "ready", "detail": "2 routes"},
            "source:orders": {"state": "degraded", "detail": "stomp://127.0.0.1:1 refuses"},
        },
    }


def test_ready_is_200_when_all_are(served: Served) -> None:
    for name in ("router", "source:orders"):
        served.board.put(Status(name, State.READY))
    code, _, body = served.get("/ready")
    assert (code, json.loads(body)["ready"], json.loads(body)["waiting_for"]) == (200, True, [])


class Standing:
    leads = False
    why_not = "another bridge leads (host, process 7); takes over when it ends"
    stands_by = True
    has_leader = True


@pytest.mark.parametrize(
    ("leads", "stands_by", "has_leader", "state", "plain", "well"),
    [
        (True, False, True, State.READY, 200, 200),
        (True, False, True, State.DEGRADED, 503, 503),
        (False, True, True, State.STARTING, 503, 200),
        (False, False, True, State.STARTING, 503, 503),
        (False, False, False, State.READY, 503, 503),
    ],
)
def test_a_bridge_that_stands_by_is_not_ready_but_well(
    leads: bool, stands_by: bool, has_leader: bool, state: State, plain: int, well: int
) -> None:
    board, standing = StatusBoard(["router"]), Standing()
    standing.leads, standing.stands_by, standing.has_leader = leads, stands_by, has_leader
    board.put(Status("router", state))
    with HttpServer(HttpConfig("127.0.0.1", 0), application(board, CollectorRegistry(), standing)) as server:
        served = Served(server.url, board)
        assert served.get("/ready")[0] == plain
        code, _, body = served.get("/ready?standby=ok")
        health, _, told = served.get("/health")
    assert (code, health) == (well, 200)
    assert json.loads(told) == {"status": "up", "leader": leads, "has_leader": has_leader}
    assert (json.loads(body)["leader"], json.loads(body)["has_leader"]) == (leads, has_leader)
    assert ("a bridge that leads" in json.loads(body)["waiting_for"]) is not has_leader
    assert json.loads(body).get("standby") == (None if leads else Standing.why_not)


@pytest.mark.parametrize(
    ("census", "code", "told"),
    [
        (
            DeadLetterCounts("dead", reachable=True, open={"unmatched": 2, "refused": 0}, oldest=1.0, quarantined=1),
            200,
            {"topic": "dead", "reachable": True, "depth": 2, "reasons": {"unmatched": 2}, "quarantined": 1},
        ),
        (
            DeadLetterCounts("dead", reachable=True, trouble="not authorised"),
            200,
            {"topic": "dead", "reachable": True, "depth": None, "oldest_seconds": None, "detail": "not authorised"},
        ),
        (
            DeadLetterCounts("dead", trouble="does not exist"),
            503,
            {"topic": "dead", "reachable": False, "depth": None, "quarantined": None, "detail": "does not exist"},
        ),
    ],
)
def test_dead_letters_are_no_fault_but_a_topic_out_of_reach_is(
    census: DeadLetterCounts, code: int, told: dict[str, object]
) -> None:
    board = StatusBoard(["router"])
    board.put(Status("router", State.READY))
    pages = application(board, CollectorRegistry(), census=lambda: census)
    with HttpServer(HttpConfig("127.0.0.1", 0), pages) as server:
        served = Served(server.url, board)
        answer, _, body = served.get("/ready")
        health = served.get("/health")
    ready = json.loads(body)
    assert (answer, ready["waiting_for"]) == (code, [] if code == 200 else ["dead-letter topic"])
    assert told.items() <= ready["dead_letters"].items()
    assert health[0] == 200
    assert json.loads(health[2])["dead_letters"] == {"reachable": census.reachable, "depth": census.depth}


def test_a_patient_server_waits_for_the_address_of_another_bridge() -> None:
    board = StatusBoard(["router"])
    pages = application(board, CollectorRegistry(), Standing())
    with HttpServer(HttpConfig("127.0.0.1", 0), pages) as first:
        config = HttpConfig("127.0.0.1", urlsplit(first.url).port or 0)
        second = HttpServer(config, pages, patient=True)
        assert second.url == first.url
    with second:
        deadline = time.monotonic() + 20
        while not answers(second.url):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises(SetupError, match="is in use"):
            HttpServer(config, pages)


def answers(url: str) -> bool:
    try:
        return Served(url, StatusBoard([])).get("/health")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\n\r\n{}", b"220 not HTTP at all\r\n", b"\x00" * 100])
def test_a_patient_server_does_not_wait_for_what_is_no_bridge(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def talk() -> None:
            connection, _ = taken.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = Thread(target=talk)
        thread.start()
        config = HttpConfig("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(SetupError, match="is in use"):
            HttpServer(config, application(StatusBoard([]), CollectorRegistry()), patient=True)
        thread.join()


def test_metrics_hold_the_supervisors_figures_and_those_of_the_components(served: Served) -> None:
    served.board.put(Status("router", State.READY, metrics="# HELP x X.\n# TYPE x counter\nx_total 3.0\n# EOF\n"))
    code, kind, body = served.get("/metrics")
    assert (code, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'jmsbridge_component_up{component="router"} 0.0\n' in body
    assert "x_total 3.0\n" in body


def test_metrics_come_as_open_metrics_to_a_client_that_asks_for_it(served: Served) -> None:
    code, kind, body = served.get("/metrics", "application/openmetrics-text; version=1.0.0")
    assert code == 200
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith("# EOF\n")


def test_an_unknown_page_is_404(served: Served) -> None:
    assert served.get("/nothing")[0] == 404


def test_a_taken_address_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError) as caught:
            HttpServer(HttpConfig("127.0.0.1", port), application(StatusBoard([]), CollectorRegistry()))
    assert str(caught.value) == f"http.address=127.0.0.1:{port} is in use; set http.address to another port"


def test_an_address_that_is_not_ours_is_named_with_its_setting() -> None:
    with pytest.raises(SetupError, match=r"^http\.address=192\.0\.2\.1:80 cannot be used: .+; set http\.address"):
        HttpServer(HttpConfig("192.0.2.1", 80), application(StatusBoard([]), CollectorRegistry()))
