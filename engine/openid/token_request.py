"""Requests to the token endpoint of an OpenID Connect server, with the login of the client (RFC 6749, 2.3.1)."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

from engine.errors import HardFailureError
from engine.openid.discovery import discovered, fetched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.openid.client import OpenIdClient

__all__ = ["endpoint_in", "requested", "takes_basic", "token_endpoint"]


@lru_cache(maxsize=16)
def token_endpoint(issuer: str, authority: str | None, keys: str) -> str:
    """Returns the URL of an issuer's token endpoint, which is asked for once in a process.

    Args:
        issuer: URL of the issuer, with or without a slash at its end.
        authority: PEM file of the certificates to trust; None for those of the system.
        keys: beginning of the keys `issuer` and `token.endpoint.url` of the configuration, for errors.

    Raises:
        HardFailureError: the answer names no token endpoint, or another issuer.
        UnreachableError: the issuer does not answer, cannot at present, or its certificate is not trusted.
    """
    return endpoint_in(discovered(issuer, authority, f"{keys}issuer"), issuer, keys)


def endpoint_in(metadata: Mapping[str, Any], issuer: str, keys: str) -> str:
    """Returns the token endpoint that the metadata of an issuer names; arguments and HardFailureError as above."""
    endpoint = metadata.get("token_endpoint")
    if not isinstance(endpoint, str) or not endpoint.startswith(("https://", "http://")):
        raise HardFailureError(f"{issuer}: the issuer names no token_endpoint; set {keys}token.endpoint.url")
    return endpoint


def takes_basic(metadata: Mapping[str, Any]) -> bool:
    """Returns True if the token endpoint takes the client's secret in the header `Authorization`."""
    methods = metadata.get("token_endpoint_auth_methods_supported")
    return not isinstance(methods, list) or "client_secret_basic" in methods or "client_secret_post" not in methods


def requested(
    endpoint: str, client: OpenIdClient, form: Mapping[str, str], setting: str, *, basic: bool
) -> dict[str, Any]:
    """Returns the answer of a token endpoint to a form, to which the login of the client is added.

    Args:
        endpoint: URL of the token endpoint.
        client: client that asks.
        form: the grant, with its parameters.
        setting: keys of the configuration that a refusal is about.
        basic: True if the secret goes in the header `Authorization`, else in the form.

    Raises:
        HardFailureError: the server refuses the request or the client.
        UnreachableError: the server does not answer, cannot at present, or its certificate is not trusted.
    """
    headers = {}
    if client.secret is not None and basic:
        login = f"{quote_plus(client.client_id)}:{quote_plus(client.secret)}"
        headers["Authorization"] = f"Basic {b64encode(login.encode()).decode()}"
    elif client.secret is not None:
        form = {**form, "client_id": client.client_id, "client_secret": client.secret}
    return fetched(endpoint, client.authority, setting, form, headers)
