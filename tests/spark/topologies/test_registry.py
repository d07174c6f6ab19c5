"""The client of the schema registry: logins, TLS, servers that are away, and what it says of refusals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from engine.embedded import free_ports
from engine.schemas.jvm_registry import jvm_registry
from engine.schemas.section import SchemaConfig
from routes.keys.token_login import TokenLogin
from tests.certificates import certify
from tests.registry_server import RegistryServer, registry_server
from tests.token_issuer import CLIENT, TokenIssuer
from tests.token_issuer import SECRET as CLIENT_SECRET

SCHEMA = (200, {"schema": '"string"'})
PATH = "/schemas/ids/7"
SECRET = "s3cret-of-the-registry"
NO_TOKENS = TokenLogin()


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        server.answers[PATH] = [SCHEMA]
        yield server


def client(
    spark: SparkSession,
    *urls: str,
    login: tuple[str | None, ...] = (None,) * 3,
    files: Any = (None,) * 3,
    copies: str | None = None,
    tokens: TokenLogin = NO_TOKENS,
) -> Any:
    username, password, token = login
    ca, certificate, key = (None if file is None else Path(file) for file in files)
    config = SchemaConfig(
        urls=urls,
        username=username,
        password=password,
        token=token,
        tokens=tokens,
        ca=ca,
        certificate=certificate,
        key=key,
        timeout_seconds=2,
        outage_timeout_seconds=2,
        copies=None if copies is None else Path(copies),
    )
    return jvm_registry(config, spark)


def refusal(registry: Any) -> str:
    with pytest.raises(Py4JJavaError) as raised:
        registry.schema("AVRO", 7)
    return str(raised.value.java_exception.getMessage())


@pytest.mark.parametrize(
    ("login", "header"),
    [
        ((None, None, None), None),
        (("ann", "pässword", None), "Basic YW5uOnDDpHNzd29yZA=="),
        ((None, None, "abc"), "Bearer abc"),
    ],
)
def test_the_login_goes_with_each_request(
    spark: SparkSession, server: RegistryServer, login: tuple[str | None, ...], header: str | None
) -> None:
    assert client(spark, server.url, login=login).schema("AVRO", 7).text() == '"string"'
    assert [each.login for each in server.asked] == [header]


def test_a_schema_is_asked_for_once(spark: SparkSession, server: RegistryServer) -> None:
    registry = client(spark, server.url)
    assert registry.schema("AVRO", 7).text() == registry.schema("AVRO", 7).text()
    assert len(server.asked) == 1


def test_the_next_server_answers_for_one_that_is_away(spark: SparkSession, server: RegistryServer) -> None:
    (gone,) = free_ports(1)
    with registry_server() as busy:
        busy.answers[PATH] = [(503, {})]
        registry = client(spark, f"http://127.0.0.1:{gone}", busy.url, server.url)
        assert registry.schema("AVRO", 7).text() == '"string"'
        server.answers["/schemas/ids/8"] = [SCHEMA]
        registry.schema("AVRO", 8)
        assert len(busy.asked) == 1, "the server that has answered is asked first"


def test_a_server_that_is_busy_is_asked_again(spark: SparkSession, server: RegistryServer) -> None:
    server.answers[PATH] = [(429, {}), (500, {}), SCHEMA]
    assert client(spark, server.url).schema("AVRO", 7).text() == '"string"'
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "hint"),
    [(401, "check schema.registry.username"), (403, "schema.registry.token"), (302, "refuses /schemas/ids/7: 302")],
)
def test_a_refusal_is_final_and_shows_no_secret(
    spark: SparkSession, server: RegistryServer, status: int, hint: str
) -> None:
    server.answers[PATH] = [(status, {"message": "no"})]
    told = refusal(client(spark, server.url, login=("ann", SECRET, None)))
    assert hint in told
    assert SECRET not in told
    assert len(server.asked) == 1


def running(spark: SparkSession, registry: Any) -> Any:
    """The registry as the tasks of this process have it."""
    jvm: Any = spark._jvm
    return jvm.org.apache.commons.lang3.SerializationUtils.clone(registry)


def fault(registry: Any, number: int) -> tuple[str, str]:
    """Class and text of what is thrown for an id."""
    with pytest.raises(Py4JJavaError) as raised:
        registry.schema("AVRO", number)
    thrown = raised.value.java_exception
    return thrown.getClass().getSimpleName(), str(thrown.getMessage())


@pytest.mark.parametrize("status", [302, 400, 401, 403, 422, 500, 502, 0, 200])
def test_an_id_that_gets_no_good_answer_is_at_fault_alone_while_others_work(
    spark: SparkSession, server: RegistryServer, status: int
) -> None:
    path = "/schemas/ids/8"
    server.answers[path] = [(status, {"message": "no"})]
    if status in (0, 200):
        (server.stalling if status else server.hanging).add(path)
    registry = running(spark, client(spark, server.url))
    kind, told = fault(registry, 8)
    assert kind == "UnfitValueException"
    assert ("request timed out" if status in (0, 200) else str(status)) in told
    asked = [each.path for each in server.asked].count(path)
    assert fault(registry, 8) == (kind, told)
    assert [each.path for each in server.asked].count(path) == asked, "the answer is kept"
    assert registry.schema("AVRO", 7).text() == '"string"'


@pytest.mark.parametrize("status", [302, 401, 500, 503])
def test_a_registry_that_answers_nothing_well_is_away_and_is_waited_for(
    spark: SparkSession, server: RegistryServer, status: int
) -> None:
    jvm: Any = spark._jvm
    registry = running(spark, client(spark, server.url))
    registry.schema("AVRO", 7)
    server.answers["/schemas/ids/8"] = [SCHEMA]
    server.fault = (status, {"message": "no"})
    kind, told = fault(registry, 8)
    assert kind == "RegistryOutageException"
    assert f"answers {status}" in told
    troubles = jvm.jmsbridge.serdes.HttpRegistry.troubles
    assert troubles() == f"waiting for the schema registry: {server.url} answers {status}"
    server.fault = None
    assert registry.schema("AVRO", 8).text() == '"string"'
    assert troubles() == ""


def test_unknown_ids_are_asked_for_together_and_once(spark: SparkSession, server: RegistryServer) -> None:
    jvm: Any = spark._jvm
    server.delay_seconds = 0.04
    server.answers["/schemas/ids/3000"] = [SCHEMA]
    registry = running(spark, client(spark, server.url))
    ids = jvm.java.util.ArrayList()
    for number in range(1_000, 3_001):
        ids.add(number)
    begun = time.monotonic()
    registry.expect("AVRO", ids)
    # The last one is asked for behind all others.
    assert registry.schema("AVRO", 3_000).text() == '"string"'
    taken = time.monotonic() - begun
    for number in range(1_000, 3_000, 50):
        assert fault(registry, number)[0] == "UnfitValueException"
    paths = [each.path for each in server.asked]
    assert len(paths) == len(set(paths)) == 2_001
    assert 8 < server.most_at_once <= 32
    # One after the other they would take 80 s; more than a thousand a second are not asked for.
    assert 2 < taken < 40
    assert fault(registry, 1_000)[0] == "UnfitValueException"
    assert len(server.asked) == 2_001


def test_an_unknown_id_is_a_value_that_does_not_fit(spark: SparkSession, server: RegistryServer) -> None:
    del server.answers[PATH]
    assert refusal(client(spark, server.url)) == "the schema registry knows no schema with the id 7"


def test_schemas_that_a_schema_refers_to_are_fetched(spark: SparkSession, server: RegistryServer) -> None:
    refers = {"name": "Money", "subject": "money-value", "version": 3}
    server.answers[PATH] = [(200, {"schema": '{"type": "record", "name": "R", "fields": []}', "references": [refers]})]
    server.answers["/subjects/money-value/versions/3"] = [(200, {"id": 4, "schema": '"double"'})]
    (reference,) = client(spark, server.url).schema("AVRO", 7).references()
    assert (reference.name(), reference.schema().text()) == ("Money", '"double"')


def test_tls_with_the_certificates_of_both_sides(spark: SparkSession, tmp_path: Path) -> None:
    made = certify(tmp_path / "made")
    with registry_server(made) as server:
        server.answers[PATH] = [SCHEMA]
        ours = (str(made / "ca.pem"), str(made / "bridge.pem"), str(made / "bridge.key"))
        assert client(spark, server.url, files=ours).schema("AVRO", 7).text() == '"string"'
        unknown = (str(made / "ca.pem"), str(made / "stranger.pem"), str(made / "stranger.key"))
        assert "the schema registry has been away" in refusal(client(spark, server.url, files=unknown))


@pytest.fixture
def issuer(server: RegistryServer) -> Iterator[TokenIssuer]:
    """An issuer whose last token alone the registry takes."""
    with TokenIssuer() as issuer:
        server.admits = lambda login: bool(issuer.tokens) and login == f"Bearer {issuer.tokens[-1]}"
        yield issuer


def of(issuer: TokenIssuer, secret: str = CLIENT_SECRET) -> TokenLogin:
    return TokenLogin(issuer=issuer.url, client_id=CLIENT, secret=secret)


def test_tokens_are_renewed_before_they_expire_and_when_they_are_refused(
    spark: SparkSession, server: RegistryServer, issuer: TokenIssuer
) -> None:
    issuer.methods = ["client_secret_post"]
    for number in (8, 9, 10):
        server.answers[f"/schemas/ids/{number}"] = [SCHEMA]
    registry = client(spark, server.url, tokens=of(issuer))
    registry.schema("AVRO", 7)
    registry.schema("AVRO", 8)
    assert len(issuer.tokens) == 1
    issuer.tokens.append("another")
    issuer.seconds = 1
    registry.schema("AVRO", 9)
    assert [each.path for each in server.asked].count("/schemas/ids/9") == 2
    time.sleep(1)
    issuer.claims = {"jti": "4"}
    registry.schema("AVRO", 10)
    assert [each.path for each in server.asked].count("/schemas/ids/10") == 1
    assert server.asked[-1].login == f"Bearer {issuer.tokens[3]}"
    assert issuer.tokens[3] != issuer.tokens[2]


def test_a_wrong_secret_ends_the_start_and_is_not_shown(
    spark: SparkSession, server: RegistryServer, issuer: TokenIssuer
) -> None:
    registry = client(spark, server.url, tokens=of(issuer, "guessed-wrong"))
    told = refusal(registry)
    assert "HTTP status 401 (wrong id or secret); check schema.registry.username" in told
    assert told.endswith("schema.registry.oauthbearer.*")
    assert "guessed-wrong" not in told + str(registry)
    assert server.asked == []


def test_a_refusal_in_several_lines_is_told_in_one(
    spark: SparkSession, server: RegistryServer, issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = replace(of(issuer), issuer=None, endpoint=f"{issuer.url}/token")
    why = "invalid client secret\r\nTrace ID: 1\x1b[2J\r\n" + "x" * 300
    monkeypatch.setattr(issuer, "answer", lambda *_: (401, {"error_description": why}))
    told = refusal(client(spark, server.url, tokens=tokens))
    assert "HTTP status 401 (invalid client secret Trace ID: 1 [2J xxx" in told
    assert "\n" not in told


def test_a_task_waits_for_an_issuer_that_is_away(
    spark: SparkSession, server: RegistryServer, issuer: TokenIssuer
) -> None:
    jvm: Any = spark._jvm
    registry = running(spark, client(spark, server.url, tokens=of(issuer)))
    issuer.is_away = True
    kind, told = fault(registry, 7)
    assert (kind, "the issuer of tokens does not answer" in told) == ("RegistryOutageException", True)
    assert "HTTP status 503" in jvm.jmsbridge.serdes.HttpRegistry.troubles()
    issuer.is_away = False
    assert registry.schema("AVRO", 7).text() == '"string"'
