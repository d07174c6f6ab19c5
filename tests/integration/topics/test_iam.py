"""Logins by IAM, by both kinds of clients, against a real Kafka that has the signature of each token checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.clients import KafkaClients
from engine.kafka.cluster import Cluster
from routes.config import loads
from tests.aws import REGION
from tests.integration.router.bench import Bench, RouterProcess
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.aws import MetadataService
    from tests.integration.topics.conftest import JavaClient, SecuredKafka

LOGIN = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "AWS_MSK_IAM"}


@pytest.fixture
def aws(secured_kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[MetadataService]:
    """The service that gives credentials to this process and those that it starts."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/none")
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", secured_kafka.aws.url)
    secured_kafka.aws.clients.clear()
    yield secured_kafka.aws
    secured_kafka.aws.status = 200


@pytest.fixture
def bench(tmp_path: Path, secured_kafka: SecuredKafka) -> Iterator[Bench[RouterProcess]]:
    made = Bench(tmp_path, secured_kafka.bootstrap, secured_kafka.fresh, RouterProcess)
    yield made
    made.close()


def test_a_router_logs_in_and_gets_new_tokens_while_it_runs(
    bench: Bench[RouterProcess], secured_kafka: SecuredKafka, aws: MetadataService
) -> None:
    bench.send(4)
    # Java's clients then get a new token after five seconds in place of twelve minutes.
    early = {"kafka.sasl.login.refresh.buffer.seconds": "895", "kafka.sasl.login.refresh.min.period.seconds": "1"}
    router = bench.start(**{"kafka.bootstrap.servers": secured_kafka.iam}, **LOGIN, **early).wait_ready(240)
    assert bench.wait_numbers(4) == dict.fromkeys(range(4), 1)
    assert any(name.startswith("Python-urllib/") for name in aws.clients)
    before = [name.startswith("Java-http-client/") for name in aws.clients].count(True)
    assert before > 0
    until(lambda: [name.startswith("Java-http-client/") for name in aws.clients].count(True) >= before + 2, seconds=60)
    bench.send(4)
    assert bench.wait_numbers(8) == dict.fromkeys(range(8), 1)
    assert router.stop() == 0


def test_credentials_that_are_away_or_wrong_are_named(
    secured_kafka: SecuredKafka, java: JavaClient, aws: MetadataService, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [f"{name}={value}" for name, value in LOGIN.items()]
    route = ["bridge.id=b", f"kafka.bootstrap.servers={secured_kafka.iam}", "routes.r.in.include=TRUE"]
    config = loads("\n".join([*route, "routes.r.out.topic=t", *lines]))
    aws.status = 503
    with pytest.raises(UnreachableError, match="HTTP status 503"):
        Cluster(KafkaClients(config.kafka_access), 5)
    aws.status = 200
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed-wrong")
    with pytest.raises(HardFailureError, match="refuses the login") as raised:
        Cluster(KafkaClients(config.kafka_access), 5)
    assert "guessed-wrong" not in str(raised.value)
    assert "guessed-wrong" not in java.topics(config, 5_000)
