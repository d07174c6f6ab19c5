"""The other hosts of a bridge as one host sees them: HTTP servers with figures and no bridge behind them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from engine.telemetry.http import HttpServer, application
from engine.telemetry.http_section import HttpConfig
from engine.telemetry.meters import Figures
from engine.telemetry.metrics import DELIVERED, JOURNALED, RESTARTS
from engine.telemetry.peers import Peers
from engine.telemetry.report import PeerReport
from engine.telemetry.status import State, Status, StatusBoard
from routes.config import lint_text
from routes.keys.addresses import Peer
from routes.model import Config
from tests.certificates import LOOPBACK, sign
from tests.unit.clock import Clock
from tests.waiting import until

CONFIGURATION = """\
bridge.id=b
kafka.bootstrap.servers=127.0.0.1:1
source.jms.type=stomp
source.jms.url=stomp://127.0.0.1:1
source.jms.destinations=queue:orders
routes.r.in.include=TRUE
routes.r.out.topic=t
"""


class Standing:
    leads, stands_by, has_leader = False, True, True
    why_not = "another bridge leads (h)"


@dataclass
class Host:
    """A host that runs some parts of the bridge."""

    parts: tuple[str, ...]
    http: HttpConfig = field(default_factory=lambda: HttpConfig("127.0.0.1", 0))
    bridge: str = "b"
    standing: Standing | None = None
    peers: Peers | None = None

    def __post_init__(self) -> None:
        self.board = StatusBoard(self.parts)
        for name in self.parts:
            self.board.put(Status(name, State.READY, "is well"))
        self.figures = Figures()
        registry = CollectorRegistry()
        registry.register(self.figures)
        told = {"bridge": self.bridge, "hash": "h", "reload": {"success": True, "time": "t"}}
        app = application(self.board, registry, self.standing, configuration=lambda: told, peers=self.peers)
        self.server = HttpServer(self.http, app)
        self.peer = Peer("127.0.0.1", urlsplit(self.server.url).port or 0)


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def config(*peers: Peer, **http: object) -> Config:
    found = lint_text(CONFIGURATION).config
    assert found
    return found.with_section(replace(found.section(HttpConfig), peers=peers, **http))


def watch(*peers: Peer, **http: object) -> tuple[Peers, Clock]:
    clock = Clock()
    settings = config(*peers, **http)
    return Peers(settings.bridge_id, settings.section(HttpConfig), clock), clock


def states(report: PeerReport) -> dict[str, str]:
    return {part.component: part.state for part in report.parts}


def test_a_peer_that_answers_shows_its_parts_with_their_figures(servers: ExitStack) -> None:
    host = Host(("source:a", "source:a/2"))
    servers.enter_context(host.server)
    host.figures.set(RESTARTS, 3, "source:a/2")
    host.figures.set(JOURNALED, 10, "a")
    peers, _ = watch(host.peer)
    peers.ask()
    host.figures.set(JOURNALED, 20, "a")
    peers.ask()
    (report,) = peers.reports()
    assert (report.address, report.reachable, report.ready, report.trouble) == (str(host.peer), True, True, "")
    assert states(report) == {"source:a": "ready", "source:a/2": "ready"}
    assert [part.restarts for part in report.parts] == [0, 3]
    assert (report.parts[0].rate or 0) > 0
    (traffic,) = peers.traffic()
    assert traffic.total(JOURNALED) == 20
    assert (traffic.rate(JOURNALED) or 0) > 0


def test_a_peer_with_a_part_that_is_not_ready_is_not_ready(servers: ExitStack) -> None:
    host = Host(("sink:b",))
    servers.enter_context(host.server)
    host.board.put(Status("sink:b", State.DEGRADED, "nats://127.0.0.1:1 refuses"))
    peers, _ = watch(host.peer)
    peers.ask()
    (report,) = peers.reports()
    assert (report.reachable, report.ready, report.parts[0].detail) == (True, False, "nats://127.0.0.1:1 refuses")


def test_parts_of_a_peer_that_stands_by_are_well(servers: ExitStack) -> None:
    host = Host(("router",), standing=Standing())
    servers.enter_context(host.server)
    host.board.put(Status("router", State.STARTING, "waiting to lead"))
    peers, _ = watch(host.peer)
    peers.ask()
    (report,) = peers.reports()
    assert (report.ready, states(report)) == (True, {"router": "standing by"})


def test_an_outage_of_a_peer_leaves_its_parts_as_unreachable_and_without_figures_that_are_out_of_date(
    servers: ExitStack,
) -> None:
    host, other = Host(("source:a",)), Host(("sink:b",))
    servers.enter_context(other.server)
    host.figures.set(JOURNALED, 10, "a")
    peers, clock = watch(host.peer, other.peer)
    with host.server:
        peers.ask()
    clock.now += 4
    peers.ask()
    assert [report.reachable for report in peers.reports()] == [True, True]
    clock.now += 3
    peers.ask()
    gone, well = peers.reports()
    assert (gone.reachable, gone.ready, gone.silent_seconds) == (False, False, 7)
    assert states(gone) == {"source:a": "unreachable"}
    assert "Connection refused" in gone.trouble
    assert gone.parts[0].rate is None
    assert (well.reachable, states(well)) == (True, {"sink:b": "ready"})
    assert [traffic.total(JOURNALED) for traffic in peers.traffic()] == [None]


def test_a_peer_is_back_with_its_next_answer(servers: ExitStack) -> None:
    host = Host(("source:a",))
    peers, clock = watch(host.peer)
    assert [(each.reachable, each.trouble) for each in peers.reports()] == [(False, "it has not answered yet")]
    clock.now += 60
    servers.enter_context(host.server)
    peers.ask()
    (report,) = peers.reports()
    assert (report.reachable, report.silent_seconds) == (True, 0)


def test_a_peer_that_takes_connections_and_says_nothing_delays_no_report_and_no_other_peer(servers: ExitStack) -> None:
    silent = servers.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
    host = Host(("source:a",))
    servers.enter_context(host.server)
    peers = servers.enter_context(Peers("b", config(Peer(*silent.getsockname()), host.peer).section(HttpConfig)))
    until(lambda: [report.reachable for report in peers.reports()] == [False, True])


def test_a_bridge_leaves_itself_out_of_the_list_that_all_hosts_share(servers: ExitStack) -> None:
    own_address = Peer("127.0.0.1", _free_port())
    other = Host(("sink:b",))
    servers.enter_context(other.server)
    peers, _ = watch(own_address, other.peer)
    own = Host(("router",), HttpConfig("127.0.0.1", own_address.port), peers=peers)
    servers.enter_context(own.server)
    peers.ask()
    assert [report.address for report in peers.reports()] == [str(other.peer)]
    assert len(peers.traffic()) == 1


def _free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def test_a_peer_that_is_asked_does_not_ask_its_own_peers(servers: ExitStack) -> None:
    peers_of_host, _ = watch(Peer("127.0.0.1", 1))
    host = Host(("sink:b",), peers=peers_of_host)
    servers.enter_context(host.server)
    peers, _ = watch(host.peer)
    peers.ask()
    assert [states(report) for report in peers.reports()] == [{"sink:b": "ready"}]
    assert peers_of_host.reports()[0].trouble == "it has not answered yet"


def test_hosts_of_another_bridge_are_no_peers(servers: ExitStack) -> None:
    host = Host(("router",), bridge="other")
    servers.enter_context(host.server)
    peers, _ = watch(host.peer)
    peers.ask()
    (report,) = peers.reports()
    assert (report.reachable, report.parts) == (False, ())
    assert "has the id 'other'; http.peers names hosts of one bridge" in report.trouble


@pytest.mark.parametrize(
    ("login", "trouble"),
    [
        ({"token": "t" * 32}, ""),
        ({"username": "u", "password": "p"}, ""),
        ({"token": "w" * 32}, "does not take the login of this configuration"),
        ({}, "does not take the login of this configuration"),
    ],
)
def test_peers_get_the_login_of_the_configuration(login: dict[str, str], trouble: str, servers: ExitStack) -> None:
    host = Host(("source:a",), HttpConfig("127.0.0.1", 0, token="t" * 32, username="u", password="p"))
    servers.enter_context(host.server)
    peers, _ = watch(host.peer, **login)
    peers.ask()
    (report,) = peers.reports()
    assert report.reachable is not bool(trouble)
    assert trouble in report.trouble


@pytest.mark.parametrize(
    ("name", "host", "trouble"),
    [
        ("both", LOOPBACK, ""),
        ("elsewhere", x509.IPAddress(ip_address("127.0.0.9")), "certificate is not valid for '127.0.0.1'"),
        ("stranger", LOOPBACK, "certificate verify failed"),
    ],
)
def test_a_peer_shows_a_certificate_of_the_same_authority_for_its_own_name(
    name: str, host: x509.GeneralName, trouble: str, tmp_path: Path, servers: ExitStack
) -> None:
    for authority in ("ca", "strange-ca"):
        sign(tmp_path, authority, authority)
    sign(tmp_path, "own", "ca", LOOPBACK)
    sign(tmp_path, name, "strange-ca" if name == "stranger" else "ca", host)
    chain = tmp_path / "chain.pem"
    chain.write_text((tmp_path / "own.pem").read_text() + (tmp_path / "ca.pem").read_text())
    shown = HttpConfig("127.0.0.1", 0, certificate=tmp_path / f"{name}.pem", key=tmp_path / f"{name}.key")
    there = Host(("source:a",), shown)
    servers.enter_context(there.server)
    peers, _ = watch(there.peer, certificate=chain, key=tmp_path / "own.key")
    peers.ask()
    (report,) = peers.reports()
    assert report.reachable is not bool(trouble)
    assert trouble in report.trouble


def test_readiness_is_about_the_own_parts(servers: ExitStack) -> None:
    peers, clock = watch(Peer("127.0.0.1", 1))
    peers.ask()
    clock.now += 10
    board = StatusBoard(["router"])
    board.put(Status("router", State.READY))
    client = TestClient(application(board, CollectorRegistry(), peers=peers))
    assert client.get("/ready").status_code == 200
    (told,) = client.get("/peers").json()
    assert (told["address"], told["reachable"], told["silent_seconds"]) == ("127.0.0.1:1", False, 10)


def test_without_peers_there_is_no_list_of_them() -> None:
    assert TestClient(application(StatusBoard(()), CollectorRegistry())).get("/peers").status_code == 404


def test_metrics_are_those_of_the_own_parts(servers: ExitStack) -> None:
    host = Host(("sink:b",))
    servers.enter_context(host.server)
    host.figures.set(DELIVERED, 5, "b")
    peers, _ = watch(host.peer)
    peers.ask()
    registry = CollectorRegistry()
    registry.register(Figures())
    shown = TestClient(application(StatusBoard(()), registry, peers=peers)).get("/metrics").text
    assert DELIVERED.name not in shown
