"""Login at an OpenID Connect server: authorization code flow with PKCE for browsers, and tokens for programs.

    /login           sends the browser to the server, which sends it back to
    /login/callback  with a code, for which the bridge gets an ID token; a session begins
    /logout          ends the session, and leads to the logout of the server

Between the first two steps, all that the login needs is in a sealed cookie: a login that is finished in another browser
is refused, and logins that nobody finishes cost no memory.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import structlog
from anyio import CapacityLimiter, to_thread
from cryptography.fernet import Fernet, InvalidToken
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from engine.errors import HardFailureError
from engine.openid.errors import TokenRefusedError
from engine.openid.provider import IdentityProvider, with_query
from engine.openid.tokens import access_token, id_token
from engine.printable import printable
from engine.telemetry.sessions import Sessions
from engine.telemetry.users import LoginNote, LoginUser, UserRefusedError, opens_page, user_of
from routes.errors import BridgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import ParamSpec, TypeVar

    from starlette.types import Scope

    from engine.openid.client import OpenIdClient
    from engine.telemetry.http_section import HttpConfig
    from engine.telemetry.users import LoginPage

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

__all__ = ["CALLBACK", "OidcLogin"]

_LOGIN, CALLBACK, _LOGOUT = "/login", "/login/callback", "/logout"
_SEE_OTHER = 303
_ASKING = ("GET", "HEAD")
_LOGIN_SECONDS = 600
"""Time that a user has for the login at the server."""
_THREADS = 8
_MOST_USED = 10_000
_MOST_PATH = 1500
"""Characters of the page that is opened after a login: a browser keeps cookies of 4096 bytes."""
_MOST_HINT = 4096
_PATH = re.compile(r"/(?![/\\])[^\\\x00-\x20\x7f]*")
"""Addresses of this server alone: browsers read two slashes, or a backslash, as the beginning of a host."""
_NO_CACHE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
_log = structlog.get_logger(__name__)


class _Begun(NamedTuple):
    """A login on its way, as its cookie has it."""

    state: str
    nonce: str
    verifier: str
    to: str
    """Page that is opened afterwards."""


class OidcLogin:
    """The login of browsers and programs by one OpenID Connect server."""

    def __init__(self, config: HttpConfig, client: OpenIdClient, page: LoginPage, clock: Callable[[], float]) -> None:
        """`page` makes the answer with a note; `clock` returns monotonic seconds."""
        self._config = config
        self._page = page
        self._provider = IdentityProvider(client, clock)
        self._sessions = Sessions(config.session.idle_seconds, config.session.most_seconds, clock)
        self._box = Fernet(Fernet.generate_key())
        self._used: dict[str, None] = {}
        """States of logins that were finished, the newest at the end."""
        self._limiter = CapacityLimiter(_THREADS)
        """The server may answer slowly: its threads are not those of the pages."""
        self._url = config.public_url or ""
        url = urlsplit(self._url)
        self._is_secure = url.scheme == "https"
        # Browsers give a cookie to all ports of a host, where other bridges may be.
        name = "jms-bridge" if url.port is None else f"jms-bridge-{url.port}"
        self._cookie = f"__Host-{name}" if self._is_secure else name
        self._login_cookie = f"{self._cookie}-login"

    async def answer(self, scope: Scope) -> Response | None:
        """Answers requests for a login or a logout; None for all others."""
        steps = {_LOGIN: self._begin, CALLBACK: self._finish, _LOGOUT: self._end}
        if (step := steps.get(scope["path"])) is None:
            return None
        if (scope["method"] == "POST") if scope["path"] == _LOGOUT else (scope["method"] in _ASKING):
            answer = await step(Request(scope))
        else:
            answer = self._note(405, "this address takes another method")
        answer.headers.update(_NO_CACHE)
        return answer

    def session_user(self, scope: Scope) -> LoginUser | None:
        """Returns the user of the session whose cookie a request has; None without one."""
        request = Request(scope)
        secret = request.cookies.get(self._cookie, "")
        session = self._sessions.find(secret, opens_page=opens_page(request.headers)) if secret else None
        return LoginUser(session.user, session.role, secret) if session else None

    async def token_user(self, token: str) -> LoginUser:
        """Returns the user of a token that a program shows.

        Raises:
            TokenRefusedError: the token is not valid.
            UserRefusedError: none of its groups has a role.
            HardFailureError: the server refuses to give its keys.
            UnreachableError: the keys are not known, and the server does not answer.
        """
        audiences = self._config.oidc.audiences
        claims = await self._in_thread(access_token, token, self._provider, audiences)
        return self._user(claims)

    def to_login(self, scope: Scope) -> Response:
        """Makes the answer that leads a browser from a page to the login, and back to the page afterwards."""
        # As the browser has written them, so that names keep their escapes.
        path, query = (scope[name].decode("latin-1") for name in ("raw_path", "query_string"))
        to = f"{path}?{query}" if query else path
        return RedirectResponse(f"{_LOGIN}?{urlencode({'to': _local(to)})}", _SEE_OTHER, _NO_CACHE)

    async def _begin(self, request: Request) -> Response:
        to, other = _local(request.query_params.get("to", "/")), "other" in request.query_params
        if not other and self.session_user(request.scope):
            return RedirectResponse(to, _SEE_OTHER)
        begun = _Begun(_random(), _random(), _random(), to)
        challenge = urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=").decode()
        parameters = {
            "response_type": "code",
            "client_id": self._config.oidc.client_id or "",
            "redirect_uri": self._url + CALLBACK,
            "scope": self._config.oidc.scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **({"prompt": "login"} if other else {}),
        }
        try:
            url = await self._in_thread(self._provider.authorization_url, parameters)
        except BridgeError as error:
            return self._away(error)
        answer = RedirectResponse(url, _SEE_OTHER)
        self._set(answer, self._login_cookie, self._box.encrypt(json.dumps(begun).encode()).decode(), _LOGIN_SECONDS)
        return answer

    async def _finish(self, request: Request) -> Response:
        begun = self._begun(request.cookies.get(self._login_cookie, ""))
        state = request.query_params.get("state", "")
        if begun is None or not hmac.compare_digest(begun.state.encode(), state.encode()):
            # Another tab of the same browser may have logged in meanwhile.
            if self.session_user(request.scope):
                return RedirectResponse("/", _SEE_OTHER)
            text = (
                "this login was begun in another browser, in another tab, or more than ten minutes ago; "
                f"open {self._url} and log in again"
            )
            return self._note(400, text)
        answer = await self._finished(request, begun)
        self._set(answer, self._login_cookie, "", 0)
        return answer

    async def _finished(self, request: Request, begun: _Begun) -> Response:
        """The answer to a code that belongs to a login of this browser."""
        query = request.query_params
        if begun.state in self._used:
            return self._note(400, "this login is finished already; log in again")
        self._used[begun.state] = None
        if len(self._used) > _MOST_USED:
            del self._used[next(iter(self._used))]
        if "error" in query:
            why = printable(query.get("error_description") or query["error"])[:500]
            return self._note(403, f"the server of the login refuses it: {why}")
        try:
            claims, token = await self._in_thread(self._redeemed, query, begun)
            user = self._user(claims)
        except UserRefusedError as error:
            _log.warning("login refused", reason=str(error))
            return self._page(LoginNote(403, "Not allowed", str(error), "/login?other=1", "Log in as another user"))
        except TokenRefusedError as error:
            _log.warning("login refused", reason=str(error))
            return self._note(403, f"the server's answer is not accepted: {error}")
        except BridgeError as error:
            return self._away(error)
        # The secret is a new one: whoever knew that of before has nothing.
        self._sessions.end(request.cookies.get(self._cookie, ""))
        secret = self._sessions.begin(user.name, user.role, token)
        _log.info("login", user=user.name, role=str(user.role), host=request.client.host if request.client else "")
        answer = RedirectResponse(begun.to, _SEE_OTHER)
        self._set(answer, self._cookie, secret)
        return answer

    def _redeemed(self, query: Mapping[str, str], begun: _Begun) -> tuple[Mapping[str, Any], str]:
        """The claims of the ID token that the server gives for a code, and the token."""
        metadata = self._provider.metadata
        if query.get("iss", metadata.issuer if not metadata.names_issuer else "") != metadata.issuer:
            raise TokenRefusedError("the code is that of another issuer (iss)")
        try:
            tokens = self._provider.exchange(query.get("code", ""), begun.verifier, self._url + CALLBACK)
        except HardFailureError as error:
            raise TokenRefusedError(f"there is no token for the code: {error}") from error
        token, access = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(token, str):
            raise TokenRefusedError("there is no ID token; is openid among http.oidc.scopes?")
        return id_token(token, self._provider, begun.nonce, access if isinstance(access, str) else None), token

    async def _end(self, request: Request) -> Response:
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return self._note(403, "this request does not come from a page of this bridge")
        session = self._sessions.end(request.cookies.get(self._cookie, ""))
        note = LoginNote(200, "Logged out", "You are logged out of the bridge.")
        if session is not None:
            _log.info("logout", user=session.user)
            try:
                metadata = await self._in_thread(lambda: self._provider.metadata)
            except BridgeError:
                metadata = None
            if metadata and metadata.logout_endpoint:
                fields = {
                    "client_id": self._config.oidc.client_id or "",
                    "post_logout_redirect_uri": f"{self._url}/",
                    # A token with many groups would make the address too long for a server.
                    **({"id_token_hint": session.id_token} if len(session.id_token) <= _MOST_HINT else {}),
                }
                text = "You are logged out of the bridge, and go on to the logout of the server."
                url = with_query(metadata.logout_endpoint, fields)
                note = LoginNote(200, "Logged out", text, url, "Log out at the server", follows=True)
        answer = self._page(note)
        self._set(answer, self._cookie, "", 0)
        return answer

    def _begun(self, cookie: str) -> _Begun | None:
        try:
            return _Begun(*json.loads(self._box.decrypt(cookie, _LOGIN_SECONDS)))
        except (InvalidToken, ValueError, TypeError):
            return None

    def _user(self, claims: Mapping[str, Any]) -> LoginUser:
        """The user of a token; raises UserRefusedError if none of the groups has a role."""
        oidc = self._config.oidc
        named, groups = _claim(claims, oidc.user_claim), _claim(claims, oidc.groups_claim)
        name = named if isinstance(named, str) and named.strip() else str(claims["sub"])
        listed = groups if isinstance(groups, list) else [groups]
        try:
            return user_of(name, [each for each in listed if isinstance(each, str)], self._config)
        except UserRefusedError as error:
            if groups is not None:
                raise
            # So Entra ID marks groups that are too many for a token.
            left_out = claims.get("_claim_names")
            if isinstance(left_out, dict) and oidc.groups_claim in left_out:
                msg = f"{error}: the server has left them out of the token, since they are too many"
            else:
                msg = f"{error}: the token has no claim '{oidc.groups_claim}' (http.oidc.groups.claim)"
            raise UserRefusedError(msg) from error

    def _away(self, error: BridgeError) -> Response:
        _log.warning("the server of the login cannot be used", reason=str(error))
        return self._note(503, f"nobody can log in at present: {error}")

    def _note(self, status: int, text: str) -> Response:
        return self._page(LoginNote(status, "Log in", text))

    def _set(self, answer: Response, name: str, value: str, seconds: int | None = None) -> None:
        """Sets a cookie, which scripts do not see, and other sites do not send; it is removed after 0 seconds."""
        answer.set_cookie(name, value, max_age=seconds, secure=self._is_secure, httponly=True, samesite="lax")

    async def _in_thread(self, function: Callable[_P, _R], *arguments: Any) -> _R:
        return await to_thread.run_sync(function, *arguments, limiter=self._limiter)


def _random() -> str:
    """A text that nobody guesses, of characters that RFC 7636 lets a verifier have."""
    return secrets.token_urlsafe(32)


def _local(path: str) -> str:
    """A path of this server that may be opened after a login; `/` for all else."""
    is_step = path.startswith((_LOGIN, _LOGOUT))
    return path if _PATH.fullmatch(path) and len(path) <= _MOST_PATH and not is_step else "/"


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by the way into an object, with dots; None if it is missing."""
    found: Any = claims
    for part in (name,) if name in claims else name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found
