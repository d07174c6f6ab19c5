"""Check that the OpenID Connect server at which users log in answers, and is the one that is configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.doctor.checks import ok, warning
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.doctor.checks import Finding
    from engine.openid.client import OpenIdClient

__all__ = ["IDENTITY_REMEDY", "check_identity"]

IDENTITY_REMEDY = "start it, or correct http.oidc.issuer"
_NAME = "login"


def check_identity(client: OpenIdClient) -> Iterator[Finding]:
    """Checks the metadata and the keys of the server; without it the bridge works, and nobody logs in."""
    # Imported where somebody logs in there, for its libraries.
    from engine.openid.provider import IdentityProvider

    provider = IdentityProvider(client)
    try:
        issuer, count = provider.metadata.issuer, provider.key_count
    except BridgeError as error:
        found, _, remedy = str(error).rpartition("; ")
        yield warning(_NAME, f"nobody can log in: {found or error}", remedy if found else IDENTITY_REMEDY)
        return
    if count == 0:
        yield warning(_NAME, f"nobody can log in: {issuer} names no key with which it signs", IDENTITY_REMEDY)
    else:
        yield ok(_NAME, f"{issuer} answers; it has {count} key{'s' * (count > 1)}")
