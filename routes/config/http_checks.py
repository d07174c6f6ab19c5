"""What must hold between the keys of `http`: nobody on another machine reads figures without a login and TLS."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from routes.config.binding import Settings

__all__ = ["HTTP_CHECKS", "is_loopback"]

_CLOSED = "or http.insecure=true where the network is closed to others"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than `localhost` may lead anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def login(settings: Settings) -> None:
    """A name and its password belong together, and a name has no colon, which ends it on the wire (RFC 7617)."""
    name, password = "http.username", "http.password"
    if settings.is_set(name) and not settings.is_set(password):
        settings.fault(name, "", "a user name without a password", "set http.password")
    if settings.is_set(password) and not settings.is_set(name):
        settings.fault(password, "", "a password without a user name", "set http.username")
    if ":" in (settings.get(name) or ""):
        settings.fault(name, "", "a user name with a colon", "choose one without")


def tls(settings: Settings) -> None:
    """Certificate and private key are there, both."""
    for part, other in (("certificate", "key"), ("key", "certificate")):
        key, path = f"http.tls.{part}", settings.get(f"http.tls.{part}")
        if settings.is_set(key) and not settings.is_set(f"http.tls.{other}"):
            what = "its private key" if other == "key" else "its certificate"
            settings.fault(key, "", f"a {part.replace('key', 'private key')} without {what}", f"set http.tls.{other}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")


def reach(settings: Settings) -> None:
    """An address that others can reach has a login and TLS, or somebody has said that it need not."""
    address = settings.get("http.address")
    if address is None or is_loopback(address[0]) or settings.get("http.insecure"):
        return
    if not (settings.is_set("http.token") or settings.is_set("http.username")):
        message = "other machines can reach this address, and nobody has to log in"
        hint = f"set http.token, or http.username and http.password; {_CLOSED}"
        settings.fault("http.address", "", message, hint)
    if not settings.is_set("http.tls.certificate"):
        message = "other machines can reach this address, and there is no TLS"
        settings.fault("http.address", "", message, f"set http.tls.certificate and http.tls.key; {_CLOSED}")


HTTP_CHECKS = (login, tls, reach)
