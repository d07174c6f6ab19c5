"""Who may see the pages of the HTTP server: clients that show a token, or a name and its password.

Where no login is configured, requests have to name this machine: else any page on the internet could have its own name
lead to a loopback address (DNS rebinding) and read what a browser is shown.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64encode
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from routes.config.http_checks import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from routes.model import HttpConfig

__all__ = ["LOGIN", "HttpLogin", "WrongLogins", "credentials"]

LOGIN = "jmsbridge.login"
"""In the scope of a request: who has logged in, by name; `http.token` for a token, empty where nobody has to."""

_REALM = 'realm="jms-bridge", charset="UTF-8"'
_FREE = 10
"""Wrong logins in a row before an address has to wait."""
_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_FORGOTTEN_SECONDS = 600.0
"""After the last wrong login of an address."""
_MOST_ADDRESSES = 1000
_NETWORK_BITS = 64
"""Of an IPv6 address: the rest is its user's to choose."""
_STRANGER = (
    "this page is known by the names of its own machine only, as 127.0.0.1 or localhost; "
    "to show it under others set http.username and http.password\n"
)
_log = structlog.get_logger(__name__)


class HttpLogin:
    """Answers in place of an application, except where a request shows a login or its path is open to all.

    401 asks for a login, 429 tells an address with many wrong ones to wait, 421 refuses a name of another machine.
    """

    def __init__(self, app: ASGIApp, config: HttpConfig, open_paths: frozenset[str]) -> None:
        self._app = app
        self._open = open_paths
        self._wanted = credentials(config)
        self._names = {"bearer": "http.token", "basic": config.username or ""}
        self._is_local = is_loopback(config.host)
        self._wrong = WrongLogins()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Where no login is configured, every client of this machine's names is let in."""

        async def unsniffed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            await send(message)

        headers = Headers(scope=scope)
        who, answer = "", None
        if scope["path"] not in self._open:
            if self._wanted:
                who, answer = self._checked(headers, _address(scope))
            elif self._is_local and not _is_here(headers.get("host", "")):
                answer = PlainTextResponse(_STRANGER, status_code=421)
        if answer is None:
            await self._app({**scope, LOGIN: who}, receive, unsniffed)
        else:
            await answer(scope, receive, unsniffed)

    def _checked(self, headers: Headers, address: str) -> tuple[str, PlainTextResponse | None]:
        """Who shows a login that is taken, or the answer to a request without one."""
        shown = "authorization" in headers
        # Before it is looked at: a right login is not told from a wrong one meanwhile.
        if shown and (seconds := ceil(self._wrong.wait_seconds(address))):
            text = f"too many wrong logins; try again in {seconds} s\n"
            return "", PlainTextResponse(text, status_code=429, headers={"Retry-After": str(seconds)})
        who = self._admitted(headers)
        if who is not None:
            self._wrong.forget(address)
            return who, None
        if shown:
            self._wrong.add(address)
        answer = PlainTextResponse("log in\n", status_code=401)
        for scheme in self._wanted:
            answer.headers.append("WWW-Authenticate", f"{scheme.title()} {_REALM}")
        return "", answer

    def _admitted(self, headers: Headers) -> str | None:
        """Who shows a login that is taken; None if there is none."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        wanted = self._wanted.get(scheme.lower())
        # Takes as long for a wrong one as for a right one.
        if wanted is None or not hmac.compare_digest(shown.strip().encode(), wanted):
            return None
        return self._names[scheme.lower()]


class WrongLogins:
    """Addresses that have shown wrong logins, and for how long each has to wait. Bounded in memory."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}
        """By address how many there were in a row, and when the last one came; the newest address at the end."""

    def wait_seconds(self, address: str) -> float:
        """For how long logins of an address are not looked at, from now on; 0 if they are."""
        count, last = self._counts.get(address, (0, 0.0))
        if count < _FREE:
            return 0.0
        # A large exponent is an error for floats.
        pause = min(_FIRST_SECONDS * 2.0 ** min(count - _FREE, 10), _LONGEST_SECONDS)
        return max(last + pause - self._clock(), 0.0)

    def add(self, address: str) -> None:
        """Counts a wrong login."""
        now = self._clock()
        count, last = self._counts.pop(address, (0, now))
        self._counts[address] = (1 if now - last > _FORGOTTEN_SECONDS else count + 1), now
        if len(self._counts) > _MOST_ADDRESSES:
            del self._counts[next(iter(self._counts))]
        if pause := self.wait_seconds(address):
            _log.warning("wrong logins over HTTP: the address has to wait", address=address, seconds=pause)

    def forget(self, address: str) -> None:
        """Begins again after a right login."""
        self._counts.pop(address, None)


def credentials(config: HttpConfig) -> Mapping[str, bytes]:
    """What follows each scheme of `Authorization` that is taken (RFC 6750, RFC 7617)."""
    taken = {}
    if config.token:
        taken["bearer"] = config.token.encode()
    if config.username is not None:
        taken["basic"] = b64encode(f"{config.username}:{config.password or ''}".encode())
    return taken


def _address(scope: Scope) -> str:
    """Where a request comes from; for IPv6 the network, which has more addresses than can be counted."""
    host = scope["client"][0] if scope.get("client") else ""
    try:
        found = ip_address(host)
    except ValueError:
        return str(host)
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(found)


def _is_here(host: str) -> bool:
    """Whether a `Host` header names this machine."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
