"""Token endpoints of issuers of tokens: OpenID Connect servers, asked as OpenID Connect Discovery 1.0 says.

Kafka's clients take the address of the endpoint alone.
"""

from __future__ import annotations

import json
import ssl
from functools import lru_cache
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

from engine.errors import HardFailureError, UnreachableError

__all__ = ["token_endpoint"]

_SECONDS = 10.0
_MOST_BYTES = 1024 * 1024
_AWAY = frozenset({429, *range(500, 600)})
"""Statuses of a server that may answer later, such as one behind a proxy whose server is away."""


@lru_cache(maxsize=16)
def token_endpoint(issuer: str, authority: str | None) -> str:
    """Returns the URL of an issuer's token endpoint, which is asked for once in a process.

    Args:
        issuer: URL of the issuer, with or without a slash at its end.
        authority: PEM file of the certificates to trust; None for those of the system.

    Raises:
        HardFailureError: the answer names no token endpoint, or another issuer.
        UnreachableError: the issuer does not answer, cannot at present, or its certificate is not trusted.
    """
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        trust = ssl.create_default_context(cafile=authority) if issuer.startswith("https:") else None
        with urlopen(address, timeout=_SECONDS, context=trust) as answer:  # noqa: S310 - lint lets http and https through
            said = json.loads(answer.read(_MOST_BYTES))
    except HTTPError as error:
        if error.code in _AWAY:
            raise UnreachableError(f"the issuer of tokens does not answer: {address}: {error}") from error
        msg = f"{address}: HTTP status {error.code}; correct kafka.sasl.oauthbearer.issuer"
        raise HardFailureError(msg) from error
    except (OSError, HTTPException) as error:
        raise UnreachableError(f"the issuer of tokens does not answer: {address}: {error}") from error
    except ValueError as error:
        raise HardFailureError(f"{address}: the answer is not JSON; correct kafka.sasl.oauthbearer.issuer") from error
    endpoint, named = (said.get("token_endpoint"), said.get("issuer")) if isinstance(said, dict) else (None, None)
    if not isinstance(endpoint, str) or not endpoint.startswith(("https://", "http://")):
        raise HardFailureError(
            f"{address}: the answer has no token_endpoint; set kafka.sasl.oauthbearer.token.endpoint.url"
        )
    if str(named).rstrip("/") != issuer.rstrip("/"):
        raise HardFailureError(
            f"{address}: the answer is that of the issuer '{named}'; correct kafka.sasl.oauthbearer.issuer"
        )
    return endpoint
