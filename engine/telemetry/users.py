"""Users who log in over HTTP: names, roles by their groups, and what is shown to those who may not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import PlainTextResponse, Response

from engine.printable import listed
from engine.telemetry.roles import UserRole
from routes.errors import BridgeError
from routes.keys.addresses import host_of

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from engine.telemetry.http_section import HttpConfig

__all__ = [
    "LoginNote",
    "LoginPage",
    "LoginUser",
    "ProxyLogin",
    "UserRefusedError",
    "opens_page",
    "plain_note",
    "user_of",
]

_MOST_NAME = 200


class LoginUser(NamedTuple):
    """User of a request."""

    name: str
    """User name; the key of the configuration for a token, empty if no login is needed."""
    role: UserRole
    session: str = ""
    """Secret of the browser's session; empty for other logins."""


class UserRefusedError(BridgeError):
    """Error for somebody who is known, and may not use the pages."""


@dataclass(frozen=True, slots=True)
class LoginNote:
    """Page for somebody who is not logged in."""

    status: int
    title: str
    text: str
    link: str = "/login"
    """Address of the next step; empty without one."""
    label: str = "Log in"
    follows: bool = False
    """True if the browser goes on to the next step by itself."""


LoginPage = Callable[[LoginNote], Response]
"""Function that makes the answer with a note."""


def opens_page(headers: Headers) -> bool:
    """Returns True if a user opens a page: no script of a page asks, as far as the browser says which is which."""
    return headers.get("sec-fetch-mode", "navigate") == "navigate"


def plain_note(note: LoginNote) -> Response:
    """Makes the answer with a note, as plain text."""
    return PlainTextResponse(f"{note.text}\n", status_code=note.status)


def user_of(name: str, groups: Collection[str], config: HttpConfig) -> LoginUser:
    """Returns a user with the highest role of the groups.

    Raises:
        UserRefusedError: none of the groups has a role.
    """
    for role, wanted in ((UserRole.OPERATOR, config.operator_groups), (UserRole.VIEWER, config.viewer.groups)):
        if not set(wanted).isdisjoint(groups):
            return LoginUser(name[:_MOST_NAME], role)
    keys = {"http.viewer.groups": config.viewer.groups, "http.operator.groups": config.operator_groups}
    needed = " or ".join(f"{listed(list(names))} ({key})" for key, names in keys.items() if names)
    has = listed(sorted(groups)) if groups else "no group"
    msg = f"{name[:_MOST_NAME]} needs one of the groups {needed}, and the login has {has}"
    raise UserRefusedError(msg)


class ProxyLogin:
    """Headers of a proxy in front, which say who has logged in there, and from which address."""

    def __init__(self, config: HttpConfig) -> None:
        self._config = config

    def user(self, headers: Headers, address: str) -> LoginUser | None:
        """Returns the user whom a proxy names, None if it names nobody; `address` is that of the connection.

        Raises:
            UserRefusedError: the headers come from somebody else, come twice, or none of the groups has a role.
        """
        proxy = self._config.proxy
        names = [name for name in (proxy.user_header, proxy.groups_header) if name and name in headers]
        if not names:
            return None
        if not self._trusts(address):
            msg = f"the header {names[0]} counts only from the addresses in http.proxy.trusted, not from {address}"
            raise UserRefusedError(msg)
        for name in names:
            if len(headers.getlist(name)) > 1:
                msg = f"the header {name} is there twice; has the proxy to remove that of its client?"
                raise UserRefusedError(msg)
        user = headers.get(proxy.user_header or "", "").strip()
        groups = [group.strip() for group in headers.get(proxy.groups_header or "", "").split(",")]
        return user_of(user, list(filter(None, groups)), self._config) if user else None

    def client(self, headers: Headers, address: str) -> str:
        """Returns the address of the client: the last one that a trusted proxy names, else that of the connection."""
        name = self._config.proxy.address_header
        if name is None or name not in headers or not self._trusts(address):
            return address
        last = headers.getlist(name)[-1].rpartition(",")[2].strip()
        for text in (last, host_of(last) or ""):
            with suppress(ValueError):
                return str(ip_address(text))
        return address

    def _trusts(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if isinstance(found, IPv6Address) and found.ipv4_mapped:
            found = found.ipv4_mapped
        return any(found in network for network in self._config.proxy.trusted)
