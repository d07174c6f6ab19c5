"""Keys `….oauthbearer.*`: a client of an OpenID Connect server, whose access tokens log in to another server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.keys.logins import ISSUER
from routes.keys.table import key
from routes.keys.values import PATH, TEXT

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["TOKEN_LOGIN", "TokenLogin", "check_token_login"]

TOKEN_LOGIN = "oauthbearer."  # noqa: S105 - the beginning of keys
"""Beginning of the keys of a login by tokens, behind a prefix of their own."""
_ISSUER, _ENDPOINT = f"{TOKEN_LOGIN}issuer", f"{TOKEN_LOGIN}token.endpoint.url"
_CLIENT, _SECRET = f"{TOKEN_LOGIN}client.id", f"{TOKEN_LOGIN}client.secret"
_CA = f"{TOKEN_LOGIN}ca"
_KEYS = (_ISSUER, _ENDPOINT, _CLIENT, _SECRET, f"{TOKEN_LOGIN}scope", _CA)


@dataclass(frozen=True, slots=True)
class TokenLogin:
    """Login by the access tokens that an OpenID Connect server gives to a client with a secret (RFC 6749, 4.4)."""

    issuer: str | None = key(
        _ISSUER,
        ISSUER,
        "OpenID Connect server whose access tokens are the login; it is asked for its token endpoint.",
        example="https://login.example.com/realms/services",
    )
    endpoint: str | None = key(
        _ENDPOINT,
        ISSUER,
        "Token endpoint of that server, in place of its `oauthbearer.issuer`.",
        example="https://login.example.com/oauth2/token",
    )
    client_id: str | None = key(_CLIENT, TEXT, "Client id of the bridge at that server.", example="bridge")
    """None: there is no login by tokens."""
    secret: str | None = key(_SECRET, TEXT, "Secret of the client.", example="${env:OAUTH_SECRET}")
    scope: str | None = key(
        f"{TOKEN_LOGIN}scope",
        TEXT,
        "Scopes of the tokens, separated by blanks.",
        default_note="those that the server gives by itself",
        example="bridge",
    )
    ca: Path | None = key(
        _CA,
        PATH,
        "Certificates (PEM) to trust for that server.",
        default_note="those of the system",
        example="tls/issuer.pem",
    )

    @property
    def is_set(self) -> bool:
        """True if tokens are the login."""
        return self.client_id is not None


def check_token_login(settings: Settings, prefix: str, name: str = "") -> bool:
    """Checks that a login by tokens is whole; returns True if the file has keys of one.

    Args:
        settings: the settings of the file.
        prefix: text before the keys, such as `source.NAME.`.
        name: the user's text for NAME.
    """
    given = [each for each in _KEYS if settings.is_set(prefix + each, name)]
    if not given:
        return False
    shown, first = prefix.replace("NAME", name), prefix + given[0]
    places = [each for each in (_ISSUER, _ENDPOINT) if each in given]
    if not places:
        hint = f"set {shown}{_ISSUER}, or {shown}{_ENDPOINT}"
        settings.fault(first, name, "a login by tokens needs an address to get them from", hint)
    elif len(places) > 1:
        message = f"{shown}{_ISSUER} and {shown}{_ENDPOINT} are both set"
        settings.fault(prefix + _ENDPOINT, name, message, "leave one of them out")
    for needed in (_CLIENT, _SECRET):
        if needed not in given:
            settings.fault(first, name, f"a login by tokens needs {shown}{needed}", f"set {shown}{needed}")
    ca = settings.get(prefix + _CA, name)
    if ca is not None and not settings.has_file(ca):
        settings.fault(prefix + _CA, name, f"there is no file '{ca}'", f"looked for {settings.base / ca}")
    return True
