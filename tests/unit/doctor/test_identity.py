"""The doctor's words about the server at which users log in."""

from __future__ import annotations

from engine.doctor.checks import Severity
from engine.doctor.identity import check_identity
from engine.embedded import free_ports
from engine.openid.client import OpenIdClient
from tests.token_issuer import CLIENT, TokenIssuer


def test_a_server_that_answers_is_in_order() -> None:
    with TokenIssuer() as issuer:
        (found,) = check_identity(OpenIdClient(issuer.url, CLIENT))
    assert (found.state, found.found) == (Severity.OK, f"{issuer.url} answers; it has 1 key")


def test_a_server_that_is_away_or_another_one_is_a_warning() -> None:
    (gone,) = free_ports(1)
    (away,) = check_identity(OpenIdClient(f"http://127.0.0.1:{gone}", CLIENT))
    with TokenIssuer() as issuer:
        (other,) = check_identity(OpenIdClient(issuer.url.replace("127.0.0.1", "localhost"), CLIENT))
    assert (away.state, other.state) == (Severity.WARNING, Severity.WARNING)
    assert "nobody can log in: the issuer of tokens does not answer" in away.found
    assert other.remedy == "correct http.oidc.issuer"
