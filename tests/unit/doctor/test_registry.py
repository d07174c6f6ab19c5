"""What the doctor says of a schema registry, and what a configuration of one may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.doctor.checks import Finding, Severity
from engine.doctor.registry import check_registry
from engine.embedded import free_ports
from engine.schemas.section import SchemaConfig
from routes import config as configuration
from routes.errors import ConfigurationError
from tests.certificates import certify
from tests.registry_server import registry_server
from tests.token_issuer import CLIENT, SECRET, TokenIssuer

TYPES = "/schemas/types"
TOKENS = {
    "oauthbearer.issuer": "https://i.example",
    "oauthbearer.client.id": "b",
    "oauthbearer.client.secret": "secret-of-b",
}
LINES = {
    "bridge.id": "b",
    "kafka.bootstrap.servers": "127.0.0.1:1",
    "routes.r.in.include": "TRUE",
    "routes.r.out.topic": "t",
}


def written(folder: Path, lines: dict[str, str]) -> Path:
    file = folder / "b.properties"
    given = LINES | {f"schema.registry.{name}": text for name, text in lines.items()}
    file.write_text("".join(f"{key}={text}\n" for key, text in given.items()))
    return file


def findings(folder: Path, **lines: str) -> list[Finding]:
    given = {name.replace("_", "."): text for name, text in lines.items()}
    return list(check_registry(configuration.load(written(folder, given)).section(SchemaConfig), 2))


def test_a_registry_that_answers_is_in_order(tmp_path: Path) -> None:
    with registry_server() as server:
        server.answers[TYPES] = [(200, ["AVRO", "PROTOBUF"])]
        (found,) = findings(tmp_path, url=server.url, username="ann", password="secret-of-ann")
        assert (found.state, found.found) == (Severity.OK, f"{server.url} keeps schemas of AVRO, PROTOBUF")
        assert server.asked[0].login == "Basic YW5uOnNlY3JldC1vZi1hbm4="


def test_each_server_is_looked_at(tmp_path: Path) -> None:
    (gone,) = free_ports(1)
    with registry_server() as server:
        server.answers[TYPES] = [(401, {})]
        away, refusing = findings(tmp_path, url=f"http://127.0.0.1:{gone}, {server.url}", token="secret-token")
        assert (away.state, refusing.state) == (Severity.FAILED, Severity.FAILED)
        assert "refused" in away.found
        assert "does not take the login (401)" in refusing.found
        assert "secret-token" not in refusing.found


@pytest.mark.parametrize("answer", [(200, {"not": "a list"}), (404, {})])
def test_another_server_is_no_registry(tmp_path: Path, answer: tuple[int, object]) -> None:
    with registry_server() as server:
        server.answers[TYPES] = [answer]
        (found,) = findings(tmp_path, url=server.url)
        assert found.state is Severity.FAILED


def test_certificates_of_both_sides_are_used(tmp_path: Path) -> None:
    made = certify(tmp_path / "made")
    files = {"tls_ca": "made/ca.pem", "tls_certificate": "made/bridge.pem", "tls_key": "made/bridge.key"}
    with registry_server(made) as server:
        server.answers[TYPES] = [(200, ["AVRO"])]
        (found,) = findings(tmp_path, url=server.url, **files)
        assert found.state is Severity.OK
        (stranger,) = findings(tmp_path, url=server.url, tls_ca="made/stranger.pem")
        assert stranger.state is Severity.FAILED


def test_the_login_by_tokens_is_looked_at(tmp_path: Path) -> None:
    with registry_server() as server, TokenIssuer() as issuer:
        server.answers[TYPES] = [(200, ["AVRO"])]
        server.admits = lambda login: bool(issuer.tokens) and login == f"Bearer {issuer.tokens[-1]}"
        lines = {"url": server.url, "oauthbearer_issuer": issuer.url, "oauthbearer_client_id": CLIENT}
        (found,) = findings(tmp_path, **lines, oauthbearer_client_secret=SECRET)
        assert found.state is Severity.OK
        (wrong,) = findings(tmp_path, **lines, oauthbearer_client_secret="guessed-wrong")
        assert wrong.state is Severity.FAILED
        assert "wrong id or secret" in wrong.found
        assert wrong.remedy == (
            "correct schema.registry.oauthbearer.client.id or schema.registry.oauthbearer.client.secret"
        )
        assert "guessed-wrong" not in wrong.found
        issuer.is_away = True
        (away,) = findings(tmp_path, **lines, oauthbearer_client_secret=SECRET, oauthbearer_scope="new")
        assert away.state is Severity.FAILED
        assert "the issuer of tokens does not answer" in away.found


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ({"oauthbearer.client.id": "b", "oauthbearer.client.secret": "x" * 9}, "needs an address to get them from"),
        (
            {**TOKENS, "oauthbearer.token.endpoint.url": "https://i/token"},
            "schema.registry.oauthbearer.issuer and schema.registry.oauthbearer.token.endpoint.url are both set",
        ),
        ({"oauthbearer.issuer": "https://i"}, "a login by tokens needs schema.registry.oauthbearer.client.id"),
        ({"oauthbearer.issuer": "http://i.example"}, "'http://i.example' is not https"),
        ({**TOKENS, "oauthbearer.ca": "missing.pem"}, "there is no file 'missing.pem'"),
        ({**TOKENS, "token": "y" * 9}, "two ways to log in"),
        ({"bearer.auth.logical.cluster": "lsrc-1"}, "has no effect without a token"),
        ({"username": "ann"}, "a login without schema.registry.password"),
        ({"password": "x" * 9}, "a login without schema.registry.username"),
        ({"username": "ann", "password": "x" * 9, "token": "y" * 9}, "two ways to log in"),
        ({"username": "a:b", "password": "x" * 9}, "a user name with a colon"),
        ({"tls.key": "missing.key"}, "there is no file 'missing.key'"),
        ({"url": "http://ann:x@127.0.0.1:8081"}, "a URL holds no user name and no password"),
        ({"url": "http://127.0.0.1:8081, ftp://127.0.0.1:1"}, "'ftp://127.0.0.1:1' is not http://host:port"),
        ({"url": "http://127.0.0.1:99999"}, "99999"),
    ],
)
def test_a_wrong_configuration_is_named(tmp_path: Path, lines: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        configuration.load(written(tmp_path, {"url": "http://127.0.0.1:8081"} | lines))
    assert message in str(raised.value)


def test_a_login_without_an_address_has_no_effect(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        configuration.load(written(tmp_path, {"token": "y" * 9}))
    assert "'schema.registry.token' has no effect without a registry" in str(raised.value)
