"""Access tokens of a client with a secret (RFC 6749, 4.4), kept until shortly before they expire.

The JVM asks for tokens of the schema registry by itself (`jmsbridge.serdes.AccessTokens`).
"""

from __future__ import annotations

import re
import time
from dataclasses import field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from engine.errors import HardFailureError
from engine.openid.client import OpenIdClient
from engine.openid.discovery import discovered
from engine.openid.token_request import endpoint_in, requested, takes_basic
from routes.errors import BridgeError
from routes.immutable import immutable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from routes.keys.token_login import TokenLogin

__all__ = ["AccessToken", "AccessTokens", "access_tokens"]

_RENEWED = 0.8
"""Share of the time of a token after which the next one is asked for, as Kafka's clients do."""
_DEFAULT_SECONDS = 300.0
"""Time of a token of which the server does not tell how long it holds."""
_PAUSE_SECONDS = 10.0
"""Time after which a server that is away is asked again while the token before still holds."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_log = structlog.get_logger(__name__)


@immutable
class AccessToken:
    """Access token with its times, by the monotonic clock."""

    text: str = field(repr=False)
    renew_at: float
    """Time in seconds at which a new one is due; until the end, this one is still good."""
    ends_at: float
    """Time in seconds at which it expires."""


class AccessTokens:
    """The tokens of one client, one at a time. For any thread."""

    def __init__(
        self,
        login: TokenLogin,
        keys: str,
        client_keys: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Creates the tokens of a login that is whole; asks nothing.

        Args:
            login: the client, and the server that gives it tokens.
            keys: beginning of the keys of the configuration for the server, for errors.
            client_keys: beginning of those for the client; None if that is the same.
            clock: function that returns monotonic seconds.
        """
        self._login = login
        self._keys = keys
        self._client_keys = keys if client_keys is None else client_keys
        self._clock = clock
        self._lock = Lock()
        self._known: AccessToken | None = None
        self._again_at = 0.0
        """Time before which a server that was away is not asked again, while there is a token."""

    def current(self) -> AccessToken:
        """Returns a token that holds; while the server is away that of before, as long as it holds.

        Raises:
            HardFailureError: the server refuses the client, or its answer has no token.
            UnreachableError: the server does not answer, cannot at present, or its certificate is not trusted.
        """
        with self._lock:
            now, known = self._clock(), self._known
            if known is not None and now < max(known.renew_at, min(self._again_at, known.ends_at)):
                return known
            try:
                self._known = made = self._asked(now)
            except BridgeError as error:
                if known is None or now >= known.ends_at:
                    raise
                self._again_at = now + _PAUSE_SECONDS
                _log.warning("the last access token is used on", reason=str(error))
                return known
            return made

    def refused(self, token: AccessToken) -> None:
        """Forgets a token that a server has refused, so that the next one is a new one."""
        with self._lock:
            if self._known == token:
                self._known = None

    def _asked(self, now: float) -> AccessToken:
        login, keys = self._login, self._keys
        authority = None if login.ca is None else str(login.ca)
        client = OpenIdClient(
            login.issuer or "", login.client_id or "", login.secret, authority, setting=f"{keys}issuer"
        )
        metadata: Mapping[str, Any] = {}
        endpoint = login.endpoint or ""
        if login.issuer is not None:
            metadata = discovered(login.issuer, authority, client.setting)
            endpoint = endpoint_in(metadata, login.issuer, keys)
        form = {"grant_type": "client_credentials", **({"scope": login.scope} if login.scope else {})}
        setting = f"{self._client_keys}client.id or {self._client_keys}client.secret"
        said = requested(endpoint, client, form, setting, basic=takes_basic(metadata))
        text, kind, seconds = said.get("access_token"), said.get("token_type", "bearer"), said.get("expires_in")
        if not isinstance(text, str) or not _TOKEN.fullmatch(text) or str(kind).lower() != "bearer":
            raise HardFailureError(f"{endpoint}: the answer has no bearer token; correct {keys}token.endpoint.url")
        lasting = max(float(seconds), 0.0) if isinstance(seconds, int | float) else _DEFAULT_SECONDS
        return AccessToken(text, now + lasting * _RENEWED, now + lasting)


@lru_cache(maxsize=64)
def access_tokens(login: TokenLogin, keys: str, client_keys: str | None = None) -> AccessTokens:
    """Returns the tokens of a login, which all of the process shares; arguments as for `AccessTokens`."""
    return AccessTokens(login, keys, client_keys)
