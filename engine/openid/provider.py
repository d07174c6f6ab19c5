"""An OpenID Connect server as the bridge asks it: its endpoints and keys, read again after a while, and its tokens."""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlencode

import structlog
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, RSAKey, import_key

from engine.errors import HardFailureError
from engine.openid.discovery import discovered, fetched
from engine.openid.token_request import requested, takes_basic
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.openid.client import OpenIdClient

__all__ = ["IdentityProvider", "ProviderMetadata", "PublicKey", "with_query"]

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 10.0
"""Time between two requests for the same document: tokens with unknown keys make no more of them."""
_LEAST_RSA_BITS = 2048
_log = structlog.get_logger(__name__)

# It warns of weak keys, which are left out below.
warnings.filterwarnings("ignore", category=SecurityWarning)

PublicKey = RSAKey | ECKey
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """Endpoints and abilities that a server states, as far as the bridge uses them."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    keys_url: str
    logout_endpoint: str | None
    takes_basic: bool
    """True if the token endpoint takes the client's secret in the header `Authorization`."""
    names_issuer: bool
    """True if each answer of the authorization endpoint names the issuer (RFC 9207)."""


class IdentityProvider:
    """An OpenID Connect server. Its methods ask it over HTTP if need be, so they run in a thread."""

    def __init__(self, client: OpenIdClient, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self.client = client
        self._metadata = _Remembered(lambda: _metadata(client), clock)
        self._keys = _Remembered(self._read_keys, clock)

    @property
    def metadata(self) -> ProviderMetadata:
        """Endpoints and abilities of the server, not older than an hour while it answers; errors as `discovered`."""
        return self._metadata.value()

    def key(self, key_id: str | None, algorithm: str) -> PublicKey | None:
        """Returns the key that signs with an algorithm, by its id; None if there is none, or more than one fits.

        If none fits, the keys are read again, but not more often than every ten seconds.

        Raises:
            HardFailureError: the server refuses to give its keys.
            UnreachableError: the keys are not known, and the server does not answer.
        """
        found = _fitting(self._keys.value(), key_id, algorithm)
        return found or _fitting(self._keys.newer(), key_id, algorithm)

    @property
    def key_count(self) -> int:
        """Number of keys with which the server signs; errors as `key`."""
        return len(self._keys.value())

    def authorization_url(self, parameters: Mapping[str, str]) -> str:
        """Returns the address at which a user logs in; errors as `metadata`."""
        return with_query(self.metadata.authorization_endpoint, parameters)

    def exchange(self, code: str, verifier: str, redirect_uri: str) -> dict[str, Any]:
        """Returns the tokens that the server gives for a code (RFC 6749, 4.1.3; RFC 7636, 4.5).

        Raises:
            HardFailureError: the server refuses the code or the client.
            UnreachableError: the server does not answer.
        """
        client, metadata = self.client, self.metadata
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
            "client_id": client.client_id,
        }
        setting = "http.oidc.client.id or http.oidc.client.secret, or log in again"
        return requested(metadata.token_endpoint, client, form, setting, basic=metadata.takes_basic)

    def _read_keys(self) -> tuple[PublicKey, ...]:
        said = fetched(self.metadata.keys_url, self.client.authority, self.client.setting)
        listed = said.get("keys")
        return tuple(filter(None, map(_public_key, listed))) if isinstance(listed, list) else ()


class _Remembered(Generic[_T]):
    """A document of a server, read again when it is old; the last one serves while the server is away."""

    def __init__(self, read: Callable[[], _T], clock: Callable[[], float]) -> None:
        self._read = read
        self._clock = clock
        self._lock = Lock()
        self._known: list[_T] = []
        """The document, once it is known."""
        self._asked = self._renewed = -math.inf
        self._error: BridgeError | None = None

    def value(self) -> _T:
        """Returns the document; errors as the function that reads it."""
        is_old = self._clock() - self._renewed >= _FRESH_SECONDS
        # With an old document nobody waits for the new one.
        if is_old and self._lock.acquire(blocking=not self._known):
            try:
                self._renew()
            finally:
                self._lock.release()
        return self._known[0]

    def newer(self) -> _T:
        """Returns the document, read again if the last request for it is long enough ago."""
        with self._lock:
            self._renew()
            return self._known[0]

    def _renew(self) -> None:
        now = self._clock()
        if now - self._asked < _PAUSE_SECONDS:
            if self._error and not self._known:
                raise self._error
            return
        self._asked = now
        try:
            self._known, self._renewed, self._error = [self._read()], now, None
        except BridgeError as error:
            self._error = error
            if not self._known:
                raise
            _log.warning("the last answer of the issuer of tokens is used on", reason=str(error))


def _metadata(client: OpenIdClient) -> ProviderMetadata:
    said = discovered(client.issuer, client.authority, client.setting)
    is_secure = client.issuer.startswith("https:")

    def address(name: str) -> str | None:
        found = said.get(name)
        schemes = ("https://",) if is_secure else ("https://", "http://")
        return found if isinstance(found, str) and found.startswith(schemes) else None

    def needed(name: str) -> str:
        if (found := address(name)) is None:
            what = f"{client.issuer}: the issuer names no {name} of https; correct {client.setting}"
            raise HardFailureError(what)
        return found

    return ProviderMetadata(
        str(said["issuer"]),
        needed("authorization_endpoint"),
        needed("token_endpoint"),
        needed("jwks_uri"),
        address("end_session_endpoint"),
        takes_basic(said),
        said.get("authorization_response_iss_parameter_supported") is True,
    )


def _public_key(member: object) -> PublicKey | None:
    """The key in a member of a set of keys (RFC 7517); None if it is for something else, weak or not known."""
    if not isinstance(member, dict) or member.get("use", "sig") != "sig" or member.get("kty") == "oct":
        return None
    try:
        found = import_key(member)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    if isinstance(found, RSAKey) and found.raw_value.key_size < _LEAST_RSA_BITS:
        return None
    return found if isinstance(found, RSAKey | ECKey) else None


_FAMILIES = {"RS": RSAKey, "PS": RSAKey, "ES": ECKey}
"""Classes of keys by the first two letters of the algorithms that they sign with."""


def _fitting(keys: tuple[PublicKey, ...], key_id: str | None, algorithm: str) -> PublicKey | None:
    """The one key for a signature; without a key id, only if there is one key for the algorithm."""
    fitting = [
        key
        for key in keys
        if isinstance(key, _FAMILIES[algorithm[:2]])
        and key.get("alg") in (None, algorithm)
        and key_id in (None, key.get("kid"))
    ]
    return fitting[0] if len(fitting) == 1 else None


def with_query(address: str, parameters: Mapping[str, str]) -> str:
    """Returns an address with parameters behind those that it has."""
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"
