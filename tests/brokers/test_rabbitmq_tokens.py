"""Logins to RabbitMQ by access tokens, which are passwords there, and connections that outlive their token."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import LoginEndsError, NotConnectedError, Outgoing
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.message import Message
from engine.openid.access_tokens import access_tokens
from routes.config import loads
from tests.brokers.broker import Protocol
from tests.brokers.rabbitmq import RabbitMq, RabbitMq4, RabbitNode
from tests.token_issuer import CLIENT, SECRET, TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.connectors.base import Sink, Source
    from routes.model import Config

pytestmark = pytest.mark.brokers

RIGHTS = "rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*"
SECONDS = 5
"""Time for which each token holds."""


@pytest.fixture(scope="module")
def issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer() as issuer:
        yield issuer


@pytest.fixture(scope="module", params=[RabbitMq, RabbitMq4])
def broker(
    request: pytest.FixtureRequest, issuer: TokenIssuer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RabbitNode]:
    # The last test of the broker before has changed both.
    access_tokens.cache_clear()
    issuer.claims = {"aud": "rabbitmq"}
    made: RabbitNode = request.param(tmp_path_factory.mktemp("b"))
    made.token_key = issuer.pem
    with made as started:
        yield started


@pytest.fixture
def ends(broker: RabbitNode, issuer: TokenIssuer) -> Iterator[tuple[Source, Sink]]:
    """A source and a sink of one queue, which are not connected."""
    issuer.seconds = SECONDS
    source, sink = made(broker, issuer)
    yield source, sink
    source.close()
    sink.close()


def made(broker: RabbitNode, issuer: TokenIssuer, secret: str = SECRET) -> tuple[Source, Sink]:
    broker.create("orders")
    config = configured(broker, issuer, secret)
    system = connector(config.sources[0].type)
    source = system.make_source(SystemEndpoint.of(config, config.sources[0]), 1)
    return source, system.make_sink(SystemEndpoint.of(config, config.sinks[0]), 1)


def configured(broker: RabbitNode, issuer: TokenIssuer, secret: str) -> Config:
    settings = broker.settings(Protocol.AMQP)
    keys = {key: settings[key] for key in (".type", ".url", ".heartbeat")} | {
        ".oauthbearer.issuer": issuer.url,
        ".oauthbearer.client.id": CLIENT,
        ".oauthbearer.client.secret": secret,
        ".oauthbearer.scope": RIGHTS,
    }
    lines = [f"{each}{key}={text}" for each in ("source.s", "sink.o") for key, text in keys.items()]
    own = ("bridge.id=b", "source.s.destinations=queue:orders", "routes.a.in.include=TRUE")
    return loads("\n".join((*own, "routes.a.out.topic=o:queue/orders", *lines)))


class Sending:
    """Messages that a sink sends, as its loop does: what a lost connection left in doubt is sent again."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.left: dict[int, Outgoing] = {}
        self.sent = 0
        self.logins = 0
        self.doubtful = 0
        self._is_connected = False

    def go_on(self, *, more: bool) -> None:
        """Sends a message more, and takes outcomes."""
        try:
            if not self._is_connected:
                self.sink.connect()
                self._is_connected = True
                self.logins += 1
                self.sink.send(list(self.left.values()))
            if more and len(self.left) < self.sink.most_under_way:
                self.sent += 1
                self.left[self.sent] = Outgoing(self.sent, Message(b"%d" % self.sent), "queue/orders", str(self.sent))
                self.sink.send([self.left[self.sent]])
            for outcome in self.sink.outcomes(0.01):
                assert outcome.refusal is None
                del self.left[outcome.number]
        except NotConnectedError as error:
            self.doubtful += 0 if isinstance(error, LoginEndsError) else 1
            self.sink.close()
            self._is_connected = False


class Receiving:
    """Messages that a source receives, as its loop does."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[bytes] = []
        self.logins = 0
        self.doubtful = 0
        self._is_connected = False

    def go_on(self) -> None:
        """Takes a message, and acknowledges it."""
        try:
            if not self._is_connected:
                self.source.connect()
                self._is_connected = True
                self.logins += 1
            if (delivery := self.source.receive(0.01)) is not None:
                self.found.append(delivery.message.body)
                self.source.acknowledge([delivery.token])
        except NotConnectedError as error:
            self.doubtful += 0 if isinstance(error, LoginEndsError) else 1
            self.source.close()
            self._is_connected = False


def test_connections_outlive_their_tokens_and_nothing_is_lost_or_comes_twice(ends: tuple[Source, Sink]) -> None:
    receiving, sending = Receiving(ends[0]), Sending(ends[1])
    end = time.monotonic() + 3.5 * SECONDS
    while time.monotonic() < end:
        sending.go_on(more=True)
        receiving.go_on()
    end = time.monotonic() + 20
    while time.monotonic() < end and (sending.left or len(receiving.found) < sending.sent):
        sending.go_on(more=False)
        receiving.go_on()
    assert receiving.found == [b"%d" % number for number in range(1, sending.sent + 1)]
    assert sending.sent > 50
    assert (sending.doubtful, receiving.doubtful) == (0, 0), "each connection ended before its token did"
    assert min(sending.logins, receiving.logins) > 3


def test_the_doctor_says_that_a_sink_may_send_twice(broker: RabbitNode, issuer: TokenIssuer) -> None:
    issuer.seconds, config = 100, configured(broker, issuer, SECRET)
    endpoint, system = SystemEndpoint.of(config, config.sinks[0]), connector(config.sinks[0].type)
    assert "takes the login" in system.check_connection(endpoint, "doctor")
    ((found, remedy),) = system.doubts(endpoint)
    assert found == f"messages may come twice after a crash: RabbitMQ {broker.version} drops no duplicates"
    assert remedy.startswith("set sink.o.accept-duplicates=true")


def test_a_token_without_rights_or_a_wrong_secret_is_told(broker: RabbitNode, issuer: TokenIssuer) -> None:
    source, sink = made(broker, issuer, "guessed-wrong")
    for end in (source, sink):
        with pytest.raises(NotConnectedError, match="wrong id or secret") as raised:
            end.connect()
        assert raised.value.back_off_seconds == 30
        assert "guessed-wrong" not in str(raised.value)
    # Else the token of the test before serves on.
    access_tokens.cache_clear()
    issuer.claims = {"aud": "another"}
    issuer.seconds = 100
    with pytest.raises(NotConnectedError, match="the broker refuses the access token of the client 'bridge'"):
        made(broker, issuer, SECRET)[0].connect()
