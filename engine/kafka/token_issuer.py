"""Token endpoints of issuers of tokens. Kafka's clients take the address of the endpoint alone."""

from __future__ import annotations

from functools import lru_cache

from engine.errors import HardFailureError
from engine.kafka.security import ENDPOINT, ISSUER
from engine.openid.discovery import discovered

__all__ = ["token_endpoint"]


@lru_cache(maxsize=16)
def token_endpoint(issuer: str, authority: str | None, keys: str) -> str:
    """Returns the URL of an issuer's token endpoint, which is asked for once in a process.

    Args:
        issuer: URL of the issuer, with or without a slash at its end.
        authority: PEM file of the certificates to trust; None for those of the system.
        keys: text before the names of the settings of the login, `KafkaAccess.keys`, for errors.

    Raises:
        HardFailureError: the answer names no token endpoint, or another issuer.
        UnreachableError: the issuer does not answer, cannot at present, or its certificate is not trusted.
    """
    endpoint = discovered(issuer, authority, keys + ISSUER).get("token_endpoint")
    if not isinstance(endpoint, str) or not endpoint.startswith(("https://", "http://")):
        raise HardFailureError(f"{issuer}: the issuer names no token_endpoint; set {keys}{ENDPOINT}")
    return endpoint
