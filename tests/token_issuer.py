"""An OpenID Connect server for the tests: discovery, keys, and tokens for a client with a secret (RFC 6749, 4.4)."""

from __future__ import annotations

import base64
import json
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CLIENT", "SECRET", "TokenIssuer"]

CLIENT = "bridge"
SECRET = "oidc-secret"


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
        self._key = generate_private_key(65537, 2048)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if certificate and key:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' * (certificate is not None)}://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, name="issuer", daemon=True)

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
        key = {"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": _number(numbers.n), "e": _number(numbers.e)}
        return {"keys": [key]}

    def _token(self, scope: str) -> str:
        now = time.time() + self.skew_seconds
        claims: dict[str, str | int] = {"iss": self.url, "sub": CLIENT, "aud": "kafka", "scope": scope}
        claims |= {"iat": int(now), "exp": int(now + self.seconds)}
        parts = [_text(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "1", "typ": "JWT"}, claims)]
        return ".".join((*parts, _text(self._key.sign(".".join(parts).encode(), PKCS1v15(), SHA256()))))

    def answer(self, path: str, login: str, form: dict[str, list[str]]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to a request."""
        if path == "/.well-known/openid-configuration" and self.is_away:
            return 503, {}
        if path == "/.well-known/openid-configuration":
            return 200, {"issuer": self.url, "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/keys"}
        if path == "/keys":
            return 200, self.keys
        if path != "/token":
            return 404, {}
        if self.is_away:
            return 503, {"error": "temporarily_unavailable"}
        if login != f"Basic {base64.b64encode(f'{CLIENT}:{SECRET}'.encode()).decode()}":
            return 401, {"error": "invalid_client", "error_description": "wrong id or secret"}
        scope = form.get("scope", ["profile"])[0]
        self.given.append(scope)
        return 200, {"access_token": self._token(scope), "token_type": "Bearer", "expires_in": int(self.seconds)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                form = parse_qs(self.rfile.read(size).decode())
                status, answer = issuer.answer(self.path, self.headers.get("Authorization", ""), form)
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET  # noqa: N815 - http.server's name

            def log_message(self, *_: object) -> None:
                """Keeps requests out of the output of the tests."""

        return Handler


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))
