"""The HTTP server, asked over a socket."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry

from engine.errors import SetupError
from engine.telemetry.exposition import Merged
from engine.telemetry.http import HttpServer, application
from engine.telemetry.meters import BridgeMetrics
from engine.telemetry.status import State, Status, StatusBoard
from routes.model import HttpConfig


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


def test_metrics_hold_the_supervisors_figures_and_those_of_the_components(served: Served) -> None:
    served.board.put(Status("router", State.READY, metrics="# HELP x_total X.\n# TYPE x_total counter\nx_total 3.0\n"))
    code, kind, body = served.get("/metrics")
    assert (code, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert 'jmsbridge_component_up{component="router"} 0.0\n' in body
    assert "x_total 3.0\n" in body


def test_metrics_come_as_open_metrics_to_a_client_that_asks_for_it(served: Served) -> None:
    code, kind, body = served.get("/metrics", "application/openmetrics-text; version=1.0.0")
    assert code == 200
    assert kind.startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith("# EOF\n")


def test_the_index_links_every_page(served: Served) -> None:
    code, kind, body = served.get("/")
    assert (code, kind) == (200, "text/html; charset=utf-8")
    assert all(f'href="{path}"' in body for path in ("/metrics", "/ready", "/health"))


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
