"""Logins by tokens of an OpenID Connect server, by both kinds of clients, against a real Kafka that checks tokens."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AclOperation

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from engine.kafka.errors import KafkaUnavailableError
from engine.spark.failures import failure_of
from routes.config import loads
from tests.token_issuer import CLIENT, SECRET, TokenIssuer
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from routes.model import Config
    from tests.integration.topics.conftest import JavaClient, SecuredKafka


@pytest.fixture
def issuer(secured_kafka: SecuredKafka) -> Iterator[TokenIssuer]:
    """The issuer, as it was before each test."""
    issuer = secured_kafka.issuer
    issuer.given.clear()
    yield issuer
    issuer.seconds, issuer.skew_seconds, issuer.is_away = 3600.0, 0.0, False


def configure(kafka: SecuredKafka, *lines: str, secret: str = SECRET) -> Config:
    login = [f"kafka.sasl.oauthbearer.client.id={CLIENT}", f"kafka.sasl.oauthbearer.client.secret={secret}"]
    if any("jaas" in line for line in lines):
        login = []
    start = ["bridge.id=b", f"kafka.bootstrap.servers={kafka.tokens}", "kafka.security.protocol=SASL_PLAINTEXT"]
    route = ["kafka.sasl.mechanism=OAUTHBEARER", "routes.r.in.include=TRUE", "routes.r.out.topic=t"]
    return loads("\n".join([*start, *route, *login, *lines]))


def spellings(issuer: TokenIssuer) -> list[tuple[str, ...]]:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    options = f'clientId="{CLIENT}" clientSecret="{SECRET}" scope="kafka" extension_traceId="1"'
    return [
        (f"kafka.sasl.oauthbearer.issuer={issuer.url}", "kafka.sasl.oauthbearer.scope=kafka"),
        (
            f"kafka.sasl.oauthbearer.token.endpoint.url={issuer.url}/token",
            "kafka.sasl.oauthbearer.method=oidc",
            "kafka.sasl.oauthbearer.scope=kafka",
            "kafka.sasl.oauthbearer.extensions=traceId=1",
        ),
        (f"kafka.sasl.oauthbearer.issuer={issuer.url}/", f"kafka.sasl.jaas.config={module} {options};"),
    ]


@pytest.mark.parametrize("number", range(3))
def test_each_spelling_logs_both_clients_in(
    secured_kafka: SecuredKafka, java: JavaClient, issuer: TokenIssuer, number: int
) -> None:
    topic = secured_kafka.create(f"orders-{uuid.uuid4().hex[:8]}", AclOperation.DESCRIBE)
    config = configure(secured_kafka, *spellings(issuer)[number])
    assert topic in Cluster(KafkaClients(config.kafka_access), 30).names()
    assert topic in java.topics(config).split()
    assert issuer.given == ["kafka", "kafka"]


def test_a_token_is_replaced_before_it_expires(secured_kafka: SecuredKafka, issuer: TokenIssuer) -> None:
    topic = secured_kafka.create(f"orders-{uuid.uuid4().hex[:8]}", AclOperation.WRITE)
    # A fifth of it is left when the next one comes. Kafka lets no client log in again within a second.
    issuer.seconds = 8.0
    config = configure(secured_kafka, f"kafka.sasl.oauthbearer.issuer={issuer.url}")
    errors: list[KafkaError] = []
    client = KafkaClients(config.kafka_access).producer({"error_cb": errors.append})

    def written() -> int:
        client.produce(topic, b"x", on_delivery=lambda error, _: errors.extend([error] if error else []))
        assert client.flush(20) == 0, errors
        return len(issuer.given)

    until(lambda: written() >= 3, seconds=60)
    assert [
        error.str() for error in errors if error.code() in (KafkaError._AUTHENTICATION, KafkaError._MSG_TIMED_OUT)
    ] == []


@pytest.mark.parametrize("skew", [-600.0, 600.0])
def test_a_clock_that_differs_from_the_issuers_is_no_reason_to_fail(
    secured_kafka: SecuredKafka, java: JavaClient, issuer: TokenIssuer, skew: float
) -> None:
    issuer.skew_seconds = skew
    config = configure(secured_kafka, f"kafka.sasl.oauthbearer.issuer={issuer.url}")
    assert Cluster(KafkaClients(config.kafka_access), 30).names() is not None
    assert "Exception" not in java.topics(config)


def test_a_wrong_secret_is_refused_with_what_to_correct(
    secured_kafka: SecuredKafka, java: JavaClient, issuer: TokenIssuer
) -> None:
    config = configure(secured_kafka, f"kafka.sasl.oauthbearer.issuer={issuer.url}", secret="guessed-wrong")
    with pytest.raises(HardFailureError) as raised:
        Cluster(KafkaClients(config.kafka_access), 20)
    assert "check kafka.sasl.*" in str(raised.value)
    assert "guessed-wrong" not in str(raised.value)
    refused = failure_of([("javax.security.auth.login.LoginException", java.topics(config, 5_000))])
    assert isinstance(refused, HardFailureError)
    assert "guessed-wrong" not in str(refused)


def test_an_issuer_that_is_away_is_named(secured_kafka: SecuredKafka, java: JavaClient, issuer: TokenIssuer) -> None:
    away = configure(secured_kafka, "kafka.sasl.oauthbearer.issuer=http://127.0.0.1:1/realm")
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/realm/\.well-known"):
        Cluster(KafkaClients(away.kafka_access), 5)
    config = configure(secured_kafka, f"kafka.sasl.oauthbearer.token.endpoint.url={issuer.url}/token")
    issuer.is_away = True
    with pytest.raises(UnreachableError, match="token"):
        Cluster(KafkaClients(config.kafka_access), 5)
    said = java.topics(config, 5_000)
    assert "LoginException" in said
    assert isinstance(failure_of([("javax.security.auth.login.LoginException", said)]), KafkaUnavailableError)
    issuer.is_away = False
    assert Cluster(KafkaClients(config.kafka_access), 30).names() is not None
