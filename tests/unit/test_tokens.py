"""Tokens of an OpenID Connect server: which log in, and each way in which one may be forged or meant for others."""

from __future__ import annotations

import hmac
import json
import time
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwk, jws

from engine.errors import HardFailureError, UnreachableError
from engine.openid.client import OpenIdClient
from engine.openid.errors import TokenRefusedError
from engine.openid.provider import IdentityProvider
from engine.openid.tokens import access_token, id_token
from tests.token_issuer import CLIENT, USER, TokenIssuer
from tests.unit.clock import Clock

pytestmark = pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
NOW = time.time()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def provider(issuer: TokenIssuer, clock: Clock) -> IdentityProvider:
    return IdentityProvider(OpenIdClient(issuer.url, CLIENT), clock)


def part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def claims(issuer: TokenIssuer, **changed: Any) -> dict[str, Any]:
    return {"iss": issuer.url, "aud": CLIENT, "iat": NOW, "exp": NOW + 86_400, "nonce": "n", **USER, **changed}


def refused(text: str, provider: IdentityProvider) -> str:
    """Why a token does not log in, neither from a login nor from a program."""
    with pytest.raises(TokenRefusedError) as error:
        id_token(text, provider, "n", None)
    with pytest.raises(TokenRefusedError):
        access_token(text, provider, ())
    return str(error.value)


def test_a_token_of_the_issuer_logs_in(issuer: TokenIssuer, provider: IdentityProvider) -> None:
    for audience, party in ((CLIENT, None), ([CLIENT], CLIENT), ([CLIENT, "other"], CLIENT)):
        text = issuer.token(**USER, aud=audience, azp=party, nonce="n")
        assert id_token(text, provider, "n", None)["sub"] == "u-1"
        assert access_token(text, provider, ())["preferred_username"] == "olga"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"iss": "https://evil.example"}, "is from 'https://evil.example'"),
        ({"iss": None}, "not from the issuer"),
        ({"aud": "other"}, "is for 'other'"),
        ({"aud": None}, "is for nobody"),
        ({"aud": [CLIENT, "other"], "azp": None}, "was issued to 'None'"),
        ({"aud": CLIENT, "azp": "other"}, "was issued to 'other'"),
        ({"exp": NOW - 61}, "expired"),
        ({"exp": None}, "has no times"),
        ({"iat": None}, "has no times"),
        ({"iat": NOW + 86_400}, "not valid yet"),
        ({"nbf": NOW + 86_400}, "not valid yet"),
        ({"exp": True}, "exp that is not a time"),
        ({"exp": "9999999999"}, "exp that is not a time"),
        ({"exp": float("inf")}, "exp that is not a time"),
        ({"sub": None}, "names nobody"),
        ({"sub": ["a"]}, "names nobody"),
    ],
)
def test_a_token_that_is_old_or_meant_for_others_does_not(
    changed: dict[str, Any], why: str, issuer: TokenIssuer, provider: IdentityProvider
) -> None:
    issuer.claims = changed
    assert why in refused(issuer.token(**USER, aud=CLIENT, nonce="n"), provider)


def test_clocks_may_differ_by_a_minute(issuer: TokenIssuer, provider: IdentityProvider) -> None:
    for skew in (-50, 50):
        issuer.skew_seconds, issuer.seconds = skew, 5 if skew < 0 else 600
        assert access_token(issuer.token(**USER, aud=CLIENT), provider, ())


@pytest.mark.parametrize("nonce", ["other", "", None, ["n"]])
def test_a_token_of_another_login_does_not(nonce: object, issuer: TokenIssuer, provider: IdentityProvider) -> None:
    with pytest.raises(TokenRefusedError, match="another login"):
        id_token(issuer.token(**USER, aud=CLIENT, nonce=nonce), provider, "n", None)


def test_the_access_token_has_to_be_that_of_the_id_token(issuer: TokenIssuer, provider: IdentityProvider) -> None:
    text = issuer.token(**USER, aud=CLIENT, nonce="n", at_hash="AAAA")
    with pytest.raises(TokenRefusedError, match="at_hash"):
        id_token(text, provider, "n", "access")


def test_an_unsigned_token_and_one_signed_with_the_public_key_as_a_secret_do_not(
    issuer: TokenIssuer, provider: IdentityProvider
) -> None:
    told = claims(issuer)
    for name in ("none", "None", "nOnE", ""):
        assert "not accepted" in refused(f"{part({'alg': name})}.{part(told)}.", provider)
    public = jwk.import_key(issuer.keys["keys"][0])
    assert isinstance(public, jwk.RSAKey)
    member = issuer.keys["keys"][0]
    for secret in (public.as_pem(private=False), json.dumps(member).encode(), member["n"].encode()):
        signed = f"{part({'alg': 'HS256', 'kid': '1'})}.{part(told)}"
        digest = hmac.digest(secret, signed.encode(), "sha256")
        text = f"{signed}.{urlsafe_b64encode(digest).rstrip(b'=').decode()}"
        assert "'HS256', which is not accepted" in refused(text, provider)


def test_a_key_within_the_token_counts_for_nothing(issuer: TokenIssuer, provider: IdentityProvider) -> None:
    own = jwk.RSAKey.generate_key(2048)
    told = json.dumps(claims(issuer))
    for header in ({"kid": "1"}, {"kid": "2"}, {}, {"jwk": own.as_dict(private=False)}):
        text = jws.serialize_compact({"alg": "RS256", **header}, told, own, ["RS256"])
        assert "not valid" in (why := refused(text, provider)) or "key that the issuer does not have" in why
    crit = {"alg": "RS256", "kid": "1", "crit": ["exp"], "exp": 1}
    good = issuer.token(**USER, aud=CLIENT, nonce="n").split(".")
    assert refused(".".join((part(crit), *good[1:])), provider)


@pytest.mark.parametrize("kind", ["logout+jwt", "Refresh", 1, "dpop+jwt"])
def test_a_token_for_another_end_does_not(kind: object, issuer: TokenIssuer, provider: IdentityProvider) -> None:
    told = part(claims(issuer))
    assert "does not log in" in refused(f"{part({'alg': 'RS256', 'kid': '1', 'typ': kind})}.{told}.AAAA", provider)


def test_programs_show_tokens_for_configured_audiences(issuer: TokenIssuer, provider: IdentityProvider) -> None:
    text = issuer.token(**USER, aud=["api://bridge", "other"], azp="service")
    assert access_token(text, provider, ("api://bridge",))["azp"] == "service"
    with pytest.raises(TokenRefusedError, match="not for 'billing', 'bridge'"):
        access_token(text, provider, ("billing",))


def test_new_keys_are_read_and_unknown_ones_make_no_flood(
    issuer: TokenIssuer, provider: IdentityProvider, clock: Clock
) -> None:
    first = issuer.token(**USER, aud=CLIENT)
    assert access_token(first, provider, ())
    issuer.rotate()
    second = issuer.token(**USER, aud=CLIENT)
    clock.now += 11
    assert access_token(second, provider, ())
    clock.now += 11
    asked = issuer.asked.count("/keys")
    for number in range(100):
        text = f"{part({'alg': 'RS256', 'kid': f'x{number}'})}.{part(claims(issuer))}.AAAA"
        assert "does not have" in refused(text, provider)
    assert issuer.asked.count("/keys") - asked == 1
    # The key of before is gone.
    assert "does not have" in refused(first, provider)


def test_known_keys_serve_while_the_issuer_is_away(
    issuer: TokenIssuer, provider: IdentityProvider, clock: Clock
) -> None:
    issuer.is_away = True
    text = issuer.token(**USER, aud=CLIENT)
    for _ in range(20):
        with pytest.raises(UnreachableError, match="503"):
            access_token(text, provider, ())
    assert issuer.asked == ["/.well-known/openid-configuration"]
    issuer.is_away = False
    clock.now += 11
    assert access_token(text, provider, ())
    issuer.is_away = True
    clock.now += 7200
    assert access_token(text, provider, ())


def test_weak_keys_and_secrets_among_the_keys_are_left_out(issuer: TokenIssuer, clock: Clock) -> None:
    weak = jwk.RSAKey.generate_key(1024)
    secret = jwk.OctKey.import_key("0123456789abcdef0123456789abcdef")
    listed = [weak.as_dict(private=False, kid="w"), secret.as_dict(kid="s"), {"kty": "?"}, "x", {"kty": "RSA", "n": 1}]
    type(issuer).keys, kept = property(lambda _: {"keys": listed}), type(issuer).keys  # type: ignore[assignment, misc]
    try:
        provider = IdentityProvider(OpenIdClient(issuer.url, CLIENT), clock)
        text = jws.serialize_compact({"alg": "RS256", "kid": "w"}, json.dumps(claims(issuer)), weak, ["RS256"])
        assert "does not have" in refused(text, provider)
    finally:
        type(issuer).keys = kept  # type: ignore[method-assign]


def test_another_issuer_is_refused(issuer: TokenIssuer, clock: Clock) -> None:
    other = IdentityProvider(OpenIdClient(issuer.url.replace("127.0.0.1", "localhost"), CLIENT), clock)
    with pytest.raises(HardFailureError, match=r"that of the issuer '.*correct http\.oidc\.issuer"):
        access_token(issuer.token(**USER, aud=CLIENT), other, ())


@pytest.mark.parametrize(("curve", "algorithm"), [("P-256", "ES256"), ("P-521", "ES512")])
def test_other_kinds_of_signatures_log_in(
    curve: Any, algorithm: str, issuer: TokenIssuer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = jwk.ECKey.generate_key(curve)
    monkeypatch.setattr(type(issuer), "keys", property(lambda _: {"keys": [key.as_dict(private=False, kid="e")]}))
    provider = IdentityProvider(OpenIdClient(issuer.url, CLIENT), clock)
    text = jws.serialize_compact({"alg": algorithm, "kid": "e"}, json.dumps(claims(issuer)), key, [algorithm])
    assert id_token(text, provider, "n", None)["sub"] == "u-1"


ISSUER = TokenIssuer()
GOOD = ISSUER.token(**USER, aud=CLIENT)


class Known(IdentityProvider):
    """The server, whose answers are known without asking."""

    def _read_keys(self) -> Any:
        return (jwk.import_key(ISSUER.keys["keys"][0]),)

    @property
    def metadata(self) -> Any:
        class Metadata:
            issuer = ISSUER.url

        return Metadata


KNOWN = Known(OpenIdClient(ISSUER.url, CLIENT))


@given(st.text() | st.text("abcAB.{}=-_\n\0") | st.builds("{}.{}.{}".format, st.text(), st.text(), st.text()))
def test_any_text_is_refused_by_one_error(text: str) -> None:
    with pytest.raises(TokenRefusedError):
        access_token(text, KNOWN, ())


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists, max_leaves=3), st.data())
def test_any_header_is_refused_by_one_error(value: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["alg", "kid", "typ", "crit", "b64", "jwk", "x5c", "cty"]))
    header = {"alg": "RS256", "kid": "1", name: value}
    _, body, signature = GOOD.split(".")
    with pytest.raises(TokenRefusedError):
        access_token(f"{part(header)}.{body}.{signature}", KNOWN, ())


@given(st.integers(0, len(GOOD) - 1), st.sampled_from("Ab0_-."))
def test_a_changed_token_is_refused(place: int, char: str) -> None:
    changed = GOOD[:place] + char + GOOD[place + 1 :]
    # The last character of a signature has bits that count for nothing.
    if changed == GOOD or place == len(GOOD) - 1:
        return
    with pytest.raises(TokenRefusedError):
        access_token(changed, KNOWN, ())
