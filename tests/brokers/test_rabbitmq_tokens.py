"""Logins to RabbitMQ by access tokens, which are passwords there, and connections that outlive their token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.connectors.base import NotConnectedError
from engine.connectors.endpoint import SystemEndpoint
from engine.connectors.system import connector
from engine.openid.access_tokens import access_tokens
from tests.brokers.broker import Protocol
from tests.brokers.rabbitmq import RabbitMq, RabbitMq4, RabbitNode
from tests.brokers.token_logins import SECONDS, check_refused_client, check_renewals, configured, ends_of, login
from tests.token_issuer import TokenIssuer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.connectors.base import Sink, Source

pytestmark = pytest.mark.brokers

RIGHTS = "rabbitmq.read:*/* rabbitmq.write:*/* rabbitmq.configure:*/*"


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
        started.create("orders")
        yield started


@pytest.fixture
def ends(broker: RabbitNode, issuer: TokenIssuer) -> Iterator[tuple[Source, Sink]]:
    """A source and a sink of one queue, which are not connected."""
    issuer.seconds = SECONDS
    source, sink = ends_of(configured({**keys(broker), **login(issuer)}))
    yield source, sink
    source.close()
    sink.close()


def keys(broker: RabbitNode) -> Mapping[str, str]:
    settings = broker.settings(Protocol.AMQP)
    return {key: settings[key] for key in (".type", ".url")} | {".oauthbearer.scope": RIGHTS}


def test_connections_outlive_their_tokens_and_nothing_is_lost_or_comes_twice(ends: tuple[Source, Sink]) -> None:
    check_renewals(*ends)


def test_the_doctor_says_that_a_sink_may_send_twice(broker: RabbitNode, issuer: TokenIssuer) -> None:
    issuer.seconds, config = 100, configured({**keys(broker), **login(issuer)})
    endpoint, system = SystemEndpoint.of(config, config.sinks[0]), connector(config.sinks[0].type)
    assert "takes the login" in system.check_connection(endpoint, "doctor")
    ((found, remedy),) = system.doubts(endpoint)
    assert found == f"messages may come twice after a crash: RabbitMQ {broker.version} drops no duplicates"
    assert remedy.startswith("set sink.o.accept-duplicates=true")


def test_a_wrong_secret_is_told(broker: RabbitNode, issuer: TokenIssuer) -> None:
    check_refused_client(keys(broker), issuer)


def test_a_token_without_rights_is_told(broker: RabbitNode, issuer: TokenIssuer) -> None:
    # Else the token of the test before serves on.
    access_tokens.cache_clear()
    issuer.claims = {"aud": "another"}
    issuer.seconds = 100
    source, _ = ends_of(configured({**keys(broker), **login(issuer)}))
    with pytest.raises(NotConnectedError, match="the broker refuses the access token of the client 'bridge'") as raised:
        source.connect()
    assert issuer.tokens[-1] not in str(raised.value)
