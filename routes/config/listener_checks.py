"""Checks of a source or sink that listens itself, for AMQP clients to connect to."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from routes.config.http_checks import is_loopback
from routes.errors import Level

if TYPE_CHECKING:
    from routes.config.binding import Settings

__all__ = ["ANY", "listeners"]

ANY = "*"
"""Stands for all destinations of a listener: clients may send anywhere."""

_WITHOUT = {
    "url": ("it either connects to a broker or listens", "keep one of the two"),
    "selector": ("clients send what they like, no broker applies a selector", "put it into routes.NAME.in.include"),
    "subscription": ("clients send to it, it subscribes nowhere", "remove the line"),
    "virtual-host": ("it is no client of a broker", "remove the line"),
    "reply-to": ("there is no broker beside it that could take replies", "remove the line"),
}
"""Keys that a listener cannot have, with reason and hint."""
_ONLY = ("max-clients", "transaction-timeout")
"""Keys that only a listener has."""


def listeners(settings: Settings) -> None:
    """Checks that a listener is one process, and with TLS has a certificate."""
    for section in ("source", "sink"):
        for name in settings.names(section):
            own = f"{section}.NAME."
            where = settings.get(f"{own}listen", name)
            if where is None:
                _without_clients(settings, section, name)
                continue
            for part, (why, hint) in _WITHOUT.items():
                if settings.is_set(f"{own}{part}", name):
                    settings.fault(f"{own}{part}", name, f"a listener has no {part}: {why}", hint)
            _guarded(settings, section, name, where)
            if settings.get(f"{own}workers", name) not in (None, 1):
                hint = "one process serves many clients"
                settings.fault(f"{own}workers", name, "a listener has one worker: its port is one process's", hint)
            if where.startswith("amqps:") and not settings.is_set(f"{own}tls.certificate", name):
                hint = f"set {section}.{name}.tls.certificate and {section}.{name}.tls.key"
                settings.fault(f"{own}listen", name, "TLS without a certificate to show to clients", hint)


def _without_clients(settings: Settings, section: str, name: str) -> None:
    """Adds faults for keys that only a listener has."""
    for part in _ONLY:
        if settings.is_set(f"{section}.NAME.{part}", name):
            hint = f"remove the line, or set {section}.{name}.listen"
            settings.fault(f"{section}.NAME.{part}", name, f"{part} is for a listener: no client connects", hint)


def _guarded(settings: Settings, section: str, name: str, where: str) -> None:
    """Warns of a listener that other machines can reach without login or TLS.

    A user name without a password is a fault, since it would be no login at all.
    """
    own = f"{section}.NAME."
    has_login = settings.is_set(f"{own}username", name)
    if has_login and not settings.is_set(f"{own}password", name):
        hint = f"set {section}.{name}.password"
        settings.fault(f"{own}username", name, "a listener with a user name and no password lets in who knows it", hint)
    entry = settings.entry(f"{own}listen", name)
    if entry is None or is_loopback(urlsplit(where).hostname or ""):
        return
    if where.startswith("amqp:"):
        hint = f"write {section}.{name}.listen=amqps://… with tls.certificate and tls.key"
        message = "other machines can reach this listener, and there is no TLS"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))
    if not has_login and not settings.is_set(f"{own}tls.ca", name):
        message = "other machines can reach this listener, and nobody has to log in"
        hint = f"set {section}.{name}.username and {section}.{name}.password, or tls.ca for certificates"
        settings.faults.append(entry.fault(message, hint, level=Level.WARNING))
