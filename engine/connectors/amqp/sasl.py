"""SASL mechanisms of an AMQP client: for users, for certificates, and for access tokens.

They are PLAIN, EXTERNAL, ANONYMOUS, CRAM-MD5 (RFC 2195), SCRAM (RFC 5802, 7677), OAUTHBEARER (RFC 7628) and XOAUTH2.
`chosen` picks one that the broker offers; the frames around the exchange are in `session`.

SCRAM is written out here: `scramp` on PyPI has it too, with two more packages for channel binding, which AMQP clients
do not use, and has no CRAM-MD5.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "WITH_PASSWORD",
    "WITH_TOKEN",
    "BearerToken",
    "CramMd5",
    "MechanismChoice",
    "Plain",
    "SaslError",
    "SaslMechanism",
    "Scram",
    "chosen",
    "chosen_with_token",
    "prepared",
]

_HASHES = {"SCRAM-SHA-512": "sha512", "SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
"""Names in `hashlib` by SCRAM mechanism, the strongest first."""
WITH_PASSWORD = (*_HASHES, "PLAIN", "CRAM-MD5")
"""Mechanisms for a user name and a password."""
WITH_TOKEN = ("OAUTHBEARER", "XOAUTH2", "PLAIN")
"""Mechanisms for an access token, in the order of preference; by PLAIN it is the password."""
_PRODUCT = b"jms-bridge"
_NO_BINDING = "n,,"
"""Header of a SCRAM client that does no channel binding."""
_ITERATIONS = range(4096, 1_000_001)
"""Numbers of iterations that a server may ask for: fewer let a listener guess the password (RFC 7677, 4), more occupy
the bridge."""
_SERVER_FIRST = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<rounds>[0-9]{1,9})(?:,.*)?"
)
_PROHIBITED = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)
"""Characters that SASLprep allows nowhere, unassigned ones among them (RFC 4013, 2.3 and 2.5)."""


class MechanismChoice(StrEnum):
    """Mechanism that a configuration asks for."""

    AUTO = "auto"
    """The strongest that the broker offers."""
    OAUTHBEARER = "OAUTHBEARER"
    XOAUTH2 = "XOAUTH2"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_1 = "SCRAM-SHA-1"
    PLAIN = "PLAIN"
    CRAM_MD5 = "CRAM-MD5"
    EXTERNAL = "EXTERNAL"
    ANONYMOUS = "ANONYMOUS"

    def among(self, offered: Collection[str]) -> Collection[str]:
        """Returns the mechanisms of those that a broker offers from which the bridge may choose."""
        return offered if self is MechanismChoice.AUTO else [each for each in offered if each == self.value]


class SaslError(Exception):
    """A login that cannot go on: the broker's answer does not follow the mechanism, or proves nothing.

    The text is one line for users and follows "the broker".
    """


class SaslMechanism:
    """Client side of one exchange by a mechanism."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Name of the mechanism, as brokers offer it."""
        self.reason = ""
        """The broker's reason for a refusal, in its own form; empty if it gave none."""

    def first(self) -> bytes | None:
        """Returns the initial response; None if the mechanism has none."""
        raise NotImplementedError

    def answer(self, challenge: bytes) -> bytes:
        """Returns the response to a challenge of the broker; SaslError if the mechanism has none."""
        raise SaslError(f"sent a challenge, which {self.name} does not have")

    def accepted(self, data: bytes) -> None:
        """Checks the data that came with the broker's consent; SaslError if the broker has not proved itself."""


class _Single(SaslMechanism):
    """Mechanism that consists of one response."""

    def __init__(self, name: str, response: bytes) -> None:
        super().__init__(name)
        self._response = response

    def first(self) -> bytes:
        """See `SaslMechanism`."""
        return self._response


class Plain(_Single):
    """PLAIN: the password as it is (RFC 4616)."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__("PLAIN", f"\0{user}\0{password}".encode())


class BearerToken(SaslMechanism):
    """OAUTHBEARER (RFC 7628) or XOAUTH2: an access token. A broker that refuses it may say why in a challenge."""

    def __init__(self, name: str, user: str, token: str) -> None:
        super().__init__(name)
        escaped = user.replace("=", "=3D").replace(",", "=2C")
        begin = f"n,a={escaped}," if name == "OAUTHBEARER" else f"user={user}"
        self._first = f"{begin}\1auth=Bearer {token}\1\1".encode()

    def first(self) -> bytes:
        """See `SaslMechanism`."""
        return self._first

    def answer(self, challenge: bytes) -> bytes:
        """See `SaslMechanism`. The answer to a reason is void, and the refusal follows it."""
        if self.reason:
            return super().answer(challenge)
        self.reason = challenge.decode("utf-8", "replace") or "no reason"
        return b"\1" if self.name == "OAUTHBEARER" else b""


class CramMd5(SaslMechanism):
    """CRAM-MD5: a digest of the password and the broker's challenge (RFC 2195)."""

    def __init__(self, user: str, password: str) -> None:
        super().__init__("CRAM-MD5")
        self._user = user
        self._password = password

    def first(self) -> None:
        """See `SaslMechanism`."""

    def answer(self, challenge: bytes) -> bytes:
        """See `SaslMechanism`."""
        return f"{self._user} {hmac.new(self._password.encode(), challenge, 'md5').hexdigest()}".encode()


class Scram(SaslMechanism):
    """SCRAM: both sides prove that they know the password, and neither sends it (RFC 5802, without channel binding)."""

    def __init__(self, name: str, user: str, password: str, nonce: str | None = None) -> None:
        """Begins an exchange by `SCRAM-SHA-512`, `SCRAM-SHA-256` or `SCRAM-SHA-1`; `nonce` is for tests.

        Raises:
            SaslError: the user name or the password has a character that SCRAM does not allow.
        """
        super().__init__(name)
        self._hash = _HASHES[name]
        self._password = prepared(password, "password").encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        escaped = prepared(user, "user name").replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={escaped},r={self._nonce}"
        self._signature: bytes | None = None
        """Signature that the broker has to send; None before its challenge."""
        self._is_proved = False

    def first(self) -> bytes:
        """See `SaslMechanism`."""
        return f"{_NO_BINDING}{self._first}".encode()

    def answer(self, challenge: bytes) -> bytes:
        """See `SaslMechanism`. A second challenge is the broker's signature, if its consent does not bring that."""
        if self._signature is None:
            return self._proof(challenge)
        self._check(challenge)
        return b""

    def accepted(self, data: bytes) -> None:
        """See `SaslMechanism`."""
        if not self._is_proved:
            self._check(data)

    def _proof(self, challenge: bytes) -> bytes:
        text = challenge.decode("ascii", "replace")
        match = _SERVER_FIRST.fullmatch(text)
        if match is None or not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise SaslError(f"sent a challenge that does not follow {self.name}")
        if (rounds := int(match["rounds"])) not in _ITERATIONS:
            low, high = _ITERATIONS[0], _ITERATIONS[-1]
            raise SaslError(f"asks for {rounds} iterations of {self.name}; the bridge does {low} to {high}")
        try:
            salt = base64.b64decode(match["salt"], validate=True)
        except binascii.Error as error:
            raise SaslError(f"sent a challenge that does not follow {self.name}") from error
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, rounds)
        bare = f"c={base64.b64encode(_NO_BINDING.encode()).decode()},r={match['nonce']}"
        signed = f"{self._first},{text},{bare}".encode()
        key = self._hmac(salted, b"Client Key")
        mask = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        proof = bytes(left ^ right for left, right in zip(key, mask, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{bare},p={base64.b64encode(proof).decode()}".encode()

    def _check(self, data: bytes) -> None:
        """Checks the broker's signature; SaslError if it is not that of the password, or comes before a challenge."""
        expected = None if self._signature is None else b"v=" + base64.b64encode(self._signature)
        if expected is None or not hmac.compare_digest(data.partition(b",")[0], expected):
            raise SaslError(f"has not proved by {self.name} that it knows the password; is it another server?")
        self._is_proved = True

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def chosen(
    offered: Collection[str], user: str | None, password: str, *, is_encrypted: bool, has_certificate: bool
) -> SaslMechanism | None:
    """Returns the strongest mechanism of those that a broker offers; None if none of them fits.

    With a user name that is SCRAM, then PLAIN over an encrypted connection, CRAM-MD5 over another.

    Raises:
        SaslError: see `Scram`.
    """
    if user is None:
        by_certificate = _Single("EXTERNAL", b"") if has_certificate and "EXTERNAL" in offered else None
        return by_certificate or (_Single("ANONYMOUS", _PRODUCT) if "ANONYMOUS" in offered else None)
    for name in _HASHES:
        if name in offered:
            return Scram(name, user, password)
    others = (Plain(user, password), CramMd5(user, password))
    return next((each for each in (others if is_encrypted else others[::-1]) if each.name in offered), None)


def chosen_with_token(offered: Collection[str], user: str, token: str) -> SaslMechanism | None:
    """Returns the first of `WITH_TOKEN` that a broker offers, with an access token; None if it offers none of them."""
    made = (*(BearerToken(name, user, token) for name in WITH_TOKEN[:-1]), Plain(user, token))
    return next((each for each in made if each.name in offered), None)


def prepared(text: str, what: str) -> str:
    """Returns a text as SASLprep writes it, so that equal names and passwords are equal bytes (RFC 4013).

    Raises:
        SaslError: it has a character that SASLprep does not allow; `what` is the text's name in the message.
    """
    spaced = "".join(" " if stringprep.in_table_c12(char) else char for char in text)
    mapped = "".join(char for char in spaced if not stringprep.in_table_b1(char))
    made = unicodedata.normalize("NFKC", mapped)
    is_right_to_left = any(map(stringprep.in_table_d1, made))
    mixed = is_right_to_left and (
        any(map(stringprep.in_table_d2, made)) or not all(map(stringprep.in_table_d1, (made[0], made[-1])))
    )
    if mixed or any(prohibits(char) for char in made for prohibits in _PROHIBITED):
        raise SaslError(f"wants SCRAM, and the {what} has a character that SCRAM does not allow (RFC 4013)")
    return made
