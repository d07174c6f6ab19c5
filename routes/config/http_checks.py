"""Checks between the keys of `http`: pages that other machines can reach need a login."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routes.keys.addresses import is_loopback

if TYPE_CHECKING:
    from routes.keys.settings import Settings

__all__ = ["HTTP_CHECKS"]

_CLOSED = "or http.insecure=true where the network is closed to others"
_LOGIN = (
    "set http.token, or http.username and http.password; for probes and Prometheus alone there is http.metrics-address"
)


def login(settings: Settings) -> None:
    """Checks that user name and password are both set, and that the name has no colon.

    A colon ends the name on the wire (RFC 7617).
    """
    name, password = "http.username", "http.password"
    if settings.is_set(name) and not settings.is_set(password):
        settings.fault(name, "", "a user name without a password", "set http.password")
    if settings.is_set(password) and not settings.is_set(name):
        settings.fault(password, "", "a password without a user name", "set http.username")
    if ":" in (settings.get(name) or ""):
        settings.fault(name, "", "a user name with a colon", "choose one without")


def tls(settings: Settings) -> None:
    """Checks that certificate and private key are both set and exist."""
    for part, other in (("certificate", "key"), ("key", "certificate")):
        key, path = f"http.tls.{part}", settings.get(f"http.tls.{part}")
        if settings.is_set(key) and not settings.is_set(f"http.tls.{other}"):
            what = "its private key" if other == "key" else "its certificate"
            settings.fault(key, "", f"a {part.replace('key', 'private key')} without {what}", f"set http.tls.{other}")
        if path is not None and not settings.has_file(path):
            settings.fault(key, "", f"there is no file '{path}'", f"looked for {settings.base / path}")


def reach(settings: Settings) -> None:
    """Checks that pages which other machines can reach have a login, and TLS unless their network is closed.

    `http.insecure` declares that it is.
    """
    address, metrics = settings.get("http.address"), settings.get("http.metrics-address")
    is_closed = settings.get("http.insecure")
    if address is not None and not is_loopback(address[0]):
        if not (settings.is_set("http.token") or settings.is_set("http.username")):
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


HTTP_CHECKS = (login, tls, reach)
