"""Access tokens of a client with a secret, and token endpoints that an OpenID Connect server names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.errors import HardFailureError, UnreachableError
from engine.openid.access_tokens import AccessTokens, access_tokens
from engine.openid.token_request import token_endpoint
from routes.keys.token_login import TokenLogin
from tests.certificates import certify
from tests.token_issuer import CLIENT, SECRET, TokenIssuer
from tests.unit.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KAFKA = "kafka.sasl.oauthbearer."
KEYS = "schema.registry.oauthbearer."


def test_an_issuer_names_its_token_endpoint_with_or_without_a_slash() -> None:
    with TokenIssuer() as issuer:
        assert token_endpoint(issuer.url, None, KAFKA) == f"{issuer.url}/token"
        assert token_endpoint(f"{issuer.url}/", None, KAFKA) == f"{issuer.url}/token"


def test_an_issuer_that_cannot_answer_at_present_is_asked_again() -> None:
    with TokenIssuer() as issuer:
        issuer.is_away = True
        with pytest.raises(UnreachableError, match="503"):
            token_endpoint(issuer.url, None, KAFKA)
        issuer.is_away = False
        assert token_endpoint(issuer.url, None, KAFKA) == f"{issuer.url}/token"


@pytest.mark.parametrize("keys", [KAFKA, "source.other.sasl.oauthbearer.", "sink.other.sasl.oauthbearer."])
def test_an_address_without_discovery_has_to_be_corrected(keys: str) -> None:
    with (
        TokenIssuer() as issuer,
        pytest.raises(HardFailureError, match=rf"404; correct {re.escape(keys)}issuer"),
    ):
        token_endpoint(f"{issuer.url}/realms/none", None, keys)


@pytest.fixture
def issuer() -> Iterator[TokenIssuer]:
    with TokenIssuer() as issuer:
        yield issuer


def login(issuer: TokenIssuer) -> TokenLogin:
    return TokenLogin(issuer=issuer.url, client_id=CLIENT, secret=SECRET, scope="registry")


def test_a_token_is_kept_until_four_fifths_of_its_time_are_over(issuer: TokenIssuer) -> None:
    issuer.seconds, clock = 100, Clock(1000.0)
    tokens = AccessTokens(login(issuer), KEYS, clock=clock)
    first = tokens.current()
    assert (first.text, first.renew_at, first.ends_at) == (issuer.tokens[0], 1080, 1100)
    clock.now += 79
    assert tokens.current() is first
    issuer.claims = {"jti": "2"}
    clock.now += 1
    assert tokens.current().text == issuer.tokens[1] != first.text
    assert issuer.given == ["registry", "registry"]


def test_a_token_that_was_refused_is_not_shown_again(issuer: TokenIssuer) -> None:
    tokens = AccessTokens(login(issuer), KEYS)
    first = tokens.current()
    issuer.claims = {"jti": "2"}
    tokens.refused(first)
    second = tokens.current()
    assert second.text != first.text
    tokens.refused(first)
    assert tokens.current() is second, "another request was told so of the token before"


def test_the_last_token_serves_as_long_as_it_holds_while_the_issuer_is_away(issuer: TokenIssuer) -> None:
    issuer.seconds, clock = 100, Clock(1000.0)
    tokens = AccessTokens(login(issuer), KEYS, clock=clock)
    first = tokens.current()
    issuer.is_away = True
    clock.now += 85
    assert tokens.current() is first
    asked = len(issuer.asked)
    clock.now += 9
    assert tokens.current() is first
    assert len(issuer.asked) == asked, "it is asked again after a pause"
    clock.now += 6
    with pytest.raises(UnreachableError, match=r"the issuer of tokens does not answer: .*503"):
        tokens.current()
    issuer.is_away = False
    assert tokens.current().ends_at == 1200


def test_a_wrong_secret_is_told_with_its_key_and_not_shown(issuer: TokenIssuer) -> None:
    tokens = AccessTokens(replace(login(issuer), secret="guessed-wrong"), KEYS)
    with pytest.raises(HardFailureError) as raised:
        tokens.current()
    what = "HTTP status 401 (wrong id or secret); correct schema.registry.oauthbearer.client.id or schema.registry."
    assert what in str(raised.value)
    assert "guessed-wrong" not in str(raised.value)


def test_a_refusal_in_several_lines_is_told_in_one(issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    why = "invalid client secret\r\nTrace ID: 1\x1b[2J\r\n" + "x" * 300
    monkeypatch.setattr(issuer, "answer", lambda *_: (401, {"error_description": why}))
    given = TokenLogin(endpoint=f"{issuer.url}/token", client_id=CLIENT, secret=SECRET)
    with pytest.raises(HardFailureError, match=r"\(invalid client secret Trace ID: 1\\x1b\[2J x{100,170}\); correct "):
        AccessTokens(given, KEYS).current()


def test_the_secret_goes_in_the_form_where_the_issuer_takes_it_only_there(issuer: TokenIssuer) -> None:
    issuer.methods = ["client_secret_post"]
    assert AccessTokens(login(issuer), KEYS).current().text == issuer.tokens[0]


def test_an_endpoint_is_asked_without_discovery(issuer: TokenIssuer) -> None:
    given = TokenLogin(endpoint=f"{issuer.url}/token", client_id=CLIENT, secret=SECRET)
    assert AccessTokens(given, KEYS).current().text == issuer.tokens[0]
    assert issuer.asked == ["/token"]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({}, id="no token"),
        pytest.param({"access_token": "a b", "token_type": "Bearer"}, id="a blank"),
        pytest.param({"access_token": "a\r\nX: 1"}, id="a line break"),
        pytest.param({"access_token": "abc", "token_type": "mac"}, id="another type"),
    ],
)
def test_an_answer_without_a_bearer_token_is_refused(
    issuer: TokenIssuer, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str]
) -> None:
    monkeypatch.setattr(issuer, "answer", lambda *_: (200, answer))
    given = TokenLogin(endpoint=f"{issuer.url}/token", client_id=CLIENT, secret=SECRET)
    with pytest.raises(HardFailureError, match=r"has no bearer token; correct schema\.registry\.oauthbearer\.token"):
        AccessTokens(given, KEYS).current()


def test_an_issuer_with_a_certificate_is_trusted_by_the_file(tmp_path: Path) -> None:
    certificates = certify(tmp_path / "tls")
    with TokenIssuer(certificates / "broker.pem", certificates / "broker.key") as issuer:
        given = replace(login(issuer), ca=certificates / "ca.pem")
        assert AccessTokens(given, KEYS).current().text == issuer.tokens[0]
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            AccessTokens(replace(given, ca=certificates / "stranger.pem"), KEYS).current()


def test_a_process_has_one_token_for_a_login(issuer: TokenIssuer) -> None:
    first = access_tokens(login(issuer), KEYS).current()
    assert access_tokens(login(issuer), KEYS).current() is first
    assert "eyJ" not in repr(first), "a token is a secret"
