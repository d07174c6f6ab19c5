"""Access control of the HTTP server: clients show a token, or a user name and its password, and have a role by it.

If no login is configured, requests have to name this machine in their `Host` header: otherwise a web page could point
its own host name at a loopback address (DNS rebinding) and read what the browser is shown.
"""

from __future__ import annotations

import hmac
import time
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse

from engine.telemetry.client import credentials
from engine.telemetry.roles import ROLE, UserRole, needed_role
from routes.keys.addresses import host_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from engine.telemetry.http_section import HttpConfig

__all__ = ["LOGIN", "HttpLogin", "WrongLogins"]

LOGIN = "jmsbridge.login"
"""Key in a request's scope: the user name; the key of the configuration for a token, empty if no login is needed."""

_REALM = 'realm="jms-bridge", charset="UTF-8"'
_FREE = 10
"""Number of wrong logins in a row that an address may make without having to wait."""
_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_FORGOTTEN_SECONDS = 600.0
"""Wrong logins of an address are forgotten this long after the last one."""
_MOST_ADDRESSES = 1000
_NETWORK_BITS = 64
"""Network part of an IPv6 address; a client is free to choose the rest."""
_STRANGER = (
    "this page is known by the names of its own machine only, as 127.0.0.1 or localhost; "
    "to show it under others set http.username and http.password\n"
)
_log = structlog.get_logger(__name__)


class _Login(NamedTuple):
    """A login that is accepted."""

    scheme: str
    """Scheme of `Authorization`, in lower case."""
    shown: bytes
    """Credentials behind the scheme."""
    user: str
    role: UserRole


class HttpLogin:
    """ASGI middleware that lets a request through if it carries a valid login or its path is open to all.

    Other requests are answered here: 401 asks for a login, 403 refuses a request that needs another role, 429 tells an
    address with many wrong logins to wait, 421 refuses a host name that is not this machine's.
    """

    def __init__(self, app: ASGIApp, config: HttpConfig, open_paths: frozenset[str]) -> None:
        self._app = app
        self._open = open_paths
        self._logins = _logins(config)
        self._is_local = is_loopback(config.host)
        self._wrong = WrongLogins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request to the application, or answers it.

        Without a configured login, a server on a loopback address passes only requests whose `Host` header names this
        machine; a server on any other address passes all.
        """

        async def unsniffed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            await send(message)

        headers = Headers(scope=scope)
        who, role = "", UserRole.OPERATOR
        answer: Response | None = None
        if scope["path"] not in self._open:
            if self._logins:
                login, answer = self._checked(headers, _address(scope))
                if login is not None:
                    who, role = login.user, login.role
                    answer = _refusal(scope, headers, login)
            elif self._is_local and not _is_here(headers.get("host", "")):
                answer = PlainTextResponse(_STRANGER, status_code=421)
        if answer is None:
            await self._app({**scope, LOGIN: who, ROLE: role}, receive, unsniffed)
        else:
            await answer(scope, receive, unsniffed)

    def _checked(self, headers: Headers, address: str) -> tuple[_Login | None, PlainTextResponse | None]:
        """Checks a request's login: returns the login and None, or None and the answer that refuses it."""
        shown = "authorization" in headers
        # Decided before the login is checked: while the address waits, the answer does not tell a right login from a
        # wrong one.
        if shown and (seconds := ceil(self._wrong.wait_seconds(address))):
            text = f"too many wrong logins; try again in {seconds} s\n"
            return None, PlainTextResponse(text, status_code=429, headers={"Retry-After": str(seconds)})
        login = self._admitted(headers)
        if login is not None:
            self._wrong.forget(address)
            return login, None
        if shown:
            self._wrong.add(address)
        answer = PlainTextResponse("log in\n", status_code=401)
        for scheme in dict.fromkeys(login.scheme for login in self._logins):
            answer.headers.append("WWW-Authenticate", f"{scheme.title()} {_REALM}")
        return None, answer

    def _admitted(self, headers: Headers) -> _Login | None:
        """The login that a request shows; None if it is not one of those accepted."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        given, found = shown.strip().encode(), None
        for login in self._logins:
            # The comparison takes equally long for a wrong and a right login.
            if login.scheme == scheme.lower() and hmac.compare_digest(given, login.shown):
                found = login
        return found


class WrongLogins:
    """Wrong logins by client address, and the time that each address has to wait. Bounded in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns monotonic seconds."""
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}
        """By address, the number of wrong logins in a row and the time of the last; newest addresses at the end."""

    def wait_seconds(self, address: str) -> float:
        """Seconds from now on in which logins of an address are not checked; 0 if they are."""
        count, last = self._counts.get(address, (0, 0.0))
        if count < _FREE:
            return 0.0
        # A large exponent would overflow a float.
        pause = min(_FIRST_SECONDS * 2.0 ** min(count - _FREE, 10), _LONGEST_SECONDS)
        return max(last + pause - self._clock(), 0.0)

    def add(self, address: str) -> None:
        """Counts a wrong login of an address."""
        now = self._clock()
        count, last = self._counts.pop(address, (0, now))
        self._counts[address] = (1 if now - last > _FORGOTTEN_SECONDS else count + 1), now
        if len(self._counts) > _MOST_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        if pause := self.wait_seconds(address):
            _log.warning("wrong logins over HTTP: the address has to wait", address=address, seconds=pause)

    def forget(self, address: str) -> None:
        """Forgets the wrong logins of an address, after a right one."""
        self._counts.pop(address, None)


def _logins(config: HttpConfig) -> tuple[_Login, ...]:
    """The logins of a configuration; empty if none is needed."""
    viewer = config.viewer
    of_roles = (
        (UserRole.OPERATOR, credentials(config), {"bearer": "http.token", "basic": config.username or ""}),
        (UserRole.VIEWER, credentials(viewer), {"bearer": "http.viewer.token", "basic": viewer.username or ""}),
    )
    return tuple(
        _Login(scheme, shown, users[scheme], role) for role, found, users in of_roles for scheme, shown in found.items()
    )


def _refusal(scope: Scope, headers: Headers, login: _Login) -> Response | None:
    """The answer to a request that needs another role than that of its login; None if the role is enough."""
    needed = needed_role(scope["method"], scope["path"])
    if login.role >= needed:
        return None
    text = f"this needs the role {needed}, and {login.user} is a {login.role}; log in as another user"
    _log.warning("request refused", user=login.user, role=str(login.role), needs=str(needed), path=scope["path"])
    if "x-jms-bridge" in headers or scope["path"].startswith("/api/"):
        return JSONResponse({"error": text}, status_code=403)
    return PlainTextResponse(text + "\n", status_code=403)


def _address(scope: Scope) -> str:
    """The client's address; for IPv6 its /64 network, within which a client is free to choose its address."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(address)


def _is_here(host: str) -> bool:
    """True if a `Host` header names this machine, by a loopback name or address."""
    return is_loopback(host_of(host) or "")
