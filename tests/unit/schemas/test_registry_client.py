"""The client of the schema registry for commands: logins, servers that are away, copies, and what it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.embedded import free_ports
from engine.errors import HardFailureError, UnreachableError
from engine.schemas.copies import SchemaCopies
from engine.schemas.registry import RegistryClient
from engine.schemas.schema_text import RegisteredSchema, SchemaReference
from engine.schemas.section import SchemaConfig
from routes.keys.token_login import TokenLogin
from routes.predicate.bodies import UnreadableBodyError
from tests.certificates import certify
from tests.registry_server import RegistryServer, registry_server
from tests.token_issuer import CLIENT, TokenIssuer
from tests.token_issuer import SECRET as CLIENT_SECRET

PATH = "/schemas/ids/7"
STRING = RegisteredSchema("AVRO", '"string"')
SECRET = "s3cret-of-the-registry"


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with registry_server() as server:
        server.answers[PATH] = [(200, {"schema": '"string"'})]
        yield server


def config(*urls: str, copies: Path | None = None) -> SchemaConfig:
    return SchemaConfig(urls=urls, copies=copies, timeout_seconds=0.5)


def test_a_schema_is_asked_for_once_with_the_login(server: RegistryServer) -> None:
    registry = RegistryClient(replace(config(server.url), username="ann", password="pässword"))
    assert registry.schema(7) == registry.schema(7) == STRING
    assert [each.login for each in server.asked] == ["Basic YW5uOnDDpHNzd29yZA=="]
    RegistryClient(replace(config(server.url), token="abc")).schema(7)
    assert server.asked[-1].login == "Bearer abc"


def with_tokens(server: RegistryServer, issuer: TokenIssuer, secret: str = CLIENT_SECRET) -> SchemaConfig:
    """A registry that takes the last token of an issuer alone."""
    server.admits = lambda login: bool(issuer.tokens) and login == f"Bearer {issuer.tokens[-1]}"
    server.answers["/schemas/ids/8"] = [(200, {"schema": '"int"'})]
    return replace(config(server.url), tokens=TokenLogin(issuer=issuer.url, client_id=CLIENT, secret=secret))


def test_a_token_is_asked_for_once_and_again_when_it_is_refused(server: RegistryServer) -> None:
    with TokenIssuer() as issuer:
        registry = RegistryClient(replace(with_tokens(server, issuer), cluster="lsrc-1", pool="pool-2"))
        registry.schema(7)
        assert len(issuer.tokens) == 1
        # The key of the issuer is another one, for example: the registry takes new tokens only.
        issuer.tokens.append("another")
        registry.schema(8)
        assert [each.path for each in server.asked] == [PATH, "/schemas/ids/8", "/schemas/ids/8"]
        assert server.asked[-1].login == f"Bearer {issuer.tokens[-1]}"
        cloud = [server.asked[-1].headers[name] for name in ("target-sr-cluster", "confluent-identity-pool-id")]
        assert cloud == ["lsrc-1", "pool-2"]


def test_a_token_that_stays_refused_is_an_error_after_one_other(server: RegistryServer) -> None:
    with TokenIssuer() as issuer:
        given = with_tokens(server, issuer)
        server.fault = (401, {"message": "no"})
        with pytest.raises(HardFailureError, match=r"401 no; check .* or schema\.registry\.oauthbearer\.\*"):
            RegistryClient(given).versions("orders")
        assert len(issuer.tokens) == len(server.asked) == 2


def test_an_issuer_that_is_away_or_refuses_is_told_as_such(server: RegistryServer) -> None:
    with TokenIssuer() as issuer:
        wrong = RegistryClient(with_tokens(server, issuer, "guessed-wrong"))
        with pytest.raises(HardFailureError, match=r"wrong id or secret.*; correct schema\.registry\.oauthbearer"):
            wrong.schema(7)
        issuer.is_away = True
        with pytest.raises(UnreachableError, match="the issuer of tokens does not answer"):
            RegistryClient(with_tokens(server, issuer)).schema(7)
    assert server.asked == []


def test_the_next_server_answers_for_one_that_is_away_or_busy(server: RegistryServer) -> None:
    (gone,) = free_ports(1)
    with registry_server() as busy:
        busy.answers[PATH] = [(503, {})]
        registry = RegistryClient(config(f"http://127.0.0.1:{gone}", busy.url, server.url))
        assert registry.schema(7) == STRING
        server.answers["/schemas/ids/8"] = [(200, {"schema": '"int"'})]
        registry.schema(8)
        assert len(busy.asked) == 1, "the server that has answered is asked first"


def test_a_registry_that_is_away_is_an_error(server: RegistryServer) -> None:
    server.fault = (503, {})
    with pytest.raises(UnreachableError, match=f"is away .{server.url} answers 503.; check schema.registry.url"):
        RegistryClient(config(server.url)).schema(7)


def test_a_login_that_is_refused_is_an_error_without_secrets(server: RegistryServer) -> None:
    server.fault = (401, {"message": "no\x1b[2J"})
    with pytest.raises(HardFailureError) as raised:
        RegistryClient(replace(config(server.url), username="ann", password=SECRET)).schema(7)
    assert "401 no\\x1b[2J; check schema.registry.username" in str(raised.value)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ((404, {}), "the schema registry knows no schema with the id 7"),
        ((422, {"message": "bad id"}), "the id 7: the schema registry refuses /schemas/ids/7: 422 bad id"),
        ((500, {}), "answers 500"),
        ((200, {"no": "schema"}), "without a schema"),
        ((200, []), "without a schema"),
        ((200, {"schema": "x", "references": [{"name": "R", "subject": "s"}]}), "without the number 'version'"),
    ],
)
def test_an_id_without_a_schema_makes_the_body_unreadable_while_others_work(
    server: RegistryServer, answer: tuple[int, object], told: str
) -> None:
    server.answers[PATH] = [answer]
    registry = RegistryClient(config(server.url))
    for _ in range(2):
        with pytest.raises(UnreadableBodyError) as raised:
            registry.schema(7)
        assert told in str(raised.value)
    assert [each.path for each in server.asked].count(PATH) == 1, "the answer is kept"


def test_a_server_that_hangs_for_one_id_is_not_waited_for(server: RegistryServer) -> None:
    server.stalling.add(PATH)
    with pytest.raises(UnreadableBodyError, match="timed out"):
        RegistryClient(config(server.url)).schema(7)


def test_schemas_that_a_schema_refers_to_are_fetched_and_kept_on_disk(server: RegistryServer, tmp_path: Path) -> None:
    outer = {"schemaType": "PROTOBUF", "schema": "b3V0", "references": [_refers("a/b.proto", "a/b ~.*", 3)]}
    server.answers[PATH] = [(200, {"schemaType": "PROTOBUF", "schema": "message M {}"})]
    server.answers[f"{PATH}?format=serialized"] = [(200, outer)]
    inner = "/subjects/a%2Fb%20~.%2A/versions/3"
    answer = {"id": 4, "version": 3, "schemaType": "PROTOBUF", "schema": "aW4="}
    server.answers[inner] = [(200, answer | {"schema": "message N {}"})]
    server.answers[f"{inner}?format=serialized"] = [(200, answer)]
    reference = SchemaReference("a/b.proto", RegisteredSchema("PROTOBUF", "aW4="))
    expected = RegisteredSchema("PROTOBUF", "b3V0", (reference,))
    assert RegistryClient(config(server.url, copies=tmp_path)).schema(7) == expected
    kept = config(server.url, copies=tmp_path).copies_of_registry
    assert kept is not None
    written = json.loads((kept / "ids/7.json").read_text())
    assert written["references"] == [{"name": "a/b.proto", "schema": {"schema": "aW4=", "references": []}}]
    quoted = kept / "subjects/a%2Fb%20%7E%2E*/3.json"
    assert json.loads(quoted.read_text())["id"] == 4
    assert quoted.stat().st_mode & 0o777 == 0o600
    server.fault = (503, {})
    away = RegistryClient(config(server.url, copies=tmp_path))
    assert away.schema(7) == expected
    assert away.version("a/b ~.*", 3).id == 4


def _refers(name: str, subject: str, version: int) -> dict[str, object]:
    return {"name": name, "subject": subject, "version": version}


def test_schemas_that_refer_to_themselves_are_refused(server: RegistryServer) -> None:
    answer = {"id": 1, "version": 1, "schema": '"int"', "references": [_refers("R", "s", 1)]}
    server.answers["/subjects/s/versions/1"] = [(200, answer)]
    server.answers[PATH] = [(200, answer)]
    with pytest.raises(UnreadableBodyError, match="refers to itself"):
        RegistryClient(config(server.url)).schema(7)


def test_the_latest_version_is_that_of_the_copies_while_the_registry_is_away(
    server: RegistryServer, tmp_path: Path
) -> None:
    latest = "/subjects/s/versions/latest"
    server.answers[latest] = [(200, {"id": number, "version": number, "schema": '"int"'}) for number in (1, 2)]
    server.answers["/subjects/s/versions"] = [(200, [1, 2])]
    registry = RegistryClient(config(server.url, copies=tmp_path))
    assert [registry.version("s").number, registry.version("s").number] == [1, 2]
    assert registry.versions("s") == [1, 2]
    server.fault = (503, {})
    assert registry.version("s").number == 2
    with pytest.raises(UnreachableError):
        registry.version("other")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"schema": 7, "schemaType": "AVRO", "references": []}', "[" * 100_000]
)
def test_a_damaged_copy_counts_as_absent(server: RegistryServer, tmp_path: Path, text: str) -> None:
    kept = config(server.url, copies=tmp_path).copies_of_registry
    assert kept is not None
    (kept / "ids").mkdir(parents=True)
    (kept / "ids/7.json").write_text(text)
    assert RegistryClient(config(server.url, copies=tmp_path)).schema(7) == STRING
    assert SchemaCopies(kept).schema(7) == STRING


def test_copies_that_cannot_be_written_do_not_matter(server: RegistryServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert RegistryClient(config(server.url, copies=tmp_path / "file")).schema(7) == STRING


def test_certificates_of_both_sides_are_used(tmp_path: Path) -> None:
    made = certify(tmp_path / "made")
    with registry_server(made) as server:
        server.answers[PATH] = [(200, {"schema": '"string"'})]
        files = {"ca": made / "ca.pem", "certificate": made / "bridge.pem", "key": made / "bridge.key"}
        assert RegistryClient(replace(config(server.url), **files)).schema(7) == STRING
        unknown = files | {"certificate": made / "stranger.pem", "key": made / "stranger.key"}
        with pytest.raises(UnreachableError, match="the schema registry is away"):
            RegistryClient(replace(config(server.url), **unknown)).schema(7)


def test_another_registry_has_copies_of_its_own(tmp_path: Path) -> None:
    folders = {config(url, copies=tmp_path).copies_of_registry for url in ("http://a", "http://b")}
    assert len(folders) == 2
    assert (
        config("http://a", "http://b", copies=tmp_path).copies_of_registry
        == config("http://b", "http://a", copies=tmp_path).copies_of_registry
    )
