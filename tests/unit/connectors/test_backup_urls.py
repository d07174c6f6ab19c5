"""Backups of a broker: the addresses that a session tries, and the key that names them."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.connectors.wire import Endpoint, Endpoints
from routes.config import loads
from routes.errors import ConfigurationError
from tests.unit.connectors.stomp_broker import Broker

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B, C = (Endpoint("stomp", host, 1, tls=False) for host in "abc")


class Attempts:
    """Attempts to connect, of which those at `away` fail."""

    def __init__(self, *away: Endpoint, refused: bool = False) -> None:
        self.away, self.refused, self.made = set(away), refused, list[str]()

    def __call__(self, endpoint: Endpoint) -> None:
        self.made.append(endpoint.host)
        if endpoint in self.away:
            raise NotConnectedError("nobody is there", 30 if self.refused else None)


def test_the_address_that_answered_last_is_tried_first() -> None:
    endpoints = Endpoints([A, B, C])
    attempts = Attempts(A)
    endpoints.connect(attempts)
    endpoints.connect(attempts)
    assert (attempts.made, endpoints.first) == (["a", "b", "b"], B)
    attempts.away = {B, C}
    endpoints.connect(attempts)
    assert (attempts.made[3:], endpoints.first) == (["b", "c", "a"], A)


def test_each_address_is_tried_once_and_told() -> None:
    attempts = Attempts(A, B)
    with pytest.raises(NotConnectedError, match=r"^stomp://a:1: nobody is there; stomp://b:1: nobody is there$"):
        Endpoints([A, B]).connect(attempts)
    assert attempts.made == ["a", "b"]


def test_the_failure_of_a_single_address_stands_alone() -> None:
    with pytest.raises(NotConnectedError, match=r"^nobody is there$"):
        Endpoints([A]).connect(Attempts(A))


def test_a_refused_login_is_not_tried_at_the_backup() -> None:
    attempts = Attempts(A, refused=True)
    with pytest.raises(NotConnectedError) as raised:
        Endpoints([A, B]).connect(attempts)
    assert (attempts.made, raised.value.back_off_seconds) == (["a"], 30)


BASE = {
    "bridge.id": "b",
    "source.s.type": "stomp",
    "source.s.url": "stomp://127.0.0.1:1",
    "source.s.destinations": "queue:q",
    "routes.r.in.include": "TRUE",
    "routes.r.out.topic": "t",
}


def lines(more: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in {**BASE, **more}.items() if value)


def test_a_source_connects_to_the_backup_and_says_where_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as ended:
        gone = ended.getsockname()[1]
    with closing(Broker("ActiveMQ-Artemis/2.56.0")) as broker:
        urls = {"source.s.url": f"stomp://127.0.0.1:{gone}", "source.s.backup-urls": f"stomp://127.0.0.1:{broker.port}"}
        config = loads(lines(urls))
        source = connector(config.sources[0].type).make_source(SystemEndpoint.of(config, config.sources[0]), 1)
        assert str(gone) in source.address
        source.connect()
        assert str(broker.port) in source.address
        source.close()


@pytest.mark.parametrize(
    ("more", "column", "message"),
    [
        ({"source.s.backup-urls": "stomp://b:1, amqp://c:2"}, 1, "'amqp://c:2' is not a URL like that of the broker"),
        ({"source.s.backup-urls": "stomp://b:1, http://c"}, 0, "'http://c' is not stomp://host:port"),
        ({"source.s.backup-urls": "stomp://b:1,stomp://b:1"}, 0, "'stomp://b:1' is listed twice"),
        ({"source.s.backup-urls": "stomp://b:1,"}, 0, "'' is not stomp://host:port"),
        ({"source.s.url": "", "source.s.backup-urls": "stomp://b:1"}, 0, "the embedded broker has no backup"),
        ({"source.s.backup-urls": "stomp://ann:pw@b:1"}, 0, "a URL holds no user name and no password"),
    ],
)
def test_wrong_backups_are_told(more: Mapping[str, str], column: int, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        loads(lines(more))
    (fault,) = raised.value.faults
    assert message in fault.message
    assert "pw" not in str(raised.value)
    assert fault.column >= column


def test_a_source_of_another_system_has_no_backups() -> None:
    with pytest.raises(ConfigurationError, match=r"'source\.s\.backup-urls' is for type"):
        loads(lines({"source.s.type": "nats", "source.s.url": "nats://a:1", "source.s.backup-urls": "nats://b:1"}))
