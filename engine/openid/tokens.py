"""Checks of tokens: signature, issuer, audience and times (RFC 7519; OpenID Connect Core 1.0, 3.1.3.7)."""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from joserfc import jws, jwt
from joserfc.errors import JoseError

from engine.openid.errors import TokenRefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.openid.provider import IdentityProvider

__all__ = ["access_token", "id_token"]

_ALGORITHMS = tuple(f"{family}{bits}" for family in ("RS", "PS", "ES") for bits in (256, 384, 512))
"""Algorithms with a public key. `none`, and those with a secret (HS256), are not among them."""
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
"""Types of tokens (`typ`) that log in; tokens for other ends, such as a logout, have others."""
_MOST_CHARACTERS = 32 * 1024
_SKEW_SECONDS = 60.0
"""Difference of the clocks that is allowed for."""


def id_token(
    text: str, provider: IdentityProvider, nonce: str, access: str | None, now: float | None = None
) -> Mapping[str, Any]:
    """Returns the claims of the ID token of a login, checked.

    Args:
        text: the token.
        provider: the server that has to have signed it.
        nonce: value that the login began with.
        access: access token that came with it; None without one.
        now: seconds since 1970; None for the clock's.

    Raises:
        TokenRefusedError: the token is not one of this login.
        HardFailureError: the server refuses to give its keys.
        UnreachableError: the keys are not known, and the server does not answer.
    """
    algorithm, claims = _signed(text, provider, time.time() if now is None else now)
    client_id = provider.client.client_id
    audience = _audience(claims)
    if client_id not in audience:
        raise TokenRefusedError(f"the ID token is for {_listed(audience)}, not for the client '{client_id}'")
    _check_party(claims, audience, client_id)
    given = claims.get("nonce")
    if not isinstance(given, str) or not hmac.compare_digest(given.encode(), nonce.encode()):
        raise TokenRefusedError("the ID token is that of another login (nonce)")
    if (stated := claims.get("at_hash")) is not None and access is not None:
        digest = hashlib.new(f"sha{algorithm[2:]}", access.encode()).digest()
        half = urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=")
        if not hmac.compare_digest(str(stated).encode(), half):
            raise TokenRefusedError("the access token is not the one of the ID token (at_hash)")
    return claims


def access_token(
    text: str, provider: IdentityProvider, audiences: Collection[str], now: float | None = None
) -> Mapping[str, Any]:
    """Returns the claims of an access or ID token that a program shows, checked; arguments and errors as `id_token`.

    Tokens for one of `audiences` may come from any client of the server. A token for this client is an ID token, and
    has to be issued to it.
    """
    _, claims = _signed(text, provider, time.time() if now is None else now)
    client_id = provider.client.client_id
    audience = _audience(claims)
    if audience.isdisjoint(audiences):
        if client_id not in audience:
            expected = _listed([*audiences, client_id])
            raise TokenRefusedError(f"the token is for {_listed(audience)}, not for {expected}")
        _check_party(claims, audience, client_id)
    return claims


def _signed(text: str, provider: IdentityProvider, now: float) -> tuple[str, Mapping[str, Any]]:
    """The algorithm and the claims of a token that the server has signed, and that is valid now."""
    if len(text) > _MOST_CHARACTERS:
        raise TokenRefusedError(f"the token has {len(text):,} characters; at most {_MOST_CHARACTERS:,} are taken")
    try:
        header = jws.extract_compact(text.encode()).headers()
        algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "")
        if algorithm not in _ALGORITHMS:
            raise TokenRefusedError(f"the token is signed by {str(algorithm)[:20]!r}, which is not accepted")
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            raise TokenRefusedError(f"a token of the type {str(kind)[:20]!r} does not log in")
        key = provider.key(key_id if isinstance(key_id, str) else None, algorithm)
        if key is None:
            raise TokenRefusedError("the token is signed with a key that the issuer does not have")
        registry = jws.JWSRegistry(algorithms=[algorithm], strict_check_header=False)
        claims = jwt.decode(text, key, [algorithm], registry).claims
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise TokenRefusedError(f"the token is not valid: {type(error).__name__}") from error
    if claims.get("iss") != provider.metadata.issuer:
        raise TokenRefusedError(f"the token is from '{str(claims.get('iss'))[:200]}', not from the issuer")
    if not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise TokenRefusedError("the token names nobody (sub)")
    _check_times(claims, now)
    return algorithm, claims


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    expiry, issued = _time(claims, "exp"), _time(claims, "iat")
    if expiry is None or issued is None:
        raise TokenRefusedError("the token has no times (exp, iat)")
    if now >= expiry + _SKEW_SECONDS:
        raise TokenRefusedError(f"the token expired {now - expiry:.0f} s ago")
    if max(issued, _time(claims, "nbf") or issued) > now + _SKEW_SECONDS:
        raise TokenRefusedError("the token is not valid yet; do the clocks differ?")


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """A time among the claims, in seconds since 1970; None if it is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TokenRefusedError(f"the token has a {name} that is not a time")
    return float(value)


def _audience(claims: Mapping[str, Any]) -> frozenset[str]:
    value = claims.get("aud")
    listed = value if isinstance(value, list) else [value]
    return frozenset(each for each in listed if isinstance(each, str))


def _check_party(claims: Mapping[str, Any], audience: Collection[str], client_id: str) -> None:
    """Checks the client to which an ID token was issued, which has to be named if there are several audiences."""
    party = claims.get("azp")
    if (party is not None or len(audience) > 1) and party != client_id:
        raise TokenRefusedError(f"the ID token was issued to {str(party)[:100]!r}, not to the client '{client_id}'")


def _listed(names: Collection[str]) -> str:
    return ", ".join(f"'{name[:100]}'" for name in sorted(set(names))) or "nobody"
