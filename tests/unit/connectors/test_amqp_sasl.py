"""Logins of an AMQP client: known answers of the RFCs, what the bridge chooses, and brokers that prove nothing."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.connectors.amqp.sasl import (
    BearerToken,
    CramMd5,
    MechanismChoice,
    Plain,
    SaslError,
    Scram,
    chosen,
    chosen_with_token,
    prepared,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SHA_1 = (
    "SCRAM-SHA-1",
    "fyko+d2lbbFgONRv9qkxdawL",
    b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
)
"""The exchange in RFC 5802, section 5."""
SHA_256 = (
    "SCRAM-SHA-256",
    "rOprNGfwEbeRWgbNEkqO",
    b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
)
"""The exchange in RFC 7677, section 3."""


@pytest.mark.parametrize(("name", "nonce", "first", "challenge", "response", "signature"), [SHA_1, SHA_256])
def test_the_known_answers_of_scram(
    name: str, nonce: str, first: bytes, challenge: bytes, response: bytes, signature: bytes
) -> None:
    own = Scram(name, "user", "pencil", nonce)
    assert own.first() == first
    assert own.answer(challenge) == response
    own.accepted(signature)
    other = Scram(name, "user", "pencil", nonce)
    other.answer(challenge)
    # The signature may also come as a challenge, before the consent.
    assert other.answer(signature) == b""
    other.accepted(b"")


def test_the_known_answer_of_cram_md5() -> None:
    own = CramMd5("tim", "tanstaaftanstaaf")
    assert own.first() is None
    # RFC 2195, section 2.
    assert own.answer(b"<1896.697170952@postoffice.reston.mci.net>") == b"tim b913a602c7eda7a495b4e6e7334d3890"


@pytest.mark.parametrize(
    "data", [b"", b"v=", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", b"e=other-error", b"\xff"]
)
def test_a_broker_that_does_not_know_the_password_is_not_believed(data: bytes) -> None:
    name, nonce, _, challenge, *_ = SHA_256
    own = Scram(name, "user", "pencil", nonce)
    own.answer(challenge)
    with pytest.raises(SaslError, match=r"has not proved by SCRAM-SHA-256 that it knows the password"):
        own.accepted(data)


@pytest.mark.parametrize("data", [b"", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="])
def test_a_consent_without_a_challenge_is_not_believed(data: bytes) -> None:
    with pytest.raises(SaslError, match="has not proved"):
        Scram("SCRAM-SHA-256", "user", "pencil").accepted(data)


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (b"r=other3rfcNHYJY,s=QSXCR+Q6sek8bf92,i=4096", "sent a challenge that does not follow SCRAM-SHA-1"),
        (b"r=mine,s=QSXCR+Q6sek8bf92,i=4096", "sent a challenge that does not follow"),
        (b"r=mineX,s=QSXCR+Q6sek8bf9,i=4096", "sent a challenge that does not follow"),
        (b"m=ext,r=mineX,s=QSXCR+Q6sek8bf92,i=4096", "sent a challenge that does not follow"),
        (b"r=mineX,s=QSXCR+Q6sek8bf92", "sent a challenge that does not follow"),
        (b"", "sent a challenge that does not follow"),
        (b"\xff\x00", "sent a challenge that does not follow"),
        (
            b"r=mineX,s=QSXCR+Q6sek8bf92,i=4095",
            "asks for 4095 iterations of SCRAM-SHA-1; the bridge does 4096 to 1000000",
        ),
        (b"r=mineX,s=QSXCR+Q6sek8bf92,i=999999999", "asks for 999999999 iterations"),
    ],
)
def test_a_challenge_that_is_none_or_would_take_for_ever_is_refused(challenge: bytes, why: str) -> None:
    with pytest.raises(SaslError, match=f"^{re.escape(why)}"):
        Scram("SCRAM-SHA-1", "user", "pencil", "mine").answer(challenge)


def test_a_challenge_may_have_extensions() -> None:
    own = Scram("SCRAM-SHA-1", "user", "pencil", "mine")
    assert own.answer(b"r=mineX,s=QSXCR+Q6sek8bf92,i=4096,x=y").startswith(b"c=biws,r=mineX,p=")


def test_plain_has_no_challenge() -> None:
    with pytest.raises(SaslError, match="sent a challenge, which PLAIN does not have"):
        Plain("u", "p").answer(b"x")


def server_accepts(name: str, password: str, first: bytes, challenge: bytes, response: bytes) -> bool:
    """What a server does with a client's proof (RFC 5802, section 3)."""
    kind = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[name]
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), b"salt", 4096)
    stored = hashlib.new(kind, hmac.digest(salted, b"Client Key", kind)).digest()
    without, _, proof = response.rpartition(b",p=")
    mask = hmac.digest(stored, b",".join((first.removeprefix(b"n,,"), challenge, without)), kind)
    key = bytes(left ^ right for left, right in zip(base64.b64decode(proof), mask, strict=True))
    return hashlib.new(kind, key).digest() == stored


TEXT = st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126), max_size=20)


@given(st.sampled_from(["SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"]), TEXT, TEXT)
def test_a_server_with_the_password_takes_the_proof_and_one_with_another_does_not(
    name: str, user: str, password: str
) -> None:
    own = Scram(name, user, password)
    first = own.first()
    nonce = re.fullmatch(rb"n,,n=[^,]*,r=([^,]+)", first)
    assert nonce is not None
    challenge = b"r=" + nonce[1] + b"more,s=" + base64.b64encode(b"salt") + b",i=4096"
    response = own.answer(challenge)
    assert server_accepts(name, password, first, challenge, response)
    assert not server_accepts(name, password + "x", first, challenge, response)


@given(st.binary(max_size=100))
def test_any_challenge_gives_a_response_or_a_sasl_error(challenge: bytes) -> None:
    own = Scram("SCRAM-SHA-256", "user", "pencil", "mine")
    with pytest.raises(SaslError):
        own.answer(challenge)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I\u00adX", "IX"),
        ("user", "user"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("", ""),
        ("\u0627\u0628", "\u0627\u0628"),
    ],
)
def test_texts_are_prepared_as_rfc_4013_has_it(text: str, expected: str) -> None:
    assert prepared(text, "password") == expected


@pytest.mark.parametrize("text", ["\u0007", "\u06271", "\u0627a\u0628", "\ue000"])
def test_a_text_that_scram_does_not_allow_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(SaslError) as raised:
        Scram("SCRAM-SHA-256", "user", text)
    assert str(raised.value) == "wants SCRAM, and the password has a character that SCRAM does not allow (RFC 4013)"


def test_a_user_name_is_escaped() -> None:
    assert Scram("SCRAM-SHA-1", "a=b,c", "x", "n").first() == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("offered", "user", "options", "name"),
    [
        (("PLAIN", "CRAM-MD5", "SCRAM-SHA-1", "SCRAM-SHA-256"), "u", (False, False), "SCRAM-SHA-256"),
        (("SCRAM-SHA-512", "SCRAM-SHA-256"), "u", (True, False), "SCRAM-SHA-512"),
        (("PLAIN", "CRAM-MD5"), "u", (False, False), "CRAM-MD5"),
        (("PLAIN", "CRAM-MD5"), "u", (True, False), "PLAIN"),
        (("ANONYMOUS", "PLAIN"), "u", (False, False), "PLAIN"),
        (("EXTERNAL", "PLAIN"), "u", (True, True), "PLAIN"),
        (("ANONYMOUS", "EXTERNAL"), None, (True, True), "EXTERNAL"),
        (("ANONYMOUS", "EXTERNAL"), None, (True, False), "ANONYMOUS"),
        (("GSSAPI", "ANONYMOUS"), "u", (False, False), None),
        (("PLAIN", "EXTERNAL"), None, (True, False), None),
        ((), "u", (False, False), None),
    ],
)
def test_the_strongest_mechanism_that_fits_is_chosen(
    offered: Sequence[str], user: str | None, options: tuple[bool, bool], name: str | None
) -> None:
    found = chosen(offered, user, "p", is_encrypted=options[0], has_certificate=options[1])
    assert (found and found.name) == name


def test_the_known_forms_of_tokens() -> None:
    # RFC 7628, section 4.1, without host and port, which it leaves to the client.
    token = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="
    own = BearerToken("OAUTHBEARER", "user@example.com", token)
    assert own.first() == f"n,a=user@example.com,\1auth=Bearer {token}\1\1".encode()
    assert BearerToken("OAUTHBEARER", "a,b=c", "t").first() == b"n,a=a=2Cb=3Dc,\1auth=Bearer t\1\1"
    assert BearerToken("XOAUTH2", "a,b", "t").first() == b"user=a,b\1auth=Bearer t\1\1"


@pytest.mark.parametrize(("name", "answer"), [("OAUTHBEARER", b"\1"), ("XOAUTH2", b"")])
def test_the_reason_for_the_refusal_of_a_token_is_kept_and_answered_once(name: str, answer: bytes) -> None:
    own = BearerToken(name, "u", "t")
    # RFC 7628, section 4.3.
    assert own.answer(b'{"status":"invalid_token"}') == answer
    assert own.reason == '{"status":"invalid_token"}'
    with pytest.raises(SaslError, match="sent a challenge"):
        own.answer(b"more")


@pytest.mark.parametrize(
    ("offered", "choice", "expected"),
    [
        pytest.param(["PLAIN", "XOAUTH2", "OAUTHBEARER"], "auto", "OAUTHBEARER", id="the standard first"),
        pytest.param(["PLAIN", "XOAUTH2", "SCRAM-SHA-512"], "auto", "XOAUTH2", id="its forerunner next"),
        pytest.param(["AMQPLAIN", "PLAIN", "SCRAM-SHA-512"], "auto", "PLAIN", id="as a password"),
        pytest.param(["PLAIN", "OAUTHBEARER"], "PLAIN", "PLAIN", id="as configured"),
        pytest.param(["PLAIN", "OAUTHBEARER"], "XOAUTH2", None, id="not offered"),
        pytest.param(["SCRAM-SHA-512", "ANONYMOUS", "EXTERNAL"], "auto", None, id="none for tokens"),
    ],
)
def test_the_mechanism_for_a_token(offered: list[str], choice: str, expected: str | None) -> None:
    found = chosen_with_token(MechanismChoice(choice).among(offered), "u", "t")
    assert (found and found.name) == expected


def test_a_configured_mechanism_is_the_only_one() -> None:
    usable = MechanismChoice.PLAIN.among(["SCRAM-SHA-512", "PLAIN"])
    found = chosen(usable, "u", "p", is_encrypted=False, has_certificate=False)
    assert (found and found.name) == "PLAIN"
