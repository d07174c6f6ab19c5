"""Section `http` of a configuration: the address of the pages, and the login for them."""

from __future__ import annotations

from dataclasses import KW_ONLY, MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.telemetry.login_section import (
    COMMAND_KEYS,
    OidcConfig,
    ProxyConfig,
    SessionConfig,
    has_login,
    http_oidc,
    http_proxy,
    http_users,
)
from routes.keys import table
from routes.keys.addresses import HOST_PORT, PEERS, is_loopback
from routes.keys.language import MASKED
from routes.keys.logins import NAMES, PUBLIC_URL
from routes.keys.values import FLAG, PATH, RETENTION, TEXT, TOKEN
from routes.section_registry import Section

if TYPE_CHECKING:
    from routes.keys.addresses import Peer
    from routes.keys.settings import Settings
    from routes.predicate.nodes import ValuePath

__all__ = ["KEY", "SECTION", "HttpConfig", "ViewerConfig"]

KEY = "key"
"""Name in `http.viewer.mask` that stands for the keys of records, and for a property of that name."""

_VIEWER = "http.viewer."
_WORDS = {"token": "token", "username": "user name"}
_DESTINATION = "JMSDestination"
_CLOSED = "or http.insecure=true where the network is closed to others"
_LOGIN = (
    "set http.token, http.oidc.issuer, or http.username and http.password; for probes and Prometheus alone there is "
    "http.metrics-address"
)


@dataclass(frozen=True, slots=True)
class ViewerConfig:
    """`http.viewer.*`: the login of those who may look and change nothing, and the values that they do not see."""

    token: str | None = table.key(
        "http.viewer.token",
        TOKEN,
        "Token of a viewer, who may look at all pages and change nothing ([roles](security.md#roles)).",
        example="${file:viewer.token}",
    )
    username: str | None = table.key("http.viewer.username", TEXT, "User name of a viewer.", example="support")
    password: str | None = table.key(
        "http.viewer.password", TEXT, "Password of the viewer.", example="${env:VIEWER_PASSWORD}"
    )
    groups: tuple[str, ...] = table.key(
        "http.viewer.groups",
        NAMES,
        "Groups whose users are viewers, if an OpenID Connect server or a proxy logs them in. A group with a comma in "
        "it is written in double quotes.",
        example='support, "CN=auditors,OU=it"',
        made=lambda value, *_: value or (),
        value=(),
    )
    masked: tuple[str | ValuePath, ...] = table.key(
        "http.viewer.mask",
        MASKED,
        "Values that viewers do not see, separated by commas: headers and properties by their names, values in JSON "
        "and XML bodies by their paths, `msg.body` for whole bodies, and `key` for the keys of records. See "
        "[masks for viewers](security.md#masks-for-viewers).",
        example="iban, msg.body.card, xpath('/order/card'), key",
        made=lambda value, *_: value or (),
        value=(),
    )
    """Names of headers, and paths into bodies."""

    @property
    def has_login(self) -> bool:
        """True if viewers can log in."""
        return self.token is not None or self.username is not None


@dataclass(frozen=True, slots=True)
class HttpConfig:
    """`http.*`: the address at which metrics and health are served, and the login for them."""

    host: str = table.key(
        "http.address",
        HOST_PORT,
        "Address of the status page, `/metrics`, `/health` and `/ready`. If other machines can reach it, a login and "
        "TLS are required.",
        default="127.0.0.1:8480",
        made=lambda address, *_: address[0],
        value=MISSING,
    )
    port: int = table.made_of("http.address", lambda address, *_: address[1])
    _: KW_ONLY
    metrics_host: str | None = table.key(
        "http.metrics-address",
        HOST_PORT,
        "Second address for `/metrics`, `/health` and `/ready` alone, without a login and TLS: for probes and "
        "Prometheus. If other machines can reach it, `http.insecure=true` is required.",
        example="0.0.0.0:8481",
        made=lambda address, *_: address and address[0],
    )
    """Host of a second address for metrics and health, without login and TLS; None: there is none."""
    metrics_port: int = table.made_of("http.metrics-address", lambda address, *_: address[1] if address else 0, 0)
    peers: tuple[Peer, ...] = table.key(
        "http.peers",
        PEERS,
        "The `http.address` of the other hosts on which parts of this bridge run (`run --only`): the status page and "
        "`jms-bridge status` show their parts too. This host may be in the list as well, so that all hosts can have "
        "the same list. Peers are asked with the login and the TLS of this file.",
        example="edge-1.example:8480, edge-2.example:8480",
        made=lambda peers, *_: peers or (),
        value=(),
    )
    token: str | None = table.key(
        "http.token", TOKEN, "Login by a token (`Authorization: Bearer`).", example="${file:metrics.token}"
    )
    username: str | None = table.key(
        "http.username",
        TEXT,
        "User name of a login by name and password, for which browsers ask.",
        example="prometheus",
    )
    password: str | None = table.key("http.password", TEXT, "Password of the login.", example="${env:METRICS_PASSWORD}")
    operator_groups: tuple[str, ...] = table.key(
        "http.operator.groups",
        NAMES,
        "Groups whose users are operators, likewise.",
        example="bridge-operators",
        made=lambda value, *_: value or (),
        value=(),
    )
    viewer: ViewerConfig = table.part(ViewerConfig, ViewerConfig())
    public_url: str | None = table.key(
        "http.url",
        PUBLIC_URL,
        "Address of the pages as browsers know it, such as that of a proxy. Required by `http.oidc.issuer`, whose "
        "server sends browsers back to `/login/callback` there.",
        example="https://bridge.example.com",
    )
    """Scheme, host and port, without a slash at the end; None: it is not known."""
    oidc: OidcConfig = table.part(OidcConfig, OidcConfig())
    session: SessionConfig = table.part(SessionConfig, SessionConfig())
    proxy: ProxyConfig = table.part(ProxyConfig, ProxyConfig())
    looks_retention_ms: int = table.key(
        "http.looks-retention",
        RETENTION,
        "Time for which the audits of [looks](security.md#audit-of-looks) and [actions](security.md#audit-of-actions) "
        "keep their entries. Takes effect when the bridge creates their topics.",
        default="90d",
        made=lambda seconds, *_: round(seconds * 1000),
    )
    """Milliseconds; -1: for ever."""
    certificate: Path | None = table.key(
        "http.tls.certificate",
        PATH,
        "Certificate (PEM) of this server; with it, all pages are served over TLS.",
        example="tls/http.pem",
    )
    """Certificate for TLS; None: without TLS."""
    key: Path | None = table.key(
        "http.tls.key", PATH, "Private key of the certificate (PEM, not encrypted).", example="tls/http.key"
    )
    insecure: bool = table.key(
        "http.insecure",
        FLAG,
        "`true` allows other machines to reach `http.address` without TLS, though never without a login, and "
        "`http.metrics-address`: in a container whose network is closed, or behind a proxy that has TLS.",
        default="false",
    )


def _has_own_login(settings: Settings) -> bool:
    """True if the file has the login of an operator, with which commands and peers ask as well."""
    return any(map(settings.is_set, ("http.token", "http.username", f"{COMMAND_KEYS}client.id")))


def http_login(settings: Settings) -> None:
    """Checks that user names and passwords are set together, and that no name has a colon.

    A colon ends the name on the wire (RFC 7617).
    """
    for prefix in ("http.", _VIEWER):
        name, password = f"{prefix}username", f"{prefix}password"
        if settings.is_set(name) and not settings.is_set(password):
            settings.fault(name, "", "a user name without a password", f"set {password}")
        if settings.is_set(password) and not settings.is_set(name):
            settings.fault(password, "", "a password without a user name", f"set {name}")
        if ":" in (settings.get(name) or ""):
            settings.fault(name, "", "a user name with a colon", "choose one without")


def http_viewer(settings: Settings) -> None:
    """Checks that a viewer's login is not the operator's, that there is one of each, and that masks have a viewer."""
    logins = [key for key in ("token", "username") if settings.is_set(_VIEWER + key)]
    if logins and not (_has_own_login(settings) or settings.is_set("http.operator.groups")):
        message = "a viewer's login, and none of an operator, who alone may change something"
        settings.fault(_VIEWER + logins[0], "", message, "set http.token, or http.username and http.password")
    for key in logins:
        if settings.is_set(f"http.{key}") and settings.get(_VIEWER + key) == settings.get(f"http.{key}"):
            settings.fault(_VIEWER + key, "", f"the {_WORDS[key]} of the operator", "choose another")
    mask = f"{_VIEWER}mask"
    if settings.is_set(mask) and not logins and not settings.is_set(f"{_VIEWER}groups"):
        hint = "set http.viewer.token, http.viewer.groups, or http.viewer.username and http.viewer.password"
        message = "nobody is a viewer"
        settings.fault(mask, "", message, hint)
    if _DESTINATION in (settings.get(mask) or ()):
        message = f"'{_DESTINATION}' is in metrics and in names of topics, so it cannot be hidden"
        settings.fault(mask, "", message, "remove it from the list")


def http_tls(settings: Settings) -> None:
    """Checks that certificate and private key are both set and exist."""
    for part, other in (("certificate", "key"), ("key", "certificate")):
        key, path = f"http.tls.{part}", settings.get(f"http.tls.{part}")
        if settings.is_set(key) and not settings.is_set(f"http.tls.{other}"):
            what = "its private key" if other == "key" else "its certificate"
            settings.fault(key, "", f"a {part.replace('key', 'private key')} without {what}", f"set http.tls.{other}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")


def http_reach(settings: Settings) -> None:
    """Checks that pages which other machines can reach have a login, and TLS unless their network is closed.

    `http.insecure` declares that it is.
    """
    address, metrics = settings.get("http.address"), settings.get("http.metrics-address")
    is_closed = settings.get("http.insecure")
    if address is not None and not is_loopback(address[0]):
        if not has_login(settings):
            message = "other machines can reach this address, and nobody has to log in"
            settings.fault("http.address", "", message, _LOGIN)
        if not settings.is_set("http.tls.certificate") and not is_closed:
            message = "other machines can reach this address, and there is no TLS"
            settings.fault("http.address", "", message, f"set http.tls.certificate and http.tls.key; {_CLOSED}")
    if metrics is None:
        return
    if not is_loopback(metrics[0]) and not is_closed:
        message = "other machines can reach this address, which has no login and no TLS"
        settings.fault("http.metrics-address", "", message, f"choose one of this machine; {_CLOSED}")


def http_peers(settings: Settings) -> None:
    """Checks that peers are other hosts, and that they get the login over TLS unless the network is closed."""
    peers = settings.get("http.peers") or ()
    if peers and all(peer == settings.get("http.address") for peer in peers):
        message = f"'{peers[0]}' is the address of this bridge itself"
        settings.fault("http.peers", "", message, "name the other hosts, or remove the key")
    is_private = settings.is_set("http.tls.certificate") or settings.get("http.insecure")
    if _has_own_login(settings) and not is_private and not all(is_loopback(peer.host) for peer in peers):
        message = "other machines are sent the login, and there is no TLS"
        settings.fault("http.peers", "", message, f"set http.tls.certificate and http.tls.key; {_CLOSED}")


SECTION = Section(
    about="The [status page](status-page.md), metrics and health. `/health` is open to everybody, so that probes "
    "need no login, and says only that the "
    "bridge is alive, whether it leads and how many dead letters are open; with a login configured all other pages ask "
    "for it.",
    settings=HttpConfig,
    checks=(http_login, http_viewer, http_oidc, http_proxy, http_users, http_tls, http_reach, http_peers),
    listens=("http.address", "http.metrics-address"),
)
