"""The other side of sources and sinks, as far as it takes no broker: what is refused, not there, or still to come."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from threading import Thread

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.jms import JmsConfig
from engine.connectors.nats.system import NatsConnector
from engine.doctor.brokers import broker_check, not_connected
from engine.doctor.checks import Finding, Severity, ok
from engine.doctor.kafka import topic_findings
from engine.embedded.ports import free_ports
from engine.kafka.cluster import Problem
from engine.kafka.topics import Survey
from routes.config import loads
from routes.systems import system_named

PLAIN = """\
bridge.id=b
routes.o.in.include=msg.address==orders
routes.o.out.topic=orders
"""
NATS_GREETING = b'INFO {"server_id":"x","version":"2","max_payload":1,"proto":1,"headers":true}\r\n'


def look(settings: str, *, running: bool = False, base: Path | None = None) -> list[Finding]:
    """The findings of all sources and sinks."""
    config = loads(PLAIN + settings, base or ".")
    return [finding for broker in config.brokers for finding in broker_check(config, broker, 5, running=running).look()]


@pytest.mark.parametrize(
    ("kind", "title"), [("stomp", "Artemis"), ("amqp", "Artemis"), ("nats", "NATS server"), ("kafka", "Kafka")]
)
def test_an_embedded_server_is_not_asked_before_the_bridge_has_started_it(kind: str, title: str) -> None:
    destinations = {"nats": "orders", "kafka": "other"}.get(kind, "queue:orders")
    more = "source.s.address=queue:orders\n" if kind == "kafka" else ""
    found = look(f"source.s.type={kind}\nsource.s.destinations={destinations}\n{more}")
    assert found == [ok("source:s", f"the embedded {title} will be started by the bridge")]


@pytest.mark.parametrize(("kind", "scheme"), [("stomp", "stomp"), ("amqp", "amqp"), ("nats", "nats")])
def test_a_broker_that_is_not_there_is_told_with_the_key_that_names_it(kind: str, scheme: str) -> None:
    (port,) = free_ports(1)
    url = f"{scheme}://127.0.0.1:{port}"
    (found,) = look(f"sink.out.type={kind}\nsink.out.url={url}\n")
    assert found == Finding(
        "sink:out", Severity.FAILED, f"{url}: Connection refused", "start the broker, or correct sink.out.url", 6
    )


def test_what_refuses_and_what_does_not_answer_are_different_errors() -> None:
    broker = JmsConfig(name="s", type=system_named("stomp"), url="stomp+ssl://h:1")
    refused = not_connected("source:s", "source.s", "u", broker, NotConnectedError("the broker says: no", 30.0))
    assert refused.exit_code == 4
    assert refused.remedy == "correct the login of source.s, or the rights of its user"
    gone = not_connected("source:s", "source.s", "u", broker, NotConnectedError("timed out"))
    assert (gone.exit_code, gone.remedy) == (6, "start the broker, or correct source.s.url and source.s.tls.*")


def test_a_server_of_another_kind_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def greet() -> None:
            client, _ = server.accept()
            with client:
                client.sendall(NATS_GREETING)
                client.recv(4096)

        thread = Thread(target=greet, daemon=True)
        thread.start()
        (found,) = look(f"sink.out.type=amqp\nsink.out.url=amqp://127.0.0.1:{port}\n")
        thread.join(10)
    assert found.exit_code == 6
    assert "is this its AMQP port?" in found.found


def test_a_listener_is_its_port_and_its_certificate(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    plain = f"source.l.type=amqp\nsource.l.listen=amqp://127.0.0.1:{port}\nsource.l.destinations=*\n"
    assert look(plain) == [ok("source:l", f"amqp://127.0.0.1:{port}: port {port} is free")]
    with socket.create_server(("127.0.0.1", port)):
        (taken,) = look(plain)
        (own,) = look(plain, running=True)
    assert (taken.state, taken.exit_code) == (Severity.FAILED, 3)
    assert taken.remedy == "stop that program, or set source.l.listen to another address or port"
    assert own.state is Severity.OK


def test_dropboxes_are_looked_at_and_not_made(tmp_path: Path) -> None:
    settings = "source.d.type=dropbox\nsource.d.destinations=queue:orders\n"
    data = f"embedded.data={tmp_path / 'var'}\n"
    assert look(settings + data) == [ok("source:d", f"{tmp_path}/var/dropbox is not there yet; the bridge makes it")]
    (gone,) = look(f"{settings}source.d.root={tmp_path / 'gone'}\n")
    assert (gone.state, gone.exit_code) == (Severity.FAILED, 6)
    assert gone.found.endswith(f"there is no folder {tmp_path}/gone; is its disk mounted?")
    assert look(f"{settings}source.d.root={tmp_path}\n") == [ok("source:d", f"{tmp_path} can be read and written")]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_dropbox_that_is_closed_is_reported(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir(mode=0o500)
    (found,) = look(f"source.d.type=dropbox\nsource.d.destinations=queue:orders\nsource.d.root={tmp_path}\n")
    assert f"the bridge may not read and write {tmp_path}/orders" in found.found


def test_a_dropbox_with_a_link_in_it_is_reported(tmp_path: Path) -> None:
    settings = f"source.d.type=dropbox\nsource.d.destinations=queue:orders\nsource.d.root={tmp_path}\n"
    (tmp_path / "orders" / "incoming").mkdir(parents=True)
    assert [each.state for each in look(settings)] == [Severity.OK]
    (tmp_path / "orders" / "incoming" / "target").symlink_to(tmp_path)
    (found,) = look(settings)
    assert f"a link is not followed, put a folder in its place: {tmp_path}/orders/incoming/target" in found.found


def test_topics_that_are_well_are_one_line_and_each_problem_is_one() -> None:
    problem = Problem("prices", "route 'prices'", "does not exist", "create it")
    found = list(topic_findings(Survey(("orders",), ("journal", "state"), (problem,))))
    assert found == [
        Finding("topic prices", Severity.FAILED, "prices (route 'prices') does not exist", "create it", 4),
        ok("topics", "orders can be used; the bridge makes journal, state when it starts"),
    ]
    many = tuple(f"t{number}" for number in range(7))
    assert list(topic_findings(Survey(many, (), ()))) == [ok("topics", "t0, t1, t2, t3, t4 and 2 more can be used")]
    assert [each.state for each in topic_findings(Survey((), (), (problem,)))] == [Severity.FAILED]


def test_what_may_lose_messages_is_a_warning_beside_a_login_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NatsConnector, "check_connection", lambda *_: "nats://h:1 takes the login")
    monkeypatch.setattr(NatsConnector, "doubts", lambda *_: iter([("a limit of deliveries", "remove it")]))
    found = look("source.s.type=nats\nsource.s.destinations=a\nsource.s.stream=S\nsource.s.url=nats://h:1\n")
    assert found == [
        ok("source:s", "nats://h:1 takes the login"),
        Finding("source:s", Severity.WARNING, "a limit of deliveries", "remove it"),
    ]
