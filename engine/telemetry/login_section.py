"""Keys `http.*` by which users of others log in: those of an OpenID Connect server, and of a proxy in front."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from routes.keys import table
from routes.keys.addresses import host_of, is_loopback
from routes.keys.logins import HEADER, ISSUER, NAMES, NETWORKS
from routes.keys.token_login import TokenLogin
from routes.keys.values import PATH, TEXT, duration

if TYPE_CHECKING:
    from routes.keys.logins import Network
    from routes.keys.settings import Settings

__all__ = [
    "COMMAND_KEYS",
    "OidcConfig",
    "ProxyConfig",
    "SessionConfig",
    "has_login",
    "http_oidc",
    "http_proxy",
    "http_users",
]

COMMAND_KEYS = "http.oidc.command."
"""Beginning of the keys of the client whose tokens log in commands."""
_ISSUER, _URL = "http.oidc.issuer", "http.url"
_USER, _GROUPS, _TRUSTED = "http.proxy.header.user", "http.proxy.header.groups", "http.proxy.trusted"
_ADDRESS = "http.proxy.header.address"
_OF_ROLES = ("http.viewer.groups", "http.operator.groups")
_OF_COMMANDS = ("command.client.id", "command.client.secret", "command.scope")
_OF_OIDC = ("client.id", "client.secret", "scopes", "user.claim", "groups.claim", "audiences", "ca")
_LOGINS = ("http.token", "http.username", _ISSUER, _USER)


@dataclass(frozen=True, slots=True)
class OidcConfig:
    """`http.oidc.*`: the OpenID Connect server at which users log in, and the bridge as its client."""

    issuer: str | None = table.key(
        _ISSUER,
        ISSUER,
        "OpenID Connect server at which browsers log in, and whose tokens log programs in ([how](security.md#users-of-"
        "an-openid-connect-server)).",
        example="https://login.example.com/realms/staff",
    )
    """None: there is none."""
    client_id: str | None = table.key(
        "http.oidc.client.id", TEXT, "Client id of the bridge at the server.", example="jms-bridge"
    )
    secret: str | None = table.key(
        "http.oidc.client.secret",
        TEXT,
        "Secret of the client. Without it the client is a public one.",
        example="${file:oidc.secret}",
    )
    scopes: str = table.key(
        "http.oidc.scopes",
        TEXT,
        "Scopes that a login asks for, separated by blanks.",
        default="openid profile",
        example="openid profile groups",
    )
    user_claim: str = table.key(
        "http.oidc.user.claim",
        TEXT,
        "Claim with the name of the user, for pages and audits; `sub` where a token does not have it.",
        default="preferred_username",
    )
    groups_claim: str = table.key(
        "http.oidc.groups.claim",
        TEXT,
        "Claim with the groups of the user; dots lead into an object (`realm_access.roles`).",
        default="groups",
    )
    audiences: tuple[str, ...] = table.key(
        "http.oidc.audiences",
        NAMES,
        "Audiences of access tokens that log programs in; without it, tokens of this client alone do.",
        example="api://jms-bridge",
        made=lambda value, *_: value or (),
        value=(),
    )
    command_id: str | None = table.key(
        f"{COMMAND_KEYS}client.id",
        TEXT,
        "Client of the server whose access tokens log in commands such as `jms-bridge status`, and peers, in place of "
        "`http.token` ([how](security.md#commands-with-tokens)).",
        example="jms-bridge-commands",
    )
    """None: commands have another login."""
    command_secret: str | None = table.key(
        f"{COMMAND_KEYS}client.secret", TEXT, "Secret of that client.", example="${env:COMMAND_SECRET}"
    )
    command_scope: str | None = table.key(
        f"{COMMAND_KEYS}scope",
        TEXT,
        "Scopes of these tokens, separated by blanks.",
        default_note="those that the server gives by itself",
        example="api://jms-bridge/.default",
    )
    ca: Path | None = table.key(
        "http.oidc.ca",
        PATH,
        "Certificates (PEM) to trust for the server.",
        default_note="those of the system",
        example="tls/ca.pem",
    )

    @property
    def of_commands(self) -> TokenLogin:
        """The login of commands by access tokens of the server."""
        return TokenLogin(
            issuer=self.issuer,
            client_id=self.command_id,
            secret=self.command_secret,
            scope=self.command_scope,
            ca=self.ca,
        )


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """`http.session.*`: the end of the sessions of browsers."""

    idle_seconds: float = table.key(
        "http.session.idle",
        duration("1m", "30d"),
        "Time after which a session of `http.oidc.issuer` ends in which no page is opened.",
        default="1h",
    )
    most_seconds: float = table.key(
        "http.session.max",
        duration("1m", "30d"),
        "Time after which it ends in any case. Until then, groups that the user loses at the server still count.",
        default="12h",
    )


@dataclass(frozen=True, slots=True)
class ProxyConfig:
    """`http.proxy.*`: a proxy in front of the pages that has logged the user in."""

    user_header: str | None = table.key(
        _USER,
        HEADER,
        "Header in which a proxy says who has logged in ([how](security.md#users-of-a-proxy)).",
        example="X-Forwarded-User",
    )
    """Name in lower case; None: no proxy logs users in."""
    groups_header: str | None = table.key(
        _GROUPS, HEADER, "Header with the groups of that user, separated by commas.", example="X-Forwarded-Groups"
    )
    address_header: str | None = table.key(
        _ADDRESS,
        HEADER,
        "Header with the address of the proxy's client, for audits and for the wait after wrong logins; of several "
        "addresses, the last one. From other addresses than `http.proxy.trusted` it is ignored.",
        default_note="the address of the proxy counts",
        example="X-Forwarded-For",
    )
    trusted: tuple[Network, ...] = table.key(
        _TRUSTED,
        NETWORKS,
        "Addresses of the proxy. From all others, requests with its header of the user or the groups are refused.",
        example="10.1.2.3, 10.1.0.0/16",
        made=lambda value, *_: value or (),
        value=(),
    )


def has_login(settings: Settings) -> bool:
    """Returns True if somebody can log in who may change something."""
    return any(map(settings.is_set, _LOGINS))


def http_oidc(settings: Settings) -> None:
    """Checks that the client of an OpenID Connect server is whole, and has a public address that others cannot read."""
    if not settings.is_set(_ISSUER):
        for key in (*_OF_OIDC, *_OF_COMMANDS):
            if settings.is_set(f"http.oidc.{key}"):
                settings.fault(f"http.oidc.{key}", "", "a client without a server", f"set {_ISSUER}")
        return
    for key, what in (("http.oidc.client.id", "a client id"), (_URL, "the address that browsers know")):
        if not settings.is_set(key):
            settings.fault(_ISSUER, "", f"a login without {what}", f"set {key}")
    _commands(settings)
    if "openid" not in (settings.get("http.oidc.scopes") or "openid").split():
        settings.fault("http.oidc.scopes", "", "a login without the scope openid has no ID token", "add openid")
    ca, url = settings.get("http.oidc.ca"), settings.get(_URL)
    if ca is not None and not settings.has_file(ca):
        settings.fault("http.oidc.ca", "", f"there is no file '{ca}'", f"looked for {settings.base / ca}")
    scheme, _, authority = (url or "").partition("://")
    if scheme == "http" and not is_loopback(host_of(authority) or "") and not settings.get("http.insecure"):
        message = "others on the network can read the session of a user"
        settings.fault(_URL, "", message, "use https, or http.insecure=true where the network is closed to others")


def _commands(settings: Settings) -> None:
    """Checks that the client of commands is whole, and that pages take its tokens."""
    client, secret, scope = (f"http.oidc.{key}" for key in _OF_COMMANDS)
    for key, other in ((client, secret), (secret, client), (scope, client)):
        if settings.is_set(key) and not settings.is_set(other):
            settings.fault(key, "", f"a client without {other}", f"set {other}")
    if settings.is_set(client) and not settings.is_set("http.oidc.audiences"):
        message = "pages take no token of another client without http.oidc.audiences"
        settings.fault(client, "", message, "set http.oidc.audiences to the audience of its tokens")


def http_proxy(settings: Settings) -> None:
    """Checks that the headers of a proxy count only from addresses that are named, and come with groups."""
    for key, other in ((_USER, _TRUSTED), (_USER, _GROUPS), (_GROUPS, _USER), (_ADDRESS, _TRUSTED)):
        if settings.is_set(key) and not settings.is_set(other):
            settings.fault(key, "", f"'{key}' has no effect without {other}", f"set {other}")
    if settings.is_set(_TRUSTED) and not (settings.is_set(_USER) or settings.is_set(_ADDRESS)):
        settings.fault(_TRUSTED, "", "nothing is trusted to the proxy", f"set {_USER} or {_ADDRESS}")
    if settings.is_set(_USER) and settings.get(_USER) == settings.get(_GROUPS):
        settings.fault(_GROUPS, "", "the header of the user", "name another one")


def http_users(settings: Settings) -> None:
    """Checks that users of others have groups with a role, and groups users."""
    sources = [key for key in (_ISSUER, _USER) if settings.is_set(key)]
    given = [key for key in _OF_ROLES if settings.is_set(key)]
    if sources and not given:
        settings.fault(sources[0], "", "nobody may log in: no group has a role", f"set {' or '.join(_OF_ROLES)}")
    if given and not sources:
        settings.fault(given[0], "", "nobody has groups", f"set {_ISSUER} or {_USER}")
