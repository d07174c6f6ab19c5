"""An OpenID Connect server for the tests: discovery, keys, tokens for a client with a secret (RFC 6749, 4.4), whose
owner it names (OpenID Connect Core 1.0, 5.3), and logins of users by a code with PKCE (RFC 6749, 4.1; RFC 7636).
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import ssl
import time
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CLIENT", "SECRET", "USER", "TokenIssuer"]

CLIENT = "bridge"
SECRET = "oidc-secret"
USER = {"sub": "u-1", "preferred_username": "olga", "groups": ["staff", "ops"]}
_PAGE = """\
<!doctype html><html lang="en"><head><title>Login server</title><link rel="icon" href="data:,"></head>
<body><h1>Login server</h1><form method="post" action="/approve?{query}"><button id="in">Log in</button></form></body>
</html>
"""


class TokenIssuer:
    """The server, in a thread: `with TokenIssuer() as issuer:`."""

    def __init__(self, certificate: Path | None = None, key: Path | None = None) -> None:
        """Listens on loopback; with TLS if there is a certificate."""
        self.seconds = 3600.0
        """Time for which a token holds."""
        self.skew_seconds = 0.0
        """How far the server's clock is ahead."""
        self.is_away = False
        """True while each request for a token, or for the token endpoint, is answered with 503."""
        self.given: list[str] = []
        """Scopes of the tokens that were given."""
        self.tokens: list[str] = []
        """Tokens that were given to clients."""
        self.revoked: set[str] = set()
        """Tokens of clients whose owner is not named any more, though they have not expired."""
        self.methods: list[str] | None = None
        """Ways of a client to log in that the server names; None: it names none, and takes the header."""
        self.user: dict[str, Any] = dict(USER)
        """Claims of the user who logs in next."""
        self.claims: dict[str, Any] = {}
        """Claims that the next tokens have in place of the right ones; None leaves one out."""
        self.asked: list[str] = []
        """Paths of all requests."""
        self._codes: dict[str, dict[str, str]] = {}
        """Parameters of the login, by codes that are not used yet."""
        self._key_id = 1
        self._key = _first_key()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if certificate and key:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' * (certificate is not None)}://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="issuer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def keys(self) -> dict[str, Any]:
        """The keys by which tokens are checked (RFC 7517)."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "kid": str(self._key_id),
            "use": "sig",
            "alg": "RS256",
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        return {"keys": [key]}

    @property
    def pem(self) -> str:
        """The public key by which tokens are checked, in PEM."""
        return self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def rotate(self) -> None:
        """Takes a new key in place of the one before."""
        self._key_id += 1
        self._key = generate_private_key(65537, 2048)

    def token(self, **claims: Any) -> str:
        """A signed token that holds now, with some claims; None leaves one out."""
        now = time.time() + self.skew_seconds
        times = {"iss": self.url, "iat": int(now), "exp": int(now + self.seconds)}
        told = {name: value for name, value in {**times, **claims, **self.claims}.items() if value is not None}
        header = {"alg": "RS256", "kid": str(self._key_id), "typ": "JWT"}
        parts = [_text(json.dumps(part).encode()) for part in (header, told)]
        return ".".join((*parts, _text(self._key.sign(".".join(parts).encode(), PKCS1v15(), SHA256()))))

    def approve(self, url: str) -> str:
        """The address to which a browser is sent back, once the user has logged in at an authorization URL."""
        asked = dict(parse_qsl(urlsplit(url).query))
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state'], 'iss': self.url})}"

    def _redeem(self, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """The tokens for a code, once, for whoever began the login."""
        begun = self._codes.pop(form.get("code", [""])[0], {})
        verifier = form.get("code_verifier", [""])[0]
        challenge = _text(hashlib.sha256(verifier.encode()).digest())
        if not begun or challenge != begun["code_challenge"] or form["redirect_uri"] != [begun["redirect_uri"]]:
            return 400, {"error": "invalid_grant"}
        access = secrets.token_urlsafe(16)
        half = _text(hashlib.sha256(access.encode()).digest()[:16])
        token = self.token(**self.user, aud=CLIENT, azp=CLIENT, nonce=begun["nonce"], at_hash=half)
        return 200, {"access_token": access, "token_type": "Bearer", "id_token": token}

    def _is_client(self, login: str, form: dict[str, list[str]]) -> bool:
        """True if a request shows the id and the secret of the client, in a way that the server names."""
        if self.methods is not None and "client_secret_basic" not in self.methods:
            return (form.get("client_id"), form.get("client_secret")) == ([CLIENT], [SECRET])
        return login == f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}"

    def _owner(self, login: str) -> tuple[int, dict[str, Any]]:
        """The owner of a token of a client, as long as it holds."""
        token = login.removeprefix("Bearer ")
        if token not in self.tokens or token in self.revoked:
            return 401, {"error": "invalid_token"}
        claims = token.split(".")[1]
        told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
        if told["exp"] <= time.time() + self.skew_seconds:
            return 401, {"error": "invalid_token", "error_description": "expired"}
        if "openid" not in told["scope"].split():
            return 403, {"error": "insufficient_scope"}
        return 200, {"sub": told["sub"]}

    def answer(self, path: str, login: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to a request."""
        if path == "/.well-known/openid-configuration" and self.is_away:
            return 503, {}
        if path == "/.well-known/openid-configuration":
            names = {
                "token": "token_endpoint",
                "keys": "jwks_uri",
                "authorize": "authorization_endpoint",
                "userinfo": "userinfo_endpoint",
                "logout": "end_session_endpoint",
            }
            ends: dict[str, Any] = {name: f"{self.url}/{end}" for end, name in names.items()}
            if self.methods is not None:
                ends["token_endpoint_auth_methods_supported"] = self.methods
            return 200, {"issuer": self.url, "authorization_response_iss_parameter_supported": True, **ends}
        if path == "/keys":
            return 200, self.keys
        if path == "/userinfo":
            return self._owner(login)
        if path != "/token":
            return 404, {}
        if self.is_away:
            return 503, {"error": "temporarily_unavailable"}
        if not self._is_client(login, form):
            return 401, {"error": "invalid_client", "error_description": "wrong id or secret"}
        if form.get("grant_type") == ["authorization_code"]:
            return self._redeem(form)
        scope = form.get("scope", ["profile"])[0]
        self.given.append(scope)
        token = self.token(sub=CLIENT, aud="kafka", scope=scope)
        self.tokens.append(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": int(self.seconds)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                form = parse_qs(self.rfile.read(size).decode())
                path, _, query = self.path.partition("?")
                issuer.asked.append(path)
                if path == "/authorize":
                    return self._send(200, "text/html", _PAGE.format(query=query.replace("&", "&amp;")))
                if path == "/approve":
                    return self._redirect(issuer.approve(self.path))
                if path == "/logout":
                    return self._redirect(dict(parse_qsl(query))["post_logout_redirect_uri"])
                status, answer = issuer.answer(path, self.headers.get("Authorization", ""), form)
                return self._send(status, "application/json", json.dumps(answer))

            def _send(self, status: int, kind: str, text: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def _redirect(self, url: str) -> None:
                self.send_response(302)
                self.send_header("Location", url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                """Keeps requests out of the output of the tests."""

        return Handler


@cache
def _first_key() -> RSAPrivateKey:
    """A key of all servers of the process, since each takes a while to make."""
    return generate_private_key(65537, 2048)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))
