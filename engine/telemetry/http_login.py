"""Access control of the HTTP server: clients show who they are, and have a role by it.

They show a token, a user name and its password, the session or token of an OpenID Connect server (`oidc_login`), or
come through a proxy that has logged them in (`users`).

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
from starlette.responses import JSONResponse, PlainTextResponse, Response

from engine.openid.client import OpenIdClient
from engine.openid.errors import TokenRefusedError
from engine.telemetry.client import credentials
from engine.telemetry.roles import ROLE, UserRole, needed_role
from engine.telemetry.users import LoginNote, LoginUser, ProxyLogin, UserRefusedError, opens_page, plain_note
from routes.errors import BridgeError
from routes.keys.addresses import host_of, is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from engine.telemetry.http_section import HttpConfig
    from engine.telemetry.oidc_login import OidcLogin
    from engine.telemetry.users import LoginPage

__all__ = ["LOGIN", "SESSION", "HttpLogin", "WrongLogins"]

LOGIN = "jmsbridge.login"
"""Key in a request's scope: the user name; the key of the configuration for a token, empty if no login is needed."""
SESSION = "jmsbridge.session"
"""Key in a request's scope: the secret of the browser's session; empty for other logins."""

_REALM = 'realm="jms-bridge", charset="UTF-8"'
_FREE = 10
"""Number of wrong logins in a row that an address may make without having to wait."""
_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 60.0
_FORGOTTEN_SECONDS = 600.0
"""Wrong logins of an address are forgotten this long after the last one."""
_MOST_ADDRESSES = 1000
_FILES = "/static/"
"""Beginning of the paths of files that the login's pages need, and that say nothing of the bridge."""
_EVERYBODY = LoginUser("", UserRole.OPERATOR)
"""User of each request if no login is configured, or none is needed."""
_NETWORK_BITS = 64
"""Network part of an IPv6 address; a client is free to choose the rest."""
_STRANGER = (
    "this page is known by the names of its own machine only, as 127.0.0.1 or localhost; "
    "to show it under others set http.username and http.password\n"
)
_ENDED = "your session has ended, and nothing was done: log in, and try again"
_log = structlog.get_logger(__name__)


class _Login(NamedTuple):
    """A login that is accepted."""

    scheme: str
    """Scheme of `Authorization`, in lower case."""
    shown: bytes
    """Credentials behind the scheme."""
    user: LoginUser


class HttpLogin:
    """ASGI middleware that lets a request through if it carries a valid login or its path is open to all.

    Other requests are answered here: 303 leads a browser to the login, 401 asks for one, 403 refuses a request that
    needs another role, 429 tells an address with many wrong logins to wait, 421 refuses a host name that is not this
    machine's.
    """

    def __init__(
        self,
        app: ASGIApp,
        config: HttpConfig,
        open_paths: frozenset[str],
        page: LoginPage = plain_note,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`page` makes the answers for users who are not logged in; `clock` returns monotonic seconds."""
        self._app = app
        self._open = open_paths
        self._page = page
        self._logins = _logins(config)
        self._is_local = is_loopback(config.host)
        self._wrong = WrongLogins(clock)
        self._proxy = ProxyLogin(config) if config.proxy.trusted else None
        self._oidc = _oidc_login(config, page, clock)
        self._is_open = not (self._logins or config.proxy.user_header or self._oidc)
        """True if nobody has to log in."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request to the application, or answers it.

        Without a configured login, a server on a loopback address passes only requests whose `Host` header names this
        machine; a server on any other address passes all.
        """

        async def unsniffed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["X-Content-Type-Options"] = "nosniff"
            await send(message)

        headers, peer = Headers(scope=scope), _host(scope)
        if self._proxy:
            scope = {**scope, "client": (self._proxy.client(headers, peer), 0)}
        found = await self._user(scope, headers, peer)
        if isinstance(found, Response):
            await found(scope, receive, unsniffed)
        else:
            known = {LOGIN: found.name, ROLE: found.role, SESSION: found.session}
            await self._app({**scope, **known}, receive, unsniffed)

    async def _user(self, scope: Scope, headers: Headers, peer: str) -> LoginUser | Response:
        """The user of a request, or the answer that refuses it; `peer` is the address of the connection."""
        if scope["path"] in self._open or (self._oidc and scope["path"].startswith(_FILES)):
            return _EVERYBODY
        if self._is_open:
            is_stranger = self._is_local and not _is_here(headers.get("host", ""))
            return PlainTextResponse(_STRANGER, status_code=421) if is_stranger else _EVERYBODY
        try:
            found = await self._known(scope, headers, peer)
        except UserRefusedError as error:
            _log.warning("request refused", reason=str(error), path=scope["path"])
            return self._forbidden(scope, headers, str(error))
        return found if isinstance(found, Response) else _refusal(scope, headers, found) or found

    async def _known(self, scope: Scope, headers: Headers, peer: str) -> LoginUser | Response:
        """The user whom a request shows in any way, or the answer to a wrong login or none.

        Raises:
            UserRefusedError: the user is known, and has no role.
        """
        if self._proxy and (user := self._proxy.user(headers, peer)):
            return user
        if self._oidc and (step := await self._login_step(self._oidc, scope)):
            return step
        if "authorization" in headers:
            return await self._checked(headers, _address(scope))
        if self._oidc and (user := self._oidc.session_user(scope)):
            return user
        # A script of a page is told, so that the page can say that it is out of date.
        if self._oidc is None or not (opens_page(headers) and _takes_page(headers)):
            return self._challenge("log in")
        if scope["method"] in ("GET", "HEAD"):
            return self._oidc.to_login(scope)
        return self._page(LoginNote(401, "Logged out", _ENDED))

    async def _login_step(self, oidc: OidcLogin, scope: Scope) -> Response | None:
        """The answer to a step of a login; a code that is refused counts as a wrong login."""
        has_code = scope["path"].startswith("/login/")
        if has_code and (seconds := ceil(self._wrong.wait_seconds(_address(scope)))):
            return _wait(seconds)
        answer = await oidc.answer(scope)
        if answer and has_code and answer.status_code in (400, 403):
            self._wrong.add(_address(scope))
        return answer

    async def _checked(self, headers: Headers, address: str) -> LoginUser | Response:
        """The user of a request with the header `Authorization`, or the answer that refuses it."""
        # Decided before the login is checked: while the address waits, the answer does not tell a right login from a
        # wrong one.
        if seconds := ceil(self._wrong.wait_seconds(address)):
            return _wait(seconds)
        why = "log in"
        try:
            user = self._admitted(headers) or await self._of_token(headers)
        except UserRefusedError:
            raise
        except TokenRefusedError as error:
            user, why = None, f"log in: {error}"
        except BridgeError as error:
            return PlainTextResponse(f"nobody can log in with a token at present: {error}\n", status_code=503)
        if user is not None:
            self._wrong.forget(address)
            return user
        self._wrong.add(address)
        return self._challenge(why)

    def _challenge(self, text: str) -> Response:
        """The answer that asks for a login."""
        answer = PlainTextResponse(f"{text}\n", status_code=401)
        schemes = [login.scheme for login in self._logins] + ["bearer"] * (self._oidc is not None)
        for scheme in dict.fromkeys(schemes):
            answer.headers.append("WWW-Authenticate", f"{scheme.title()} {_REALM}")
        return answer

    def _forbidden(self, scope: Scope, headers: Headers, text: str) -> Response:
        """The answer to a user who may not use the pages, for a browser or a program."""
        if _takes_page(headers):
            return self._page(LoginNote(403, "Not allowed", text, ""))
        return _told(scope, headers, text)

    async def _of_token(self, headers: Headers) -> LoginUser | None:
        """The user of a token of an OpenID Connect server; None without one. Raises as `OidcLogin.token_user`."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if self._oidc is None or scheme.lower() != "bearer" or shown.count(".") != 2:
            return None
        return await self._oidc.token_user(shown.strip())

    def _admitted(self, headers: Headers) -> LoginUser | None:
        """The user of a login of the configuration; None if it is not one of those accepted."""
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        given, found = shown.strip().encode(), None
        for login in self._logins:
            # The comparison takes equally long for a wrong and a right login.
            if login.scheme == scheme.lower() and hmac.compare_digest(given, login.shown):
                found = login.user
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
        _Login(scheme, shown, LoginUser(users[scheme], role))
        for role, found, users in of_roles
        for scheme, shown in found.items()
    )


def _oidc_login(config: HttpConfig, page: LoginPage, clock: Callable[[], float]) -> OidcLogin | None:
    if (client := OpenIdClient.of(config.oidc)) is None:
        return None
    # Its libraries take a tenth of a second to import.
    from engine.telemetry.oidc_login import OidcLogin

    return OidcLogin(config, client, page, clock)


def _wait(seconds: int) -> Response:
    """The answer to an address with many wrong logins."""
    text = f"too many wrong logins; try again in {seconds} s\n"
    return PlainTextResponse(text, status_code=429, headers={"Retry-After": str(seconds)})


def _refusal(scope: Scope, headers: Headers, user: LoginUser) -> Response | None:
    """The answer to a request that needs another role than that of its login; None if the role is enough."""
    needed = needed_role(scope["method"], scope["path"])
    if user.role >= needed:
        return None
    text = f"this needs the role {needed}, and {user.name} is a {user.role}; log in as another user"
    _log.warning("request refused", user=user.name, role=str(user.role), needs=str(needed), path=scope["path"])
    return _told(scope, headers, text)


def _told(scope: Scope, headers: Headers, text: str) -> Response:
    """The answer that refuses a request: JSON for programs, else plain text."""
    if "x-jms-bridge" in headers or scope["path"].startswith("/api/"):
        return JSONResponse({"error": text}, status_code=403)
    return PlainTextResponse(text + "\n", status_code=403)


def _takes_page(headers: Headers) -> bool:
    """True if a client wants an answer for people."""
    return "text/html" in headers.get("accept", "")


def _host(scope: Scope) -> str:
    """The address of a request's client."""
    return str(scope["client"][0]) if scope.get("client") else ""


def _address(scope: Scope) -> str:
    """The client's address; for IPv6 its /64 network, within which a client is free to choose its address."""
    host = _host(scope)
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Address(int(address) >> _NETWORK_BITS << _NETWORK_BITS))
    return str(address)


def _is_here(host: str) -> bool:
    """True if a `Host` header names this machine, by a loopback name or address."""
    return is_loopback(host_of(host) or "")
