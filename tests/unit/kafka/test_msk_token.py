"""Logins by IAM at Amazon MSK: the token to its signature, and where credentials come from."""

from __future__ import annotations

import time
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

from engine.errors import HardFailureError, UnreachableError
from engine.kafka.aws_credentials import AwsCredentials, find_credentials
from engine.kafka.clients import KafkaClients
from engine.kafka.msk_token import msk_region, msk_token
from routes.kafka_access import KafkaAccess
from routes.keys.secrets import Secret
from tests.aws import NOON, SECRET, SIGNED, MetadataService, decoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOWHERE = {"AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.mark.parametrize(("session", "url"), SIGNED)
def test_a_token_is_signed_as_by_the_signer_of_aws(session: str, url: str) -> None:
    token = msk_token("eu-west-1", AwsCredentials("AKIDEXAMPLE", Secret(SECRET), Secret(session)), NOON)
    assert "=" not in token
    assert decoded(token) == url


def test_the_region_is_that_of_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert msk_region("b-1.x.abc.c2.kafka.eu-west-1.amazonaws.com:9098,b-2.y:9098") == "eu-west-1"
    assert msk_region("boot-a.c1.kafka-serverless.ap-south-1.amazonaws.com:9098") == "ap-south-1"
    assert msk_region("proxy:9098") == "us-east-1"
    monkeypatch.delenv("AWS_REGION")
    with pytest.raises(HardFailureError, match="set AWS_REGION"):
        msk_region("proxy:9098")


def test_credentials_of_the_environment_precede_those_of_a_profile(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id=A\naws_secret_access_key=B%\n[other]\naws_access_key_id=C\n")
    given = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}
    assert find_credentials(given) == AwsCredentials("A", Secret("B%"), Secret(""))
    own = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "F", "AWS_SESSION_TOKEN": "G"}
    assert find_credentials(given | own) == AwsCredentials("E", Secret("F"), Secret("G"))
    assert "'F'" not in repr(find_credentials(given | own))
    with pytest.raises(HardFailureError, match="lack a key or its secret"):
        find_credentials(given | {"AWS_PROFILE": "other"})
    with pytest.raises(HardFailureError, match="has no profile 'none'"):
        find_credentials(given | {"AWS_PROFILE": "none"})
    with pytest.raises(HardFailureError, match="there are no credentials for AWS"):
        find_credentials(NOWHERE)


@pytest.fixture
def service() -> Iterator[MetadataService]:
    made = MetadataService()
    yield made
    made.close()


def test_a_machine_has_the_credentials_of_its_role(service: MetadataService, tmp_path: Path) -> None:
    file = {"AWS_SHARED_CREDENTIALS_FILE": "/none"}
    expected = AwsCredentials("A", Secret("B"), Secret("C"))
    assert find_credentials(file | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{service.url}/"}) == expected
    container = file | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{service.url}/container"}
    assert find_credentials(container | {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "let me"}) == expected
    token = tmp_path / "token"
    token.write_text("let me\n")
    assert find_credentials(container | {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}) == expected
    with pytest.raises(HardFailureError, match="HTTP status 401"):
        find_credentials(container)
    service.status = 503
    with pytest.raises(UnreachableError, match="HTTP status 503"):
        find_credentials(file | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url})
    service.close()
    with pytest.raises(UnreachableError, match="does not answer"):
        find_credentials(file | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url})


@pytest.mark.parametrize("role", ["producer", "consumer", "admin"])
def test_every_client_of_python_asks_for_a_token(role: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Event()

    def token(servers: str) -> tuple[str, float]:
        assert servers == "127.0.0.1:1"
        asked.set()
        return "dG9rZW4", time.time() + 900

    monkeypatch.setattr("engine.kafka.clients.new_msk_token", token)
    access = KafkaAccess(
        servers="127.0.0.1:1",
        client_id="b",
        common={"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"},
        producer={},
        consumer={},
        file=tmp_path / "f",
        max_message_bytes=1000,
        outage_timeout_seconds=1.0,
    )
    clients = KafkaClients(access)
    client = {"producer": clients.producer, "consumer": lambda: clients.consumer("g"), "admin": clients.admin}[role]()
    for _ in range(50):
        client.poll(0.1)
        if asked.is_set():
            break
    assert asked.is_set()


def test_the_query_of_a_token_has_its_parts() -> None:
    query = parse_qs(urlsplit(decoded(msk_token("r", AwsCredentials("A", Secret("B"), Secret("")), NOON))).query)
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Expires"] == ["900"]
