"""What doctor makes of who answers at http.address: this bridge, another one, or no bridge."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from engine.doctor.bridge import Answer, ask_bridge, check_http, check_peer
from engine.doctor.checks import Severity
from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.status import StatusBoard
from engine.topologies.runtime.code import read_code
from routes.config import loads
from routes.keys.addresses import Peer
from routes.model import Config

TEXT = """\
bridge.id=b1
source.s.type=stomp
source.s.destinations=queue:orders
routes.o.in.include=msg.address==orders
routes.o.out.topic=orders
"""
READY = Answer("b1", "abc", (), "")

Serve = Callable[..., Config]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A bridge's HTTP server; gives a configuration that leads to it."""
    with ExitStack() as stack:

        def start(told: dict[str, object], token: str | None = None) -> Config:
            config = HttpConfig("127.0.0.1", 0, token=token)
            app = application(StatusBoard(["router"]), CollectorRegistry(), configuration=lambda: told)
            server = stack.enter_context(HttpServer(config, app))
            return loads(TEXT).with_section(replace(config, port=int(server.url.rpartition(":")[2])))

        yield start


def test_a_bridge_tells_who_it_is_also_behind_a_login(serve: Serve) -> None:
    config = serve({"bridge": "b1", "hash": "abc"}, token="secret")
    assert ask_bridge(config.section(HttpConfig), 10) == Answer("b1", "abc", ("router",), "")
    stranger = config.with_section(replace(config.section(HttpConfig), token="wrong"))
    assert ask_bridge(stranger.section(HttpConfig), 10) == Answer("", "", (), "")


def test_a_bridge_that_does_not_tell_its_id_is_another_one(serve: Serve) -> None:
    config = serve({})
    (found,) = check_http(config, "abc", ask_bridge(config.section(HttpConfig), 10))
    assert (found.state, found.exit_code) == (Severity.FAILED, 3)
    assert found.found.startswith("a bridge that does not tell its id runs at 127.0.0.1:")


def test_what_is_no_bridge_is_not_taken_for_one_and_its_port_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = loads(TEXT).with_section(HttpConfig("127.0.0.1", silent.getsockname()[1]))
        assert ask_bridge(config.section(HttpConfig), 0.2) is None
        (found,) = check_http(config, "abc", None)
    assert found.found.startswith(f"port {config.section(HttpConfig).port} is in use")


@pytest.mark.parametrize(
    ("answer", "state", "said"),
    [
        (READY, Severity.OK, "bridge 'b1' runs at 127.0.0.1:8480 and is ready"),
        (
            replace(READY, waiting_for=("router", "source:s")),
            Severity.WARNING,
            "bridge 'b1' runs at 127.0.0.1:8480 and waits for router, source:s",
        ),
        (
            replace(READY, waiting_for=("router",), standby="another bridge leads"),
            Severity.OK,
            "bridge 'b1' runs at 127.0.0.1:8480 and stands by: another bridge leads",
        ),
        (
            replace(READY, waiting_for=("a bridge that leads",), standby="waiting for Kafka", has_leader=False),
            Severity.WARNING,
            "bridge 'b1' runs at 127.0.0.1:8480 and waits for a bridge that leads",
        ),
        (
            replace(READY, hash="old"),
            Severity.WARNING,
            "bridge 'b1' runs at 127.0.0.1:8480, but not on the file as it is now",
        ),
        (replace(READY, bridge="b2"), Severity.FAILED, "bridge 'b2' runs at 127.0.0.1:8480"),
    ],
)
def test_how_a_bridge_is_reported(answer: Answer, state: Severity, said: str) -> None:
    (found,) = check_http(loads(TEXT), "abc", answer)
    assert (found.state, found.found) == (state, said)


def test_beside_another_bridge_one_on_a_shared_kafka_would_only_wait_with_its_figures() -> None:
    config = loads(TEXT + "kafka.bootstrap.servers=127.0.0.1:1\n")
    (found,) = check_http(config, "abc", replace(READY, bridge="b2"))
    assert found.state is Severity.WARNING


def test_a_certificate_that_is_none_is_told_beside_the_port(tmp_path: Path) -> None:
    (tmp_path / "http.pem").write_text("none")
    http = HttpConfig("127.0.0.1", 0, certificate=tmp_path / "http.pem", key=tmp_path / "http.pem")
    certificate, port = check_http(loads(TEXT).with_section(http), "abc", None)
    assert (certificate.name, certificate.state, certificate.exit_code) == ("http.tls", Severity.FAILED, 3)
    assert certificate.remedy == "correct http.tls.certificate and http.tls.key"
    assert port.state is Severity.OK


def test_a_peer_that_answers_is_told_from_one_that_refuses_the_login_and_one_that_is_down(serve: Serve) -> None:
    config = serve({"bridge": "b1"}, token="secret")
    peer = Peer("127.0.0.1", config.section(HttpConfig).port)
    (found,) = check_peer(config.section(HttpConfig), peer, 10)
    assert (found.state, found.name) == (Severity.OK, f"peer {peer}")
    stranger = config.with_section(replace(config.section(HttpConfig), token="wrong"))
    (found,) = check_peer(stranger.section(HttpConfig), peer, 10)
    assert (found.state, "answers with HTTP status 401" in found.found) == (Severity.WARNING, True)
    (found,) = check_peer(config.section(HttpConfig), Peer("127.0.0.1", 1), 10)
    assert (found.state, "Connection refused" in found.found) == (Severity.WARNING, True)


def test_topologies_whose_files_are_not_in_force_are_told(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_of_doctor.py").write_text("RATE = 1\n")
    in_force = read_code("shop_of_doctor:build", tmp_path).hash
    told = {"bridge": "b1", "hash": "abc", "topologies": {"shop": in_force, "gone": "1"}}
    shop = loads(f"{TEXT}topologies.shop.build=shop_of_doctor:build\ntopologies.new.build=shop_of_doctor:build\n")
    config = shop.with_section(serve(told).section(HttpConfig))
    http = config.section(HttpConfig)
    assert [each.state for each in check_http(config, "abc", ask_bridge(http, 10))] == [Severity.WARNING]
    (tmp_path / "shop_of_doctor.py").write_text("RATE = 2\n")
    _, found = check_http(config, "abc", ask_bridge(http, 10))
    assert (found.name, found.state) == ("topology shop", Severity.WARNING)
    assert found.found == f"its source files on disk ({tmp_path}/shop_of_doctor.py) are not those in force"
