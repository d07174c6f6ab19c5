"""Logins of Java's clients by IAM: the token is that of Python's signer, and so are the places of credentials."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException

from tests.aws import NOON, REGION, SECRET, SIGNED, MetadataService, decoded

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NOWHERE = {"AWS_SHARED_CREDENTIALS_FILE": "/none"}


def found(spark: SparkSession, environment: dict[str, str]) -> tuple[str, str, str]:
    jvm: Any = spark._jvm
    variables = jvm.java.util.HashMap()
    for name, value in environment.items():
        variables.put(name, value)
    credentials = jvm.jmsbridge.msk.AwsCredentials.find(variables)
    assert str(credentials.secretKey()) not in str(credentials.toString())
    return credentials.accessKey(), credentials.secretKey(), credentials.sessionToken()


@pytest.mark.parametrize(("session", "url"), SIGNED, ids=["user", "role"])
def test_a_token_is_signed_as_by_the_signer_of_aws(spark: SparkSession, session: str, url: str) -> None:
    jvm: Any = spark._jvm
    credentials = jvm.jmsbridge.msk.AwsCredentials("AKIDEXAMPLE", SECRET, session)
    token = jvm.jmsbridge.msk.MskToken.signed(REGION, credentials, int(NOON * 1000))
    assert decoded(token.value()) == url
    assert token.lifetimeMs() == (NOON + 900) * 1000
    assert token.value() not in token.toString()


def test_credentials_are_found_where_python_finds_them(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "# mine\n[other]\naws_access_key_id=C\n[default]\naws_access_key_id = A\naws_secret_access_key: B%=\n"
    )
    given = {"AWS_SHARED_CREDENTIALS_FILE": str(file)}
    assert found(spark, given) == ("A", "B%=", "")
    own = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "F", "AWS_SESSION_TOKEN": "G"}
    assert found(spark, given | own) == ("E", "F", "G")
    token = tmp_path / "token"
    token.write_text("let me\n")
    with closing(MetadataService()) as service:
        assert found(spark, NOWHERE | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{service.url}/"}) == ("A", "B", "C")
        container = NOWHERE | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{service.url}/container"}
        assert found(spark, container | {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}) == ("A", "B", "C")
        with pytest.raises(Py4JJavaError, match="HTTP status 401"):
            found(spark, container)
    with pytest.raises(Py4JJavaError, match="does not answer"):
        found(spark, NOWHERE | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": service.url})


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"AWS_EC2_METADATA_DISABLED": "true"}, "there are no credentials for AWS"),
        ({"AWS_PROFILE": "none"}, "has no profile 'none'"),
        ({"AWS_ACCESS_KEY_ID": "E"}, "lack a key or its secret"),
    ],
    ids=["nowhere", "no profile", "no secret"],
)
def test_missing_credentials_are_named(spark: SparkSession, environment: dict[str, str], message: str) -> None:
    with pytest.raises(IllegalArgumentException, match=message):
        found(spark, NOWHERE | environment)
